"""Edges: naive Bayes over the labels of a node's neighbours, by counts of edges between classes.

The counts say how often nodes of one class are next to nodes of another, so this member also serves
graphs whose edges mostly join unlike nodes.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from grapheraser.aggregation.members.around import Around
from grapheraser.aggregation.members.base import (
    Evidence,
    Ids,
    floor_rows,
    labelled_places,
    trained_among,
)
from grapheraser.graph import Graph
from grapheraser.kernels.compiled import compiled
from grapheraser.kernels.elementary import logarithm
from grapheraser.kernels.neighbourhoods import LABELLED, is_kind
from grapheraser.kernels.paged import degree_at, first_edge, label_at, locate, neighbour
from grapheraser.kernels.sets import rank_of

_SMOOTHING = 0.1
EdgeCounts = NDArray[np.int64]


def edge_counts(graph: Graph) -> EdgeCounts:
    """Ordered pairs of adjacent training nodes, by their classes ``[num_classes, num_classes]``."""
    counts = np.zeros((graph.num_classes, graph.num_classes), dtype=np.int64)
    _add_pairs(graph.table, labelled_places(graph), True, 1, counts)
    return counts


def changed_edge_counts(counts: EdgeCounts, before: Graph, graph: Graph, nodes: Ids) -> EdgeCounts:
    """What `edge_counts` gives for a graph that differs from the one before in these nodes."""
    counts = counts.copy()
    for part, sign in ((before, -1), (graph, 1)):
        _add_pairs(part.table, trained_among(part, nodes), False, sign, counts)
    return counts


def evidence(counts: EdgeCounts, around: Around, own: NDArray[np.int64]) -> Evidence:
    """Log posteriors ``[m, num_classes]`` under even classes, at least the floor.

    Args:
        counts: see `edge_counts`.
        around: the labels around m nodes.
        own: the class that each of them is held out of, with its edges; -1 where it is not.
    """
    out: Evidence = _evidence(counts, around.pointers, around.near, around.every, own)
    return out


@compiled
def _add_pairs(table, places, everyone, sign, counts):  # type: ignore[no-untyped-def]
    """Add the pairs that start at sorted places, and those that only end there.

    ``everyone``: there are no others.
    """
    for place in places:
        first, label = first_edge(table, place), label_at(table, place)
        for e in range(degree_at(table, place)):
            other = locate(table, neighbour(first, e))
            if is_kind(table, other, LABELLED):
                its = label_at(table, other)
                counts[label, its] += sign
                if not everyone and rank_of(other, places) < 0:
                    counts[its, label] += sign


@compiled
def _evidence(counts, pointers, near, every, owns):  # type: ignore[no-untyped-def]
    c = len(counts)
    out, totals = np.zeros((len(every), c)), np.zeros(c, dtype=np.int64)
    for k in range(c):
        for j in range(c):
            totals[k] += counts[k, j]
    # What a neighbour of a label is worth, worked out for the labels that a node has around it.
    worth, known = np.empty((c, c)), np.zeros(c, dtype=np.bool_)
    nothing = np.zeros(c, dtype=np.int64)
    for r in range(len(every)):
        own = owns[r]
        mine = every[r] if own >= 0 else nothing
        known[:] = False
        for e in range(pointers[r], pointers[r + 1]):
            label = near[e]
            if not known[label]:
                known[label] = True
                for k in range(c):
                    pairs, total = counts[k, label], totals[k] - mine[k]
                    if label == own:
                        pairs -= mine[k]
                    if k == own:
                        pairs -= mine[label]
                        total -= mine.sum()
                    worth[label, k] = logarithm((pairs + _SMOOTHING) / (total + _SMOOTHING * c))
            for k in range(c):
                out[r, k] += worth[label, k]
    floor_rows(out)
    return out
