"""The graph, the partition and the request of a cell; a worker loads and partitions once."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from grapheraser.canonical import canonical_json
from grapheraser.datasets import load_dataset
from grapheraser.errors import ParameterError
from grapheraser.graph import Edges, Graph, Nodes, Request
from grapheraser.kernels.compiled import compiled
from grapheraser.partition import Partition, partition_graph
from grapheraser.seeding import generator
from grapheraser_lab.framework.resolve import partitioner_of

# All that a partition depends on. What a cell forgets is forgotten after it.
_PARTITION_KEYS = (
    "dataset",
    "data",
    "split_seed",
    "seed",
    "drop_edges",
    "features",
    "partition",
    "num_shards",
    "gamma",
)


@lru_cache(maxsize=2)
def _load(name: str, split_seed: int) -> Graph:
    return load_dataset(name, split_seed=split_seed)


def graph_of(config: Mapping[str, Any]) -> Graph:
    """The graph that a configuration names, with its share of training edges taken out.

    With ``features`` set to ``rows``, each row of the features is divided by its sum.
    """
    graph = _load(config["dataset"], config["split_seed"])
    if config.get("features") == "rows":
        graph = _by_row(graph)
    share = config.get("drop_edges", 0.0)
    if not share:
        return graph
    edges = graph.training_graph.edges
    order = generator(config["seed"], "experiment", "thin").permutation(len(edges))
    gone = edges[order[: round(share * len(edges))]]
    return graph.without(Edges([(int(u), int(v)) for u, v in gone])) if len(gone) else graph


def _by_row(graph: Graph) -> Graph:
    x = graph.x
    sums = np.asarray(x.sum(axis=1)).ravel()
    shares = x.data / np.repeat(np.where(sums > 0, sums, 1.0), np.diff(x.indptr))
    parts = shares.astype(np.float32), x.indices.copy(), x.indptr.copy()
    return graph.with_fields(x=sp.csr_array(parts, shape=x.shape))


def partition_of(config: Mapping[str, Any]) -> Partition:
    """The partition that a configuration names, of the graph before anything is forgotten."""
    used = {key: config[key] for key in _PARTITION_KEYS if key in config}
    return _partition(canonical_json(used))


@lru_cache(maxsize=64)
def _partition(text: str) -> Partition:
    config = json.loads(text)
    graph = graph_of(config)
    return partition_graph(
        graph,
        partitioner_of(config["partition"]),
        num_shards=min(config["num_shards"], len(graph.train_nodes)),
        seed=int(config["seed"]),
        gamma=config.get("gamma", 0.0),
    )


def request_of(
    forget: Mapping[str, Any], graph: Graph, partition: Partition, seed: int
) -> Request | None:
    """Return what a cell forgets once the graph is partitioned; larger shares contain smaller ones.

    Args:
        forget: ``what`` is edges (``count`` of them), nodes (a ``share``, ``where`` is uniform or
            large: from the larger half of the shards) or community (a ``share`` of one).
        graph: before.
        partition: of it.
        seed: of the choice.
    """
    rng = generator(seed, "experiment", "forget", str(forget["what"]))
    if forget["what"] == "edges":
        edges = graph.training_graph.edges
        chosen = edges[rng.permutation(len(edges))[: forget["count"]]]
        return Edges([(int(u), int(v)) for u, v in chosen]) if len(chosen) else None
    if forget["what"] == "nodes":
        candidates = partition.nodes
        count = round(forget["share"] * len(candidates))
        if forget["where"] == "large":
            largest = np.argsort(-partition.sizes, kind="stable")[: -(-partition.num_shards // 2)]
            candidates = candidates[np.isin(partition.labels, largest)]
    elif forget["what"] == "community":
        candidates = community_of(graph.training_graph, seed)
        count = round(forget["share"] * len(candidates))
    else:
        raise ParameterError(f"can't forget '{forget['what']}'.")
    # One training node has to be left.
    count = min(count, len(candidates), len(partition.nodes) - 1)
    chosen = rng.permutation(candidates)[:count]
    return Nodes(chosen.tolist()) if count else None


def community_of(training: Graph, seed: int, *, smallest: int = 20) -> NDArray[np.int64]:
    """Ids of one community of label propagation, drawn among those that are not tiny."""
    labels = communities(training, seed)
    sizes = np.bincount(labels)
    large = np.flatnonzero(sizes >= min(smallest, sizes.max()))
    chosen = generator(seed, "experiment", "community").choice(large)
    return training.ids[labels == chosen]


# -- classical label propagation: every node starts with a label of its own; nothing is balanced --


# `partition.lpa` starts from k labels, as a partition into k shards must. The paper's picture of
# unbalanced shards, and its community-dependent requests, are about the classical form, in which
# the number of communities is found and not given.
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
