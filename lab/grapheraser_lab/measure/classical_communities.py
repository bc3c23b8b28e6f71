"""Classical label propagation: every node starts with a label of its own, and nothing is balanced.

`partition.lpa` starts from k labels, as a partition into k shards must. The paper's picture of
unbalanced shards, and its community-dependent requests, are about the classical form, in which the
number of communities is found and not given.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from grapheraser.graph import Graph
from grapheraser.kernels.compiled import compiled
from grapheraser.seeding import generator

MAX_ROUNDS = 100


def communities(graph: Graph, seed: int) -> NDArray[np.int64]:
    """The community of every node, by position; numbered from 0, the largest first.

    Nodes take turns in a random order, and each takes the label that most of its neighbours have
    at that moment; among equals it keeps its own, or takes the one that comes first in the order.
    It ends when a round changes nothing.
    """
    labels = np.arange(graph.num_nodes)
    for step in range(MAX_ROUNDS):
        rng = generator(seed, "experiment", "communities", step)
        order = rng.permutation(graph.num_nodes)
        if not _round(graph.indptr, graph.indices, labels, order):
            break
    names, found = np.unique(labels, return_inverse=True)
    sizes = np.bincount(found, minlength=len(names))
    rank = np.empty(len(names), dtype=np.int64)
    rank[np.argsort(-sizes, kind="stable")] = np.arange(len(names))
    return rank[found]


@compiled
def _round(indptr, indices, labels, order):  # type: ignore[no-untyped-def]
    """One turn of every node; changes ``labels``, returns how many nodes changed."""
    counts = np.zeros(len(order), np.int64)
    rank = np.empty(len(order), np.int64)
    for i in range(len(order)):
        rank[order[i]] = i
    changed = 0
    for u in order:
        best = labels[u]
        for e in range(indptr[u], indptr[u + 1]):
            counts[labels[indices[e]]] += 1
        for e in range(indptr[u], indptr[u + 1]):
            label = labels[indices[e]]
            more = counts[label] > counts[best]
            if more or (
                counts[label] == counts[best] and best != labels[u] and rank[label] < rank[best]
            ):
                best = label
        for e in range(indptr[u], indptr[u + 1]):
            counts[labels[indices[e]]] = 0
        if best != labels[u]:
            labels[u] = best
            changed += 1
    return changed
