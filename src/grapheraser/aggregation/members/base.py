"""What a member of the pool is: it holds evidence about a node's class.

A member keeps exact sums of integers over the training nodes, or nothing at all. Its evidence about
a node is one number per class, the logarithm of a probability up to a constant. To learn the pool's
weights, sampled training nodes are judged *held out*: as if they had not been trained on.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from grapheraser.aggregation.base import Change, Ensemble
from grapheraser.graph import Graph
from grapheraser.kernels.compiled import compiled
from grapheraser.kernels.neighbourhoods import LABELLED, is_kind
from grapheraser.kernels.paged import NOWHERE, ROOM, Table, locate

Evidence = NDArray[np.float64]
Ids = NDArray[np.int64]
Positions = NDArray[np.int64]
Places = NDArray[np.int64]
# The least log probability that a counting member may hold: none of them is ever sure.
FLOOR = -30.0


class FittedMember(Protocol):
    """A member, or a few that share their sums, with those sums."""

    @property
    def names(self) -> tuple[str, ...]:
        """The members, in the order of their evidence."""

    @property
    def tensors(self) -> Mapping[str, NDArray[np.generic]]:
        """All that is kept of the training nodes, and what was learned from it."""

    def evidence(self, ensemble: Ensemble, positions: Positions) -> Evidence:
        """Evidence ``[len(positions), len(names), num_classes]``, each row by itself."""

    def held_out(self, ensemble: Ensemble, sample: Ids) -> Evidence:
        """Evidence about the sampled nodes, as if they had not been trained on."""


class Member(Protocol):
    """A kind of member, not yet fitted."""

    def fit(self, ensemble: Ensemble, sample: Ids) -> FittedMember:
        """Sum over all training nodes, and over the sampled ones where that is needed."""

    def refit(
        self, fitted: FittedMember, ensemble: Ensemble, change: Change, sample: Ids
    ) -> FittedMember:
        """Exactly what ``fit(ensemble, sample)`` would return, from what the change touched."""

    def restore(self, tensors: Mapping[str, NDArray[np.generic]]) -> FittedMember:
        """The fitted member that has these tensors."""


def labelled_places(graph: Graph) -> Places:
    """Places of the training nodes whose label is known: the only labels that ever count."""
    places: Places = _of_kind(graph.table, LABELLED)
    return places


def trained_among(graph: Graph, nodes: Ids) -> Places:
    """Places of those of the nodes that a graph has and trains on with a label."""
    places: Places = _those_of_kind(graph.table, nodes, LABELLED)
    return places


def around(graph: Graph, nodes: Ids) -> Ids:
    """These nodes and their neighbours, by id, sorted."""
    return np.union1d(nodes, graph.around(nodes))


def relabelled(before: Graph, graph: Graph, nodes: Ids) -> Ids:
    """Those of the nodes, all in the graph, that have another label or role there than before."""
    there = nodes[before.contains(nodes)]
    differs = before.labels(there) != graph.labels(there)
    return there[differs | (before.roles(there) != graph.roles(there))]


@compiled
def _of_kind(table: Table, kind: int) -> Places:
    out = np.empty(table.counts.sum(), dtype=np.int64)
    count = 0
    for page in range(len(table.counts)):
        for place in range(page * ROOM, page * ROOM + table.counts[page]):
            if is_kind(table, place, kind):
                out[count] = place
                count += 1
    return out[:count].copy()


@compiled
def _those_of_kind(table: Table, nodes: Ids, kind: int) -> Places:
    out = np.empty(len(nodes), dtype=np.int64)
    count = 0
    for node in nodes:
        place = locate(table, node)
        if place != NOWHERE and is_kind(table, place, kind):
            out[count] = place
            count += 1
    return out[:count].copy()
