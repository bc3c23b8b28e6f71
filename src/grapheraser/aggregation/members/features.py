"""Features: ridge regression from features smoothed over two steps.

How a row is made follows from the number of feature columns alone. Many are hashed to a few hundred
columns, a node's own added to those around it, unless labels are few. Fewer are taken as they are;
still fewer get columns of their own for the node and for its surroundings.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from grapheraser.aggregation.base import Change
from grapheraser.aggregation.members.base import Ids, Places, Rows
from grapheraser.aggregation.members.ridge import RidgeMember
from grapheraser.aggregation.members.smoothing import (
    FIRST,
    MAX_COLUMNS,
    SECOND,
    Sketch,
    key_of,
    smoothed_rows,
    smoothed_rows_twice,
)
from grapheraser.aggregation.members.walks import Reach, Stale, Walk, stale_nodes
from grapheraser.checks import real, whole
from grapheraser.graph import Graph
from grapheraser.kernels.neighbourhoods import ANY, TRAINED, UNMASKED

# Rows of at most so many columns need no hashing.
UNHASHED = 512
# The neighbours that are in shards, by the graph's context.
SHARDED = {"none": TRAINED, "unlabelled": UNMASKED, "all": ANY}


def is_wide(graph: Graph) -> bool:
    """Tell whether own features, and those one and two steps away, don't fit side by side."""
    return 3 * graph.num_features > UNHASHED


@dataclass(frozen=True)
class FeatureRegression(RidgeMember):
    """Ridge regression from smoothed features, before it has seen any.

    Attributes:
        columns: features are hashed to so many columns where they are too many.
        spread: each of them to so many.
        first: neighbours that count in the first step.
        second: and in the second.
    """

    columns: int = 256
    spread: int = 2
    first: int = FIRST
    second: int = SECOND

    def __post_init__(self) -> None:
        whole("columns", "FeatureRegression", self.columns, 1, MAX_COLUMNS)
        whole("spread", "FeatureRegression", self.spread, 1)
        whole("first", "FeatureRegression", self.first, 1)
        whole("second", "FeatureRegression", self.second, 1)
        real("ridge", "FeatureRegression", self.ridge, above=0)

    @property
    def name(self) -> str:
        return "features"

    def of_few(self) -> FeatureRegression:
        """See `RidgeMember`: without hashing, which saves nothing where nodes are few."""
        return replace(self, columns=MAX_COLUMNS)

    def width(self, graph: Graph) -> int:
        """See `RidgeMember`."""
        sketch = self._sketch(graph, 0)
        return 3 * graph.num_features + 1 if sketch is None else sketch.width

    def rows(self, graph: Graph, places: Places, seed: int, *, learning: bool) -> Rows:
        """See `RidgeMember`; only what is learned from keeps to the nodes in shards."""
        sketch, reach = self._sketch(graph, seed), self._reach(graph, learning=learning)
        return smoothed_rows(sketch, graph, places, reach, seed, self.first)

    def rows_before_and_after(
        self, change: Change, old: Places, graph: Graph, new: Places, moved: Ids, seed: int
    ) -> tuple[Rows, Rows]:
        """See `RidgeMember`."""
        before, after = (change.before.graph, old), (graph, new)
        sketch, reach = self._sketch(graph, seed), self._reach(graph, learning=True)
        return smoothed_rows_twice(sketch, before, after, moved, reach, seed, self.first)

    def stale(
        self, change: Change, graph: Graph, seed: int, *, learning: bool, among: Ids | None = None
    ) -> Stale:
        """See `RidgeMember`."""
        reach = self._reach(graph, learning=learning)
        walk = Walk(reach, Reach(reach.kind, self.first), key_of(seed), features=True)
        return stale_nodes(change, graph, walk, among)

    def _reach(self, graph: Graph, *, learning: bool) -> Reach:
        """The second step; a regression learns from no node outside the shards."""
        return Reach(SHARDED[graph.context] if learning else ANY, self.second)

    def _sketch(self, graph: Graph, seed: int) -> Sketch | None:
        """None: own features, those one step and those two steps away have their own columns."""
        features = graph.num_features
        if not is_wide(graph):
            return None
        if 2 * features <= UNHASHED:
            return Sketch.of(features, UNHASHED, seed, apart=True)
        columns = UNHASHED if features <= UNHASHED else self.columns
        return Sketch.of(features, columns, seed, spread=self.spread)
