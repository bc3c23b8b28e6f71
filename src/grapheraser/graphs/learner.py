"""The pool of a collection: local members, and a regression on all colours, hashed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from grapheraser.aggregation.base import Change
from grapheraser.aggregation.members.base import SCALE, Ids, Member, Places, Rows
from grapheraser.aggregation.members.ridge import RidgeMember
from grapheraser.aggregation.members.walks import Stale
from grapheraser.aggregation.pooled import PooledAggregator
from grapheraser.graph import Graph
from grapheraser.graphs.colours import COLUMNS, coloured
from grapheraser.graphs.local import MEMBERS as LOCAL
from grapheraser.graphs.local import LocalRegression
from grapheraser.kernels.compiled import compiled
from grapheraser.kernels.sets import ranks
from grapheraser.seeding import derive, keyed_hash

COLOURS = "colours"
MEMBERS = (*LOCAL, COLOURS)


@dataclass(frozen=True)
class ColourRegression(RidgeMember):
    """Ridge regression from all colours, hashed to a few columns.

    Attributes:
        columns: how many.
    """

    columns: int = 256

    @property
    def name(self) -> str:
        return COLOURS

    def width(self, graph: Graph) -> int:
        """See `RidgeMember`."""
        del graph
        return self.columns

    @property
    def asks_as_it_learns(self) -> bool:
        """See `RidgeMember`."""
        return True

    def rows(self, graph: Graph, places: Places, seed: int, *, learning: bool) -> Rows:
        """See `RidgeMember`."""
        del learning
        hashes = keyed_hash(np.arange(COLUMNS), derive(seed, "columns of colours"))
        rows: Rows = _hashed(*coloured(graph, places, seed), hashes, self.columns)
        return rows

    def stale(
        self, change: Change, graph: Graph, seed: int, *, learning: bool, among: Ids | None = None
    ) -> Stale:
        """See `RidgeMember`: a row follows from its own graph alone."""
        del graph, seed, learning
        nodes = (
            change.touched if among is None else change.touched[ranks(change.touched, among) >= 0]
        )
        return Stale(nodes, nodes)


@compiled
def _hashed(pointers, columns, values, hashes, width):  # type: ignore[no-untyped-def]
    """Whole numbers: each entry is rounded before it is added, so their order has no part."""
    out = np.zeros((len(pointers) - 1, width))
    for r in range(len(out)):
        for e in range(pointers[r], pointers[r + 1]):
            z = hashes[columns[e]]
            sign = 1.0 if z & np.uint64(1) else -1.0
            out[r, (z >> np.uint64(1)) % np.uint64(width)] += sign * np.rint(values[e] * SCALE / 2)
        for u in range(width):
            out[r, u] = min(max(out[r, u], -SCALE), SCALE)
    return out


@dataclass(frozen=True)
class ColourPool(PooledAggregator):
    """A pool of the members of a collection; see `PooledAggregator`.

    Attributes:
        members: names, a selection of `MEMBERS`.
        references: how many graphs others are compared with, at the most.
    """

    members: tuple[str, ...] = MEMBERS
    shards: bool = False
    references: int = 8192

    def _parts(self, classes: bool) -> dict[str, Member]:
        del classes
        local = tuple(name for name in LOCAL if name in self.members)
        parts: dict[str, Member] = {}
        if local:
            parts["local"] = LocalRegression(local, self.references)
        if COLOURS in self.members:
            parts[COLOURS] = ColourRegression()
        return parts
