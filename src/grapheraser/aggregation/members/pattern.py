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
from grapheraser.aggregation.members.around import one_hop, two_hops
from grapheraser.aggregation.members.base import Ids, Positions
from grapheraser.aggregation.members.ridge import SCALE, RidgeMember, Rows
from grapheraser.graph import Graph


@dataclass(frozen=True)
class PatternRegression(RidgeMember):
    """Ridge regression from label shares, before it has seen any."""

    @property
    def name(self) -> str:
        return "pattern"

    def width(self, graph: Graph) -> int:
        """See `RidgeMember`."""
        return 4 * graph.num_classes + 1

    def rows(self, graph: Graph, positions: Positions, seed: int, *, learning: bool) -> Rows:
        """See `RidgeMember`; the same to be learned from and to be asked about."""
        del learning
        one = _shares(one_hop(graph, positions, seed))
        two = _shares(two_hops(graph, positions, seed))
        constant = np.ones((len(positions), 1))
        parts = [one, two, np.sqrt(one), np.sqrt(two), constant]
        return np.rint(np.concatenate(parts, axis=1) * SCALE)

    def stale(
        self, before: Graph, graph: Graph, change: Change, seed: int, *, learning: bool
    ) -> Ids:
        """See `RidgeMember`: a walk of two steps that changed starts at most one step away."""
        del before, seed, learning
        return graph.ids[graph.within_hops(graph.positions(change.touched), 1)]


def _shares(counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """Shares with one node more, spread evenly: a row must not depend on the size of classes."""
    return (counts + 1.0 / counts.shape[1]) / (counts.sum(axis=1, keepdims=True) + 1.0)
