"""Features: ridge regression from features smoothed over two steps.

How a row is made follows from the number of feature columns alone. Many are hashed to a few hundred
columns, a node's own added to those around it. Fewer are taken as they are; still fewer get columns
of their own for the node and for its surroundings.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from grapheraser.aggregation.base import Change
from grapheraser.aggregation.members.base import Ids, Positions
from grapheraser.aggregation.members.ridge import RidgeMember, Rows
from grapheraser.aggregation.members.sketch import MOST_COLUMNS, Sketch
from grapheraser.aggregation.members.smoothing import block_rows, sees_any, smoothed_rows
from grapheraser.checks import real, whole
from grapheraser.graph import TRAIN, Graph, changed_feature_rows

# Rows of at most so many columns need no hashing.
_UNHASHED = 512


@dataclass(frozen=True)
class FeatureRegression(RidgeMember):
    """Ridge regression from smoothed features, before it has seen any.

    Attributes:
        columns: features are hashed to so many columns where they are too many.
    """

    columns: int = 384

    def __post_init__(self) -> None:
        whole("columns", "FeatureRegression", self.columns, 1, MOST_COLUMNS)
        real("ridge", "FeatureRegression", self.ridge, above=0)

    @property
    def name(self) -> str:
        return "features"

    def width(self, graph: Graph) -> int:
        """See `RidgeMember`."""
        if _in_blocks(graph):
            return 3 * graph.num_features + 1
        return self._sketch(graph, 0).width

    def rows(self, graph: Graph, positions: Positions, seed: int, *, learning: bool) -> Rows:
        """See `RidgeMember`; only what is learned from keeps to training nodes."""
        seen = _seen(graph, learning=learning)
        if _in_blocks(graph):
            return block_rows(graph, positions, seen, seed)
        return smoothed_rows(self._sketch(graph, seed), graph, positions, seen, seed)

    def stale(
        self, before: Graph, graph: Graph, change: Change, seed: int, *, learning: bool
    ) -> Ids:
        """See `RidgeMember`.

        A row is made of the first steps of the node and of neighbours that count; the first step
        of a node moves with its neighbours, and with their features.
        """
        touched = change.touched
        rewritten = touched[changed_feature_rows(before, graph, touched)]
        around = graph.within_hops(graph.positions(rewritten), 1)
        moved = np.union1d(graph.positions(touched), around)
        near = graph.within_hops(moved, 1)
        if learning:
            near = near[graph.role[near] == TRAIN]
        if not _in_blocks(graph):
            marked = np.zeros(graph.num_nodes, dtype=bool)
            marked[moved] = True
            seen = _seen(graph, learning=learning)
            near = near[sees_any(graph, near, seen, seed, marked)]
        return graph.ids[near]

    def _sketch(self, graph: Graph, seed: int) -> Sketch:
        features = graph.num_features
        if 2 * features <= _UNHASHED:
            return Sketch.of(features, _UNHASHED, seed, apart=True)
        columns = _UNHASHED if features <= _UNHASHED else self.columns
        return Sketch.of(features, columns, seed)


def _in_blocks(graph: Graph) -> bool:
    """Whether own features, those one step and those two steps away have columns of their own."""
    return 3 * graph.num_features <= _UNHASHED


def _seen(graph: Graph, *, learning: bool) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Nodes whose features may be read: like the shards, a regression learns from no test node."""
    if learning:
        return graph.role == TRAIN
    return np.ones(graph.num_nodes, dtype=bool)
