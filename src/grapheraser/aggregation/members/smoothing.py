"""Features smoothed over two hops, as whole numbers.

The row of a node is its own features plus the mean over two steps of its neighbourhood (itself
included in each step), both as the sketch projects them, at length 1, times `SCALE` and rounded.
Means by rows, not GCN's symmetric weights: a node's degree then has no part in the rows of others,
so that a deletion changes the rows within two hops instead of three. In each step a bounded number
of neighbours counts (see `kernels.neighbourhoods`): a hub is described well enough by some of them.

Whole numbers make sums over nodes exact, whatever their order.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from grapheraser.aggregation.members.sketch import Sketch
from grapheraser.graph import Graph
from grapheraser.kernels.compiled import compiled
from grapheraser.kernels.neighbourhoods import chosen_around, places_for
from grapheraser.kernels.paged import (
    Table,
    copy_features,
    dense_features,
    nodes_at,
    prefetch_features,
)
from grapheraser.kernels.sets import find, put, room_for_set
from grapheraser.seeding import derive

SCALE = 2.0**16
# How much a node's own features count beside its neighbourhood, added to it and apart from it;
# chosen on validation nodes.
OWN, OWN_APART = 0.5, 0.7
# Neighbours that count in the first step and in the second. On validation nodes nothing is lost;
# 4 and 8 would cost a quarter of a point on the larger data sets.
FIRST, SECOND = 8, 16

Rows = NDArray[np.float32]
Places = NDArray[np.int64]


def smoothed_rows(
    sketch: Sketch, graph: Graph, places: Places, kind: int, seed: int
) -> NDArray[np.float64]:
    """Rows ``[len(places), sketch.width]`` of whole numbers of at most `SCALE`.

    Args:
        sketch: projects the features.
        graph: where to walk.
        places: of the nodes in it.
        kind: of the neighbours that walks may visit.
        seed: the run's seed; decides which neighbours count.
    """
    table, key = graph.table, key_of(seed)
    near, indptr, entries = _ring(table, places, kind, key, graph.num_nodes)
    steps = _steps(sketch, graph, near, kind, key)
    return _finished(sketch, graph, places, _means(indptr, entries, steps))


def smoothed_rows_twice(
    sketch: Sketch,
    before: Graph,
    old: Places,
    graph: Graph,
    new: Places,
    moved: NDArray[np.int64],
    kind: int,
    seed: int,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """`smoothed_rows` of places in a graph before a change and of places in the one after.

    First steps are made once where both have them: of all nodes but those that are gone or have
    moved (sorted ids).
    """
    key = key_of(seed)
    was, old_indptr, old_entries = _ring(before.table, old, kind, key, before.num_nodes)
    near, indptr, entries = _ring(graph.table, new, kind, key, graph.num_nodes)
    source = _same(nodes_at(before.table, was), nodes_at(graph.table, near), moved)
    alone = source < 0
    source[alone] = len(near) + np.arange(int(alone.sum()))
    steps = np.concatenate(
        [
            _steps(sketch, graph, near, kind, key),
            _steps(sketch, before, was[alone], kind, key),
        ]
    )
    return (
        _finished(sketch, before, old, _means(old_indptr, source[old_entries], steps)),
        _finished(sketch, graph, new, _means(indptr, entries, steps)),
    )


def _steps(sketch: Sketch, graph: Graph, places: Places, kind: int, key: np.uint64) -> Rows:
    around = sketch.around.targets, sketch.around.signs, graph.num_features, sketch.width
    steps: Rows = _first_steps(graph.table, places, kind, key, *around)
    return steps


def _finished(sketch: Sketch, graph: Graph, places: Places, means: Rows) -> NDArray[np.float64]:
    """Rows from the means over two steps, and from the nodes' own features."""
    own = sketch.own.targets, sketch.own.signs, graph.num_features, sketch.width
    weight = OWN_APART if sketch.apart else OWN
    return _whole_numbers(_features(graph.table, places, *own), weight, means)


def block_rows(graph: Graph, places: Places, kind: int, seed: int) -> NDArray[np.float64]:
    """Rows ``[len(places), 3 * num_features + 1]`` of whole numbers of at most `SCALE`.

    Own features, the mean of the neighbours', and the mean of their neighbours' means, each at
    length 1, and a constant; arguments as for `smoothed_rows`.
    """
    rows: NDArray[np.float64] = _blocks(graph.table, places, kind, key_of(seed), graph.num_features)
    return rows


@lru_cache(maxsize=8)
def key_of(seed: int) -> np.uint64:
    """What decides which neighbours count."""
    return np.uint64(derive(seed, "smoothing"))


@compiled
def _ring(
    table: Table, places: Places, kind: int, key: np.uint64, num_nodes: int
) -> tuple[Places, NDArray[np.int64], NDArray[np.int32]]:
    """The nodes that count within one step, and for each place where they are among those.

    Returns: their places; row pointers; entries, each row's own node first and then its
    neighbours in order.
    """
    slots, found = room_for_set(min(num_nodes, len(places) * (SECOND + 1)))
    hashes, chosen = places_for(SECOND)
    rows = np.zeros(len(places) + 1, dtype=np.int64)
    entries = np.empty(len(places) * (SECOND + 1), dtype=np.int32)
    count, end = 0, 0
    for r in range(len(places)):
        for e in range(-1, chosen_around(table, places[r], kind, key, hashes, chosen)):
            entries[end] = put(slots, found, count, places[r] if e < 0 else chosen[e])
            count = max(count, entries[end] + 1)
            end += 1
        rows[r + 1] = end
    return found[:count].copy(), rows, entries[:end].copy()


@compiled
def _same(
    old: NDArray[np.int64], new: NDArray[np.int64], moved: NDArray[np.int64]
) -> NDArray[np.int32]:
    """Where the old ids that have not moved are among the new ones; -1 for all others."""
    slots, nodes = room_for_set(len(new) + len(moved))
    count, out = 0, np.empty(len(old), dtype=np.int32)
    for node in new:
        count = max(count, put(slots, nodes, count, node) + 1)
    gone = np.zeros(len(new) + len(moved), dtype=np.bool_)
    for node in moved:
        rank = put(slots, nodes, count, node)
        count, gone[rank] = max(count, rank + 1), True
    for i in range(len(old)):
        rank = find(slots, nodes, old[i])
        out[i] = -1 if rank < 0 or gone[rank] else rank
    return out


@compiled
def _room(num_features: int) -> tuple[NDArray[np.int32], Rows]:
    """Room for the columns and values of any node."""
    return np.empty(num_features, dtype=np.int32), np.empty(num_features, dtype=np.float32)


@compiled(inline=True)
def _add_features(
    row: Rows,
    table: Table,
    place: int,
    columns: NDArray[np.int32],
    values: Rows,
    targets: NDArray[np.uint16],
    signs: Rows,
) -> None:
    """Add a node's features, at length 1 and projected; a node without any adds nothing."""
    spread = np.int64(len(targets) // len(columns))
    count = copy_features(table, place, columns, values, 0)
    square = np.float32(0.0)
    for e in range(count):
        square += values[e] * values[e]
    if square == 0.0:
        return
    scale = np.float32(1.0) / np.sqrt(square)
    for e in range(count):
        value = values[e] * scale
        first = np.int64(columns[e]) * spread
        for t in range(first, first + spread):
            row[targets[t]] += signs[t] * value


@compiled
def _features(
    table: Table,
    places: Places,
    targets: NDArray[np.uint16],
    signs: Rows,
    num_features: int,
    width: int,
) -> Rows:
    out = np.zeros((len(places), width), dtype=np.float32)
    columns, values = _room(num_features)
    for r in range(len(places)):
        _add_features(out[r], table, places[r], columns, values, targets, signs)
    return out


@compiled
def _first_steps(
    table: Table,
    places: Places,
    kind: int,
    key: np.uint64,
    targets: NDArray[np.uint16],
    signs: Rows,
    num_features: int,
    width: int,
) -> Rows:
    """Mean features of each node and its neighbours that count, itself first, then in order."""
    out = np.zeros((len(places), width), dtype=np.float32)
    columns, values = _room(num_features)
    hashes, chosen = places_for(FIRST)
    for r in range(len(places)):
        row = out[r]
        count = chosen_around(table, places[r], kind, key, hashes, chosen)
        for other in chosen[:count]:
            prefetch_features(table, other)
        _add_features(row, table, places[r], columns, values, targets, signs)
        for other in chosen[:count]:
            _add_features(row, table, other, columns, values, targets, signs)
        share = np.float32(1.0 / (count + 1))
        for u in range(width):
            row[u] *= share
    return out


@compiled
def _means(indptr: NDArray[np.int64], places: NDArray[np.int32], steps: Rows) -> Rows:
    """Means of the steps at each row's places."""
    out = np.zeros((len(indptr) - 1, steps.shape[1]), dtype=np.float32)
    for r in range(len(indptr) - 1):
        row = out[r]
        for e in range(indptr[r], indptr[r + 1]):
            other = steps[places[e]]
            for u in range(len(row)):
                row[u] += other[u]
        share = np.float32(1.0 / max(1, indptr[r + 1] - indptr[r]))
        for u in range(len(row)):
            row[u] *= share
    return out


@compiled
def _whole_numbers(own: Rows, weight: float, twice: Rows) -> NDArray[np.float64]:
    out = np.zeros(twice.shape)
    for r in range(len(twice)):
        a, b = _inverse_length(own[r]) * weight, _inverse_length(twice[r])
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
def _inverse_length(row: Rows) -> float:
    square = 0.0
    for u in range(len(row)):
        square += float(row[u]) * float(row[u])
    return 1.0 / math.sqrt(square) if square > 0.0 else 0.0


@compiled
def _blocks(table, places, kind, key, features):  # type: ignore[no-untyped-def]
    out = np.zeros((len(places), 3 * features + 1))
    columns, values = _room(features)
    hashes, near = places_for(SECOND)
    far_hashes, far = places_for(FIRST)
    for r in range(len(places)):
        row = out[r]
        _add_row(row[:features], table, places[r], columns, values, 1.0)
        n = chosen_around(table, places[r], kind, key, hashes, near)
        for i in range(n):
            _add_row(row[features : 2 * features], table, near[i], columns, values, 1.0 / n)
            k = chosen_around(table, near[i], kind, key, far_hashes, far)
            for j in range(k):
                prefetch_features(table, far[j])
            for j in range(k):
                weight = 1.0 / (n * k)
                _add_row(row[2 * features : 3 * features], table, far[j], columns, values, weight)
        for start in range(0, 3 * features, features):
            scale = _inverse_length(row[start : start + features])
            for u in range(start, start + features):
                row[u] = np.rint(row[u] * scale * SCALE)
        row[3 * features] = SCALE
    return out


@compiled(inline=True)
def _add_dense(row, values, weight):  # type: ignore[no-untyped-def]
    for u in range(len(row)):
        row[u] += weight * values[u]


@compiled(inline=True)
def _add_row(row, table, place, columns, values, weight):  # type: ignore[no-untyped-def]
    if table.width >= 0:
        _add_dense(row, dense_features(table, place), weight)
    else:
        for e in range(copy_features(table, place, columns, values, 0)):
            row[columns[e]] += weight * values[e]
