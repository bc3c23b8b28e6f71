"""Protocol of the pool's members, which hold evidence about a node's class.

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
from grapheraser.aggregation.form import Tensors
from grapheraser.graph import Graph
from grapheraser.kernels.compiled import compiled
from grapheraser.kernels.elementary import log_normalise_rows
from grapheraser.kernels.neighbourhoods import LABELLED, places_among, places_of
from grapheraser.kernels.paged import NOWHERE, label_at, locate, role_at

Evidence = NDArray[np.float64]
Ids = NDArray[np.int64]
Positions = NDArray[np.int64]
Places = NDArray[np.int64]
# Of regressions: whole numbers of at most `SCALE`, so that sums over them are exact.
Rows = NDArray[np.float64]
SCALE = 2.0**16
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

    def check_tensors(self, tensors: Tensors, ensemble: Ensemble, sample: Ids) -> None:
        """Raise `CorruptRunError` unless these can be the tensors of the fitted member."""

    def restore(self, tensors: Tensors) -> FittedMember:
        """The fitted member that has these tensors."""


def labelled_places(graph: Graph) -> Places:
    """Places of the training nodes whose label is known: the only labels that ever count."""
    places: Places = places_of(graph.table, LABELLED)
    return places


def trained_among(graph: Graph, nodes: Ids) -> Places:
    """Places of those of the nodes that a graph has and trains on with a label."""
    places: Places = places_among(graph.table, nodes, LABELLED)
    return places


def relabelled(before: Graph, graph: Graph, nodes: Ids) -> Ids:
    """Return the nodes, all in the graph, that have another label or role there than before."""
    return nodes[_differ(before.table, graph.table, nodes)]


@compiled
def _differ(before, after, nodes):  # type: ignore[no-untyped-def]
    out = np.zeros(len(nodes), dtype=np.bool_)
    for i in range(len(nodes)):
        was, now = locate(before, nodes[i]), locate(after, nodes[i])
        if was != NOWHERE:
            out[i] = label_at(before, was) != label_at(after, now)
            out[i] |= role_at(before, was) != role_at(after, now)
    return out


@compiled
def floor_rows(scores):  # type: ignore[no-untyped-def]
    """Normalise rows of scores to log probabilities, at least `FLOOR`, in place."""
    log_normalise_rows(scores)
    for r in range(scores.shape[0]):
        for k in range(scores.shape[1]):
            scores[r, k] = max(scores[r, k], FLOOR)
