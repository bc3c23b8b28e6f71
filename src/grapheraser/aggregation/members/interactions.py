"""Interactions: ridge regression from a node's own features and the labels around it, in one.

A row holds what `pattern` looks at, and columns that let the labels around a node count according
to its features. Where features are many, these are the node's own, hashed. Where they are few, they
are keyed random layers, never trained: of own features, those one and two steps away and the labels
around, the positive parts of sums under random signs.

Sums under signs are whole numbers, and so are rows: the same bits everywhere.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from grapheraser.aggregation.base import Change
from grapheraser.aggregation.members.base import SCALE, Ids, Places, Rows
from grapheraser.aggregation.members.features import SHARDED, is_wide
from grapheraser.aggregation.members.pattern import PatternRegression
from grapheraser.aggregation.members.ridge import RidgeMember
from grapheraser.aggregation.members.smoothing import (
    FIRST,
    SECOND,
    Sketch,
    key_of,
    projected,
    smoothed_rows,
    smoothed_rows_twice,
)
from grapheraser.aggregation.members.walks import Reach, Stale, Walk, stale_nodes
from grapheraser.graph import Graph
from grapheraser.seeding import derive, keyed_hash

_PATTERN = PatternRegression()
# Sums under random signs are divided by so much: few are larger than `SCALE` then.
_SHRINK = 8.0


@dataclass(frozen=True)
class InteractionRegression(RidgeMember):
    """Ridge regression from own features and labels around, before it has seen any.

    Attributes:
        columns: beside those of `pattern`; own features, where they are not more.
    """

    columns: int = 256

    @property
    def name(self) -> str:
        return "interactions"

    @property
    def asks_as_it_learns(self) -> bool:
        """See `RidgeMember`: it walks over the nodes in shards alone, whoever asks."""
        return True

    def of_few(self) -> InteractionRegression:
        """See `RidgeMember`: few labels tell of no interactions; `pattern` is left."""
        return replace(self, columns=0)

    def width(self, graph: Graph) -> int:
        """See `RidgeMember`."""
        return self._columns(graph) + _PATTERN.width(graph)

    def rows(self, graph: Graph, places: Places, seed: int, *, learning: bool) -> Rows:
        """See `RidgeMember`."""
        return self._beside(graph, places, _PATTERN.rows(graph, places, seed, learning=True), seed)

    def rows_before_and_after(
        self, change: Change, old: Places, graph: Graph, new: Places, moved: Ids, seed: int
    ) -> tuple[Rows, Rows]:
        """See `RidgeMember`."""
        before = change.before.graph
        was, now = _PATTERN.rows_before_and_after(change, old, graph, new, moved, seed)
        if not self._is_layer(graph):
            return self._beside(before, old, was, seed), self._beside(graph, new, now, seed)
        parts, reach = ((before, old), (graph, new)), _reach(graph)
        first, second = smoothed_rows_twice(None, *parts, moved, reach, seed)
        return self._layered(first, was, seed), self._layered(second, now, seed)

    def stale(
        self, change: Change, graph: Graph, seed: int, *, learning: bool, among: Ids | None = None
    ) -> Stale:
        """See `RidgeMember`; touched nodes are stale in any case, so that own features are."""
        found = _PATTERN.stale(change, graph, seed, learning=learning, among=among)
        if not self._is_layer(graph):
            return found
        reach = _reach(graph)
        walk = Walk(reach, Reach(reach.kind, FIRST), key_of(seed), features=True)
        others = stale_nodes(change, graph, walk, among)
        pairs = zip(found, others, strict=True)
        return Stale(*(np.union1d(one, other) for one, other in pairs))

    def _columns(self, graph: Graph) -> int:
        return self.columns if not is_wide(graph) else min(self.columns, graph.num_features)

    def _beside(self, graph: Graph, places: Places, pattern: Rows, seed: int) -> Rows:
        """Put the columns that are not those of `pattern` before them."""
        columns = self._columns(graph)
        if not columns:
            return pattern
        if is_wide(graph):
            # Not hashed as `features` are: what collides in both would be told twice.
            sketch = Sketch.of(graph.num_features, columns, seed, apart=True)
            own = np.rint(projected(graph, places, sketch.own, columns) * np.float64(SCALE))
            return np.hstack([own.clip(-SCALE, SCALE), pattern])
        smoothed = smoothed_rows(None, graph, places, _reach(graph), seed)
        return self._layered(smoothed, pattern, seed)

    def _is_layer(self, graph: Graph) -> bool:
        """Tell whether the columns are a keyed random layer."""
        return bool(self.columns) and not is_wide(graph)

    def _layered(self, smoothed: Rows, pattern: Rows, seed: int) -> Rows:
        shares = 2 * pattern[:, pattern.shape[1] // 2 :]  # square roots, and the constant
        inputs = np.hstack([2 * smoothed[:, :-1], shares])
        # Whole numbers far below 2**53: no order of a BLAS can change their sums.
        sums = inputs @ _signs(inputs.shape[1], self.columns, seed)
        return np.hstack([np.rint(sums / _SHRINK).clip(0, SCALE), pattern])


def _reach(graph: Graph) -> Reach:
    return Reach(SHARDED[graph.context], SECOND)


@lru_cache(maxsize=8)
def _signs(width: int, columns: int, seed: int) -> NDArray[np.float64]:
    hashes = keyed_hash(np.arange(width * columns), derive(seed, "interactions"))
    return np.where(hashes & np.uint64(1), 1.0, -1.0).reshape(width, columns)
