"""Pattern: ridge regression from the labels around a node.

A row holds the shares of the classes at one and at two steps, their square roots, and a constant.
The regression learns which classes go together at each distance, so it serves graphs whose edges
join unlike nodes as well as others.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from grapheraser.aggregation.base import Change
from grapheraser.aggregation.members.around import (
    END,
    MIDDLE,
    Counts,
    key_of,
    one_hop,
    two_hops,
    two_hops_twice,
)
from grapheraser.aggregation.members.base import SCALE, Ids, Places, Rows
from grapheraser.aggregation.members.ridge import RidgeMember
from grapheraser.aggregation.members.walks import Stale, Walk, stale_nodes
from grapheraser.graph import Graph
from grapheraser.kernels.compiled import compiled


@dataclass(frozen=True)
class PatternRegression(RidgeMember):
    """Ridge regression from label shares, before it has seen any."""

    @property
    def name(self) -> str:
        return "pattern"

    def width(self, graph: Graph) -> int:
        """See `RidgeMember`."""
        return 4 * graph.num_classes + 1

    @property
    def asks_as_it_learns(self) -> bool:
        """See `RidgeMember`."""
        return True

    def rows(self, graph: Graph, places: Places, seed: int, *, learning: bool) -> Rows:
        """See `RidgeMember`."""
        del learning
        return _rows(one_hop(graph, places, seed), two_hops(graph, places, seed))

    def rows_before_and_after(
        self, change: Change, old: Places, graph: Graph, new: Places, moved: Ids, seed: int
    ) -> tuple[Rows, Rows]:
        """See `RidgeMember`."""
        before, after = (change.before.graph, old), (graph, new)
        was, now = two_hops_twice(before, after, moved, seed)
        return _rows(one_hop(*before, seed), was), _rows(one_hop(*after, seed), now)

    def stale(
        self, change: Change, graph: Graph, seed: int, *, learning: bool, among: Ids | None = None
    ) -> Stale:
        """See `RidgeMember`."""
        del learning
        walk = Walk(MIDDLE, END, key_of(seed), features=False)
        return stale_nodes(change, graph, walk, among)


def _rows(near: Counts, far: Counts) -> Rows:
    """Shares with one node more, spread evenly: a row must not depend on the size of classes."""
    rows: Rows = _share_rows(near, far, SCALE)
    return rows


@compiled
def _share_rows(near, far, scale):  # type: ignore[no-untyped-def]
    m, c = near.shape
    out = np.empty((m, 4 * c + 1))
    for r in range(m):
        for step in range(2):
            counts, total = (far[r] if step else near[r]), 0
            for k in range(c):
                total += counts[k]
            for k in range(c):
                share = (counts[k] + 1.0 / c) / (total + 1.0)
                out[r, step * c + k] = np.rint(share * scale)
                out[r, (2 + step) * c + k] = np.rint(math.sqrt(share) * scale)
        out[r, 4 * c] = scale
    return out
