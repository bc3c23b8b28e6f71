"""Pattern: ridge regression from the labels around a node.

A row holds the shares of the classes at one and at two steps, their square roots, and a constant.
The regression learns which classes go together at each distance, so it serves graphs whose edges
join unlike nodes as well as others.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from grapheraser.aggregation.base import Change
from grapheraser.aggregation.members.around import (
    FAR,
    Counts,
    key_of,
    one_hop,
    two_hops,
    two_hops_before,
)
from grapheraser.aggregation.members.base import Ids, Places
from grapheraser.aggregation.members.ridge import SCALE, RidgeMember, Rows
from grapheraser.aggregation.members.stale import Reach, Stale, Walk, stale_nodes
from grapheraser.graph import Graph
from grapheraser.kernels.neighbourhoods import ANY, LABELLED


@dataclass(frozen=True)
class PatternRegression(RidgeMember):
    """Ridge regression from label shares, before it has seen any."""

    @property
    def name(self) -> str:
        return "pattern"

    def width(self, graph: Graph) -> int:
        """See `RidgeMember`."""
        return 4 * graph.num_classes + 1

    def rows(self, graph: Graph, places: Places, seed: int, *, learning: bool) -> Rows:
        """See `RidgeMember`; the same to be learned from and to be asked about."""
        del learning
        return _rows(one_hop(graph, places, seed), two_hops(graph, places, seed))

    def rows_before_and_after(
        self, change: Change, old: Places, graph: Graph, new: Places, moved: Ids, seed: int
    ) -> tuple[Rows, Rows]:
        """See `RidgeMember`."""
        two = two_hops(graph, new, seed)
        far = two_hops_before(change, old, graph, new, two, moved, seed)
        return _rows(one_hop(change.before.graph, old, seed), far), _rows(
            one_hop(graph, new, seed), two
        )

    def stale(
        self, change: Change, graph: Graph, seed: int, *, learning: bool, among: Ids | None = None
    ) -> Stale:
        """See `RidgeMember`."""
        del learning
        walk = Walk(Reach(ANY, FAR), Reach(LABELLED, FAR + 1), key_of(seed), features=False)
        return stale_nodes(change, graph, walk, among)


def _rows(near: Counts, far: Counts) -> Rows:
    one, two = _shares(near), _shares(far)
    parts = [one, two, np.sqrt(one), np.sqrt(two), np.ones((len(one), 1))]
    return np.rint(np.concatenate(parts, axis=1) * SCALE)


def _shares(counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """Shares with one node more, spread evenly: a row must not depend on the size of classes."""
    return (counts + 1.0 / counts.shape[1]) / (counts.sum(axis=1, keepdims=True) + 1.0)
