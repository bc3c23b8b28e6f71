"""Pattern of targets: ridge regression from the several labels, or numbers, around a node.

A row holds the mean of each target over the labelled neighbours and over those two steps away, in
the graph's `Frame` and pulled to its centre by one node more, the logarithm of the node's degree in
three pieces, and a constant. Neighbours whose target is not known have no part in its mean. Sums
are of whole steps, so they have the same bits in any order; only the means round. About a node with
no label around it, as in a graph that comes later, the regression says nothing: NaN.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grapheraser.aggregation.base import Change
from grapheraser.aggregation.members.around import END, MIDDLE, NEAR, key_of
from grapheraser.aggregation.members.base import SCALE, Evidence, Ids, Places, Rows
from grapheraser.aggregation.members.ridge import RidgeMember
from grapheraser.aggregation.members.walks import (
    Reach,
    Ring,
    Stale,
    Walk,
    ring_around,
    rings_and_steps,
    stale_nodes,
)
from grapheraser.graph import Graph
from grapheraser.kernels.compiled import compiled
from grapheraser.kernels.elementary import logarithm
from grapheraser.kernels.neighbourhoods import LABELLED
from grapheraser.kernels.paged import neighbour_rows, nodes_at

_NEAR = Reach(LABELLED, NEAR)
# Means beyond so many spreads count as that many.
_CLIPPED = 4.0
# Where pieces of the degree's logarithm begin and end; their number, with a constant.
_ENDS = (0.0, 2.0, 4.0, 16.0)
PIECES = len(_ENDS)
Steps = NDArray[np.int64]


@dataclass(frozen=True)
class TargetPattern(RidgeMember):
    """Ridge regression from means of targets, before it has seen any."""

    @property
    def name(self) -> str:
        return "pattern"

    def width(self, graph: Graph) -> int:
        """See `RidgeMember`."""
        return 2 * graph.num_classes + PIECES

    @property
    def asks_as_it_learns(self) -> bool:
        """See `RidgeMember`."""
        return True

    def rows(self, graph: Graph, places: Places, seed: int, *, learning: bool) -> Rows:
        """See `RidgeMember`."""
        del learning
        near = ring_around(graph, places, MIDDLE, key_of(seed))
        return _finished(graph, places, near, _steps(graph, near.places, END, seed), seed)

    def rows_before_and_after(
        self, change: Change, old: Places, graph: Graph, new: Places, moved: Ids, seed: int
    ) -> tuple[Rows, Rows]:
        """See `RidgeMember`."""
        before, after = (change.before.graph, old), (graph, new)
        was, now, steps = rings_and_steps(
            before,
            after,
            moved,
            MIDDLE,
            key_of(seed),
            lambda some, places: _steps(some, places, END, seed),
        )
        return _finished(*before, was, steps, seed), _finished(*after, now, steps, seed)

    def said(self, graph: Graph, rows: NDArray[Any], weights: NDArray[Any]) -> Evidence:
        """See `RidgeMember`."""
        return np.where(rows[:, -1:] == 0, np.nan, super().said(graph, rows, weights))

    def stale(
        self, change: Change, graph: Graph, seed: int, *, learning: bool, among: Ids | None = None
    ) -> Stale:
        """See `RidgeMember`."""
        del learning
        walk = Walk(MIDDLE, END, key_of(seed), features=False)
        return stale_nodes(change, graph, walk, among)


def _steps(graph: Graph, places: Places, reach: Reach, seed: int) -> Steps:
    """Sums of the targets around nodes, how many are known, and the ids that were counted."""
    ring = ring_around(graph, places, reach, key_of(seed))
    targets = graph.label_kind.fixed(graph.labels_at(ring.places))
    ids = nodes_at(graph.table, ring.places)
    steps: Steps = _summed(ring.indptr, ring.entries, ids, targets, reach.most)
    return steps


def _finished(graph: Graph, places: Places, near: Ring, steps: Steps, seed: int) -> Rows:
    frame, kind = graph.label_frame, graph.label_kind
    one = _steps(graph, places, _NEAR, seed)
    own = kind.fixed(graph.labels_at(places))
    two = _two(nodes_at(graph.table, places), own, near.indptr, near.entries, steps)
    degree = np.diff(neighbour_rows(graph.table, places)[0])
    pieces = pieces_of(degree, SCALE)
    rows: Rows = _mean_rows(one, two, pieces, frame.centre, frame.spread, SCALE)
    return rows


@compiled
def _summed(indptr, entries, ids, targets, most):  # type: ignore[no-untyped-def]
    t = targets.shape[1]
    out = np.zeros((len(indptr) - 1, 2 * t + most), dtype=np.int64)
    out[:, 2 * t :] = -1
    for r in range(len(indptr) - 1):
        for e in range(indptr[r] + 1, indptr[r + 1]):  # the first is the node itself
            row = targets[entries[e]]
            for k in range(t):
                if not np.isnan(row[k]):
                    out[r, k] += np.int64(row[k])
                    out[r, t + k] += 1
            out[r, 2 * t + e - indptr[r] - 1] = ids[entries[e]]
    return out


@compiled
def _two(nodes, own, indptr, entries, steps):  # type: ignore[no-untyped-def]
    """Sum the steps around each node, without the walks that lead back to it."""
    m, t = own.shape
    out = np.zeros((m, 2 * t), dtype=np.int64)
    for r in range(m):
        for e in range(indptr[r] + 1, indptr[r + 1]):
            step, back = steps[entries[e]], False
            for j in range(2 * t, steps.shape[1]):
                back |= step[j] == nodes[r]
            for k in range(2 * t):
                out[r, k] += step[k]
            for k in range(t if back else 0):
                if not np.isnan(own[r, k]):
                    out[r, k] -= np.int64(own[r, k])
                    out[r, t + k] -= 1
    return out


@compiled
def pieces_of(degree, scale):  # type: ignore[no-untyped-def]
    """The logarithm of each degree, from 0 to `scale` in each of three pieces, and a constant."""
    out = np.full((len(degree), PIECES), scale)
    for r in range(len(degree)):
        size = logarithm(1.0 + degree[r])
        for i in range(PIECES - 1):
            share = (size - _ENDS[i]) / (_ENDS[i + 1] - _ENDS[i])
            out[r, i] = np.rint(min(max(share, 0.0), 1.0) * scale)
    return out


@compiled
def _mean_rows(one, two, pieces, centre, spread, scale):  # type: ignore[no-untyped-def]
    m, t = len(one), len(centre)
    out = np.empty((m, 2 * t + PIECES))
    for r in range(m):
        around = False
        for step in range(2):
            sums = two[r] if step else one[r]
            for k in range(t):
                known = sums[t + k]
                mean = (sums[k] - known * centre[k]) / (spread[k] * (known + 1.0))
                mean = min(max(mean, -_CLIPPED), _CLIPPED)
                out[r, step * t + k] = np.rint(mean / _CLIPPED * scale)
                around |= known > 0
        out[r, 2 * t :] = pieces[r]
        if not around:
            out[r, -1] = 0.0
    return out
