"""Features: ridge regression from features smoothed over two steps.

How a row is made follows from the number of feature columns alone. Many are hashed to a few hundred
columns, a node's own added to those around it, unless labels are few. Fewer are taken as they are;
still fewer get columns of their own for the node and for its surroundings.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from grapheraser.aggregation.base import Change
from grapheraser.aggregation.members.base import Ids, Places
from grapheraser.aggregation.members.ridge import RidgeMember, Rows
from grapheraser.aggregation.members.sketch import MOST_COLUMNS, Sketch
from grapheraser.aggregation.members.smoothing import (
    FIRST,
    SECOND,
    block_rows,
    key_of,
    smoothed_rows,
    smoothed_rows_twice,
)
from grapheraser.aggregation.members.stale import Reach, Stale, Walk, stale_nodes
from grapheraser.checks import real, whole
from grapheraser.graph import Graph
from grapheraser.kernels.neighbourhoods import ANY, TRAINED, UNMASKED

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

    def of_few(self) -> FeatureRegression:
        """See `RidgeMember`: without hashing, which saves nothing where nodes are few."""
        return replace(self, columns=MOST_COLUMNS)

    def width(self, graph: Graph) -> int:
        """See `RidgeMember`."""
        if _in_blocks(graph):
            return 3 * graph.num_features + 1
        return self._sketch(graph, 0).width

    def rows(self, graph: Graph, places: Places, seed: int, *, learning: bool) -> Rows:
        """See `RidgeMember`; only what is learned from keeps to the nodes in shards."""
        kind = _seen(graph, learning)
        if _in_blocks(graph):
            return block_rows(graph, places, kind, seed)
        return smoothed_rows(self._sketch(graph, seed), graph, places, kind, seed)

    def rows_before_and_after(
        self, change: Change, old: Places, graph: Graph, new: Places, moved: Ids, seed: int
    ) -> tuple[Rows, Rows]:
        """See `RidgeMember`."""
        if _in_blocks(graph):
            return super().rows_before_and_after(change, old, graph, new, moved, seed)
        before, sketch = change.before.graph, self._sketch(graph, seed)
        kind = _seen(graph, learning=True)
        return smoothed_rows_twice(sketch, before, old, graph, new, moved, kind, seed)

    def stale(
        self, change: Change, graph: Graph, seed: int, *, learning: bool, among: Ids | None = None
    ) -> Stale:
        """See `RidgeMember`."""
        kind = _seen(graph, learning)
        walk = Walk(Reach(kind, SECOND), Reach(kind, FIRST), key_of(seed), features=True)
        return stale_nodes(change, graph, walk, among)

    def _sketch(self, graph: Graph, seed: int) -> Sketch:
        features = graph.num_features
        if 2 * features <= _UNHASHED:
            return Sketch.of(features, _UNHASHED, seed, apart=True)
        columns = _UNHASHED if features <= _UNHASHED else self.columns
        return Sketch.of(features, columns, seed)


def _in_blocks(graph: Graph) -> bool:
    """Whether own features, those one step and those two steps away have columns of their own."""
    return 3 * graph.num_features <= _UNHASHED


# The neighbours that are in shards, by the graph's context.
_SHARDED = {"none": TRAINED, "unlabelled": UNMASKED, "all": ANY}


def _seen(graph: Graph, learning: bool) -> int:
    """The neighbours that count: like the shards, a regression learns from no node outside them."""
    return _SHARDED[graph.context] if learning else ANY
