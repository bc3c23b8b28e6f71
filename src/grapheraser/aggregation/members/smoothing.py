"""Features smoothed over two steps, as whole numbers.

With a sketch, the row of a node is its own features plus the mean over two steps of its
neighbourhood (itself included in each step), both as the sketch projects them, at length 1, times
`SCALE` and rounded. Without one, its own features, the mean of its neighbours' and the mean of
their neighbours' means (none of them included) stand side by side, each at length 1, with a
constant.

Means by rows, not GCN's symmetric weights: a node's degree then has no part in the rows of others,
so that a deletion changes the rows within two hops instead of three. In each step a bounded number
of neighbours counts (see `kernels.neighbourhoods`): a hub is described well enough by some of them.

Whole numbers make sums over nodes exact, whatever their order.

A sketch is a random projection of wide sparse features. Every feature column is sent to a few of
the output columns, each with a sign. Where it goes is a keyed hash of its number, so nothing in the
data has a part in it. Sparse rows stay cheap to project: a few additions per non-zero feature
instead of one per output column.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from grapheraser.aggregation.members.base import SCALE, Ids, Places
from grapheraser.aggregation.members.walks import Reach, Ring, ring_around, rings_and_steps
from grapheraser.graph import Graph
from grapheraser.kernels.compiled import compiled
from grapheraser.kernels.paged import (
    Table,
    copy_features,
    dense_features,
    prefetch_ahead,
    prefetch_features,
)
from grapheraser.seeding import derive, keyed_hash

# How much a node's own features count beside its neighbourhood, added to it and apart from it;
# chosen on validation nodes.
OWN, OWN_APART = 0.5, 0.7
# Neighbours that count in the first step and, among other members, in the second. 16 in the second
# gain nothing, and 4 in the first lose 0.2 points of F1 on Pubmed; see docs/aggregation.md.
FIRST, SECOND = 8, 8
# Nodes whose features are asked for ahead of their turn.
_AHEAD = 8
# The steps of so many nodes are worked out at once.
_AT_ONCE = 2**15

Rows = NDArray[np.float32]


def smoothed_rows(
    sketch: Sketch | None,
    graph: Graph,
    places: Places,
    reach: Reach,
    seed: int,
    first: int = FIRST,
) -> NDArray[np.float64]:
    """Rows ``[len(places), width]`` of whole numbers of at most `SCALE`.

    Args:
        sketch: projects the features; None: they stand side by side.
        graph: where to walk.
        places: of the nodes in it.
        reach: the neighbours that walks may visit, and how many count in the second step.
        seed: the run's seed; decides which neighbours count.
        first: how many count in the first step.
    """
    near = ring_around(graph, places, reach, key_of(seed))
    steps = _steps(sketch, graph, near.places, Reach(reach.kind, first), seed)
    return _finished(sketch, graph, places, near, steps)


def smoothed_rows_twice(
    sketch: Sketch | None,
    before: tuple[Graph, Places],
    after: tuple[Graph, Places],
    moved: Ids,
    reach: Reach,
    seed: int,
    first: int = FIRST,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """`smoothed_rows` of places in a graph before a change and of places in the one after.

    First steps are made once where both have them: of all nodes but those that are gone or have
    moved (sorted ids).
    """
    was, now, steps = rings_and_steps(
        before,
        after,
        moved,
        reach,
        key_of(seed),
        lambda graph, places: _steps(sketch, graph, places, Reach(reach.kind, first), seed),
    )
    old, new = (
        _finished(sketch, *part, near, steps) for part, near in ((before, was), (after, now))
    )
    return old, new


@lru_cache(maxsize=8)
def key_of(seed: int) -> np.uint64:
    """Return the key that decides which neighbours count."""
    return np.uint64(derive(seed, "smoothing"))


def _steps(sketch: Sketch | None, graph: Graph, places: Places, reach: Reach, seed: int) -> Rows:
    """With a sketch, the mean features of nodes and their neighbours that count.

    Without one, a node's own features, and beside them the mean of its neighbours'.
    """
    key, parts = key_of(seed), []
    for start in range(0, max(1, len(places)), _AT_ONCE):
        far = ring_around(graph, places[start : start + _AT_ONCE], reach, key)
        if sketch is None:
            parts.append(_own_and_mean(graph.table, *far, graph.num_features))
        else:
            features = projected(graph, far.places, sketch.around, sketch.width)
            parts.append(_means(far.indptr, far.entries, features))
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _finished(
    sketch: Sketch | None, graph: Graph, places: Places, near: Ring, steps: Rows
) -> NDArray[np.float64]:
    """Rows from the steps around their nodes."""
    rows: NDArray[np.float64]
    if sketch is None:
        rows = _side_by_side(near.indptr, near.entries, steps)
    else:
        own = projected(graph, places, sketch.own, sketch.width)
        weight = OWN_APART if sketch.apart else OWN
        rows = _whole_numbers(own, weight, _means(near.indptr, near.entries, steps))
    return rows


def projected(graph: Graph, places: Places, projection: Projection, width: int) -> Rows:
    """Features ``[len(places), width]``, at length 1 and then projected."""
    parts = projection.targets, projection.signs, graph.num_features, width
    rows: Rows = _features(graph.table, places, *parts)
    return rows


@compiled
def _room(num_features: int) -> tuple[NDArray[np.int32], Rows]:
    """Room for the columns and values of any node."""
    return np.empty(num_features, dtype=np.int32), np.empty(num_features, dtype=np.float32)


@compiled
def _features(
    table: Table,
    places: Places,
    targets: NDArray[np.uint16],
    signs: Rows,
    num_features: int,
    width: int,
) -> Rows:
    """Project features at length 1; a node without any has a row of zeros.

    The square and the projected entries are added in the order of the columns, in float32: a row
    has the same bits whichever rows it is made with.
    """
    out = np.zeros((len(places), width), dtype=np.float32)
    columns, values = _room(num_features)
    spread = np.int64(len(targets) // num_features)
    for r in range(len(places)):
        prefetch_ahead(table, places, r, _AHEAD)
        count, row = copy_features(table, places[r], columns, values, 0), out[r]
        square = np.float32(0.0)
        for e in range(count):
            square += values[e] * values[e]
        if square > 0.0:
            scale = np.float32(1.0) / np.sqrt(square)
            for e in range(count):
                value = values[e] * scale
                first = np.int64(columns[e]) * spread
                for t in range(first, first + spread):
                    row[targets[t]] += signs[t] * value
    return out


@compiled
def _means(indptr: NDArray[np.int64], entries: NDArray[np.int32], steps: Rows) -> Rows:
    """Average the steps at each row's entries, in the order of the entries.

    That is the node first, then its neighbours by id, so the float32 sum follows from the graph
    alone. Multiplied by a rounded share instead of divided: one rounding more, always the same.
    """
    out = np.zeros((len(indptr) - 1, steps.shape[1]), dtype=np.float32)
    for r in range(len(indptr) - 1):
        row = out[r]
        for e in range(indptr[r], indptr[r + 1]):
            other = steps[entries[e]]
            for u in range(len(row)):
                row[u] += other[u]
        share = np.float32(1.0 / max(1, indptr[r + 1] - indptr[r]))
        for u in range(len(row)):
            row[u] *= share
    return out


@compiled
def _whole_numbers(own: Rows, weight: float, twice: Rows) -> NDArray[np.float64]:
    """Add own and smoothed features, each at length 1, and round the sum to whole numbers.

    From here on sums over nodes are exact in any order. Up to here every sum runs along one row.
    """
    out = np.zeros(twice.shape)
    for r in range(len(twice)):
        a, b = inverse_length(own[r]) * weight, inverse_length(twice[r])
        square = 0.0
        for u in range(twice.shape[1]):
            value = a * own[r, u] + b * twice[r, u]
            out[r, u] = value
            square += value * value
        scale = SCALE / math.sqrt(square) if square > 0.0 else 0.0
        for u in range(twice.shape[1]):
            out[r, u] = np.rint(out[r, u] * scale)
    return out


@compiled
def inverse_length(row):  # type: ignore[no-untyped-def]
    """Return what brings a row to length 1; 0 where it has none."""
    square = 0.0
    for u in range(len(row)):
        square += float(row[u]) * float(row[u])
    return 1.0 / math.sqrt(square) if square > 0.0 else 0.0


@compiled
def _own_and_mean(table, places, indptr, entries, features):  # type: ignore[no-untyped-def]
    """Features of each ring's own node, and the mean of the others', in float64."""
    out = np.zeros((len(indptr) - 1, 2 * features))
    columns, values = _room(features)
    for r in range(len(indptr) - 1):
        count = indptr[r + 1] - indptr[r] - 1
        for e in range(indptr[r], indptr[r + 1]):
            prefetch_features(table, places[entries[min(e + _AHEAD, len(entries) - 1)]])
            own = e == indptr[r]
            row = out[r, :features] if own else out[r, features:]
            place, weight = places[entries[e]], 1.0 if own else 1.0 / count
            if table.width >= 0:
                _add_dense(row, dense_features(table, place), weight)
            else:
                for f in range(copy_features(table, place, columns, values, 0)):
                    row[columns[f]] += weight * values[f]
    return out


@compiled(inline=True)
def _add_dense(row, values, weight):  # type: ignore[no-untyped-def]
    for u in range(len(row)):
        row[u] += weight * values[u]


@compiled
def _side_by_side(indptr, entries, steps):  # type: ignore[no-untyped-def]
    """Put own features and both means side by side, each at length 1, and round them.

    The sum over neighbours is not divided by their number: the length takes that out again.
    """
    features = steps.shape[1] // 2
    out = np.zeros((len(indptr) - 1, 3 * features + 1))
    for r in range(len(indptr) - 1):
        row, first = out[r], indptr[r]
        row[:features] = steps[entries[first], :features]
        for e in range(first + 1, indptr[r + 1]):
            _add_dense(row[features : 3 * features], steps[entries[e]], 1.0)
        for start in range(0, 3 * features, features):
            scale = inverse_length(row[start : start + features])
            for u in range(start, start + features):
                row[u] = np.rint(row[u] * scale * SCALE)
        row[3 * features] = SCALE
    return out


# -- sketches ------------------------------------------------------------------------------------

MAX_COLUMNS = 2**16 - 1


@dataclass(frozen=True, eq=False)
class Projection:
    """Where each feature column goes.

    Attributes:
        targets: uint16 ``[num_features * spread]``, output columns, feature after feature; small
            integers, because the projection lives on the cache.
        signs: float32, likewise.
    """

    targets: NDArray[np.uint16]
    signs: NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Sketch:
    """The projections that make a row of features.

    Attributes:
        own: of a node's own features.
        around: of the features around it; the same one, unless the two are kept apart.
        width: number of output columns.
    """

    own: Projection
    around: Projection
    width: int

    @property
    def apart(self) -> bool:
        """True where a node's own features can be told from those around it."""
        return self.own is not self.around

    @classmethod
    @lru_cache(maxsize=8)
    def of(
        cls, num_features: int, columns: int, seed: int, *, spread: int = 2, apart: bool = False
    ) -> Sketch:
        """Features as they are, or projected to ``columns`` of them where there are more.

        Args:
            num_features: of the graph.
            columns: how many there are to be at the most.
            seed: of the run.
            spread: to how many of them a feature is sent.
            apart: whether a node's own features are to be told from those around it.
        """
        width = num_features * (1 + apart)
        if width <= columns:
            around = _own_columns(num_features, 0)
            return cls(_own_columns(num_features, num_features) if apart else around, around, width)
        size = num_features, columns, spread
        around = _hashed_columns(*size, derive(seed, "sketch"))
        own = _hashed_columns(*size, derive(seed, "sketch", "own")) if apart else around
        return cls(own, around, columns)


def _own_columns(num_features: int, first: int) -> Projection:
    targets = np.arange(first, first + num_features, dtype=np.uint16)
    return Projection(targets, np.ones(num_features, dtype=np.float32))


def _hashed_columns(num_features: int, columns: int, spread: int, key: int) -> Projection:
    hashes = keyed_hash(np.arange(num_features * spread), key)
    targets = (hashes >> np.uint64(1)) % np.uint64(columns)
    signs = np.where(hashes & np.uint64(1), 1.0, -1.0) / math.sqrt(spread)
    return Projection(targets.astype(np.uint16), signs.astype(np.float32))
