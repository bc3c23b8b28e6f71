"""Edges: naive Bayes over the labels of a node's neighbours, by counts of edges between classes.

The counts say how often nodes of one class are next to nodes of another, so this member also serves
graphs whose edges mostly join unlike nodes.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from grapheraser.aggregation.members.around import NEAR, key_of
from grapheraser.aggregation.members.base import FLOOR, Evidence, Ids, Positions, labelled
from grapheraser.graph import Graph
from grapheraser.kernels.compiled import compiled
from grapheraser.kernels.elementary import log_normalise, logarithm
from grapheraser.kernels.neighbourhoods import chosen_neighbours, room_for

_SMOOTHING = 0.1
EdgeCounts = NDArray[np.int64]


def edge_counts(graph: Graph) -> EdgeCounts:
    """Ordered pairs of adjacent training nodes, by their classes ``[num_classes, num_classes]``."""
    counts = np.zeros((graph.num_classes, graph.num_classes), dtype=np.int64)
    _add(graph, np.flatnonzero(labelled(graph)), 1, counts)
    return counts


def changed_edge_counts(counts: EdgeCounts, before: Graph, graph: Graph, nodes: Ids) -> EdgeCounts:
    """What `edge_counts` gives for a graph that differs from the one before in these nodes."""
    counts = counts.copy()
    for part, sign in ((before, -1), (graph, 1)):
        at = part.positions(nodes[part.contains(nodes)])
        _add(part, at[labelled(part)[at]], sign, counts, both=True)
    return counts


def evidence(
    counts: EdgeCounts, graph: Graph, positions: Positions, seed: int, *, held_out: bool
) -> Evidence:
    """Log posteriors ``[len(positions), num_classes]`` under even classes, at least `FLOOR`."""
    parts = (graph.indptr, graph.indices, graph.ids, graph.y, labelled(graph))
    out: Evidence = _evidence(*parts, counts, positions, held_out, key_of(seed))
    return out


def _add(
    graph: Graph, rows: Positions, sign: int, counts: EdgeCounts, *, both: bool = False
) -> None:
    """Add the pairs that start at these rows, and with ``both`` also those that only end there."""
    among = np.zeros(graph.num_nodes, dtype=bool)
    among[rows] = True
    among |= not both
    _add_pairs(graph.indptr, graph.indices, graph.y, labelled(graph), rows, among, sign, counts)


@compiled
def _add_pairs(indptr, indices, y, known, rows, among, sign, counts):  # type: ignore[no-untyped-def]
    for row in rows:
        for e in range(indptr[row], indptr[row + 1]):
            other = indices[e]
            if known[other]:
                counts[y[row], y[other]] += sign
                if not among[other]:
                    counts[y[other], y[row]] += sign


@compiled
def _evidence(indptr, indices, ids, y, known, counts, rows, held_out, key):  # type: ignore[no-untyped-def]
    c = len(counts)
    out, totals = np.zeros((len(rows), c)), counts.sum(axis=1)
    mine = np.zeros(c, dtype=np.int64)
    hashes, chosen = room_for(NEAR)
    for r in range(len(rows)):
        row, own = rows[r], -1
        mine[:] = 0
        if held_out:
            own = y[row]
            for e in range(indptr[row], indptr[row + 1]):
                if known[indices[e]]:
                    mine[y[indices[e]]] += 1
        for i in range(chosen_neighbours(indptr, indices, ids, row, known, key, hashes, chosen)):
            label = y[chosen[i]]
            for k in range(c):
                pairs, total = counts[k, label], totals[k] - mine[k]
                if label == own:
                    pairs -= mine[k]
                if k == own:
                    pairs -= mine[label]
                    total -= mine.sum()
                out[r, k] += logarithm((pairs + _SMOOTHING) / (total + _SMOOTHING * c))
        log_normalise(out[r])
        for k in range(c):
            out[r, k] = max(out[r, k], FLOOR)
    return out
