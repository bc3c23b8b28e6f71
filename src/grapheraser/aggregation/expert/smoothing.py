"""Features smoothed over two hops, as whole numbers.

The row of a node is its own features plus the mean over two steps of its neighbourhood (itself
included in each step), both as the sketch projects them, at length 1, times `SCALE` and rounded.
Means by rows, not GCN's symmetric weights: a node's degree then has no part in the rows of others,
so that a deletion changes the rows within two hops instead of three. In each step a bounded number
of neighbours counts (see `thinning`): a hub is described well enough by some of them.

Whole numbers make sums over nodes exact, whatever their order.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from grapheraser.aggregation.expert.sketch import Sketch
from grapheraser.graph import Graph
from grapheraser.kernels.compiled import compiled
from grapheraser.kernels.neighbourhoods import chosen_neighbours, room_for
from grapheraser.seeding import derive

SCALE = 2.0**16
# How much a node's own features count beside its neighbourhood, added to it and apart from it;
# chosen on validation nodes.
OWN, OWN_APART = 0.5, 0.7
# Neighbours that count in the first step and in the second. On validation nodes nothing is lost;
# 4 and 8 would cost a quarter of a point on the larger data sets.
FIRST, SECOND = 8, 16

Rows = NDArray[np.float32]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class FirstSteps:
    """Mean features over one step of some nodes.

    Attributes:
        nodes: int64 ``[m]``, ids in any order.
        places: int64 ``[m]``, where each one's row is.
        rows: float32 ``[at least m, width]``.
    """

    nodes: NDArray[np.int64]
    places: NDArray[np.int64]
    rows: Rows

    def without(self, nodes: NDArray[np.int64]) -> FirstSteps:
        """Those of all but the given nodes."""
        keep = ~np.isin(self.nodes, nodes)
        return FirstSteps(self.nodes[keep], self.places[keep], self.rows)

    def find(self, nodes: NDArray[np.int64]) -> NDArray[np.int64]:
        """Where each node's row is; -1 where it is not there."""
        if len(self.nodes) == 0:
            return np.full(len(nodes), -1, dtype=np.int64)
        order = np.argsort(self.nodes)
        at = np.minimum(np.searchsorted(self.nodes, nodes, sorter=order), len(order) - 1)
        return np.where(self.nodes[order[at]] == nodes, self.places[order[at]], -1)


def smoothed_rows(
    sketch: Sketch,
    graph: Graph,
    positions: NDArray[np.int64],
    allowed: Mask,
    seed: int,
    known: FirstSteps | None = None,
) -> tuple[NDArray[np.float64], FirstSteps]:
    """Rows ``[len(positions), sketch.width]`` of whole numbers of at most `SCALE`.

    Args:
        sketch: projects the features.
        graph: where to walk.
        positions: rows of the graph, all of them allowed.
        allowed: ``[num_nodes]``, the nodes that walks may visit.
        seed: the run's seed; decides which neighbours count.
        known: first steps that need not be computed again.

    Returns: the rows, and the first steps that were computed for them.
    """
    if known is None:
        nothing = np.zeros(0, dtype=np.int64)
        known = FirstSteps(nothing, nothing, np.zeros((0, sketch.width), dtype=np.float32))
    x, key = graph.x, _key(seed)
    near, indptr, places = _ring(graph.indptr, graph.indices, graph.ids, positions, allowed, key)
    at = known.find(graph.ids[near])
    unknown = near[at < 0]
    steps = _first_steps(
        graph.indptr,
        graph.indices,
        graph.ids,
        x.indptr,
        x.indices,
        x.data,
        unknown,
        allowed,
        key,
        sketch.around.targets,
        sketch.around.signs,
        graph.num_features,
        sketch.width,
    )
    at[at < 0] = len(known.rows) + np.arange(len(unknown))
    own = _features(
        x.indptr,
        x.indices,
        x.data,
        positions,
        sketch.own.targets,
        sketch.own.signs,
        graph.num_features,
        sketch.width,
    )
    weight = OWN_APART if sketch.apart else OWN
    rows = _whole_numbers(own, weight, _means(indptr, at[places], known.rows, steps))
    return rows, FirstSteps(graph.ids[unknown], np.arange(len(unknown)), steps)


def sees_any(
    graph: Graph, positions: NDArray[np.int64], allowed: Mask, seed: int, marked: Mask
) -> NDArray[np.bool_]:
    """Whether each row is made of the first step of some marked node."""
    near, indptr, places = _ring(
        graph.indptr, graph.indices, graph.ids, positions, allowed, _key(seed)
    )
    return _any(indptr, places, marked[near])


def _key(seed: int) -> np.uint64:
    return np.uint64(derive(seed, "smoothing"))


@compiled
def _ring(
    indptr: NDArray[np.int64],
    indices: NDArray[np.int32],
    ids: NDArray[np.int64],
    positions: NDArray[np.int64],
    allowed: Mask,
    key: np.uint64,
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int32]]:
    """The nodes that count within one step, and for each position where they are among those.

    Returns: their positions; row pointers; places, each row's own node first and then its
    neighbours in order.
    """
    hashes, chosen = room_for(SECOND)
    place = np.full(len(ids), -1, dtype=np.int32)
    rows = np.zeros(len(positions) + 1, dtype=np.int64)
    found = np.empty(min(len(ids), len(positions) * (SECOND + 1)), dtype=np.int64)
    places = np.empty(len(positions) * (SECOND + 1), dtype=np.int32)
    count, entries = 0, 0
    for r in range(len(positions)):
        node = positions[r]
        nearby = chosen_neighbours(indptr, indices, ids, node, allowed, key, hashes, chosen)
        for e in range(-1, nearby):
            other = node if e < 0 else np.int64(chosen[e])
            if place[other] < 0:
                place[other] = count
                found[count] = other
                count += 1
            places[entries] = place[other]
            entries += 1
        rows[r + 1] = entries
    return found[:count].copy(), rows, places[:entries].copy()


@compiled
def _any(indptr: NDArray[np.int64], places: NDArray[np.int32], marked: Mask) -> NDArray[np.bool_]:
    out = np.zeros(len(indptr) - 1, dtype=np.bool_)
    for r in range(len(out)):
        for e in range(indptr[r], indptr[r + 1]):
            out[r] |= marked[places[e]]
    return out


@compiled
def _add_features(
    row: Rows,
    node: int,
    x_indptr: NDArray[np.int32],
    x_indices: NDArray[np.int32],
    x_data: Rows,
    targets: NDArray[np.uint16],
    signs: Rows,
    num_features: int,
) -> None:
    """Add a node's features, at length 1 and projected; a node without any adds nothing."""
    spread = np.int64(len(targets) // num_features)
    start, end = x_indptr[node], x_indptr[node + 1]
    square = np.float32(0.0)
    for e in range(start, end):
        square += x_data[e] * x_data[e]
    if square == 0.0:
        return
    scale = np.float32(1.0) / np.sqrt(square)
    for e in range(start, end):
        value = x_data[e] * scale
        first = np.int64(x_indices[e]) * spread
        for t in range(first, first + spread):
            row[targets[t]] += signs[t] * value


@compiled
def _features(
    x_indptr: NDArray[np.int32],
    x_indices: NDArray[np.int32],
    x_data: Rows,
    positions: NDArray[np.int64],
    targets: NDArray[np.uint16],
    signs: Rows,
    num_features: int,
    width: int,
) -> Rows:
    out = np.zeros((len(positions), width), dtype=np.float32)
    for r in range(len(positions)):
        _add_features(
            out[r], positions[r], x_indptr, x_indices, x_data, targets, signs, num_features
        )
    return out


@compiled
def _first_steps(
    indptr: NDArray[np.int64],
    indices: NDArray[np.int32],
    ids: NDArray[np.int64],
    x_indptr: NDArray[np.int32],
    x_indices: NDArray[np.int32],
    x_data: Rows,
    positions: NDArray[np.int64],
    allowed: Mask,
    key: np.uint64,
    targets: NDArray[np.uint16],
    signs: Rows,
    num_features: int,
    width: int,
) -> Rows:
    """Mean features of each node and its neighbours that count, itself first, then in order."""
    out = np.zeros((len(positions), width), dtype=np.float32)
    hashes, chosen = room_for(FIRST)
    for r in range(len(positions)):
        node, row = positions[r], out[r]
        count = chosen_neighbours(indptr, indices, ids, node, allowed, key, hashes, chosen)
        _add_features(row, node, x_indptr, x_indices, x_data, targets, signs, num_features)
        for other in chosen[:count]:
            _add_features(row, other, x_indptr, x_indices, x_data, targets, signs, num_features)
        share = np.float32(1.0 / (count + 1))
        for u in range(width):
            row[u] *= share
    return out


@compiled
def _means(indptr: NDArray[np.int64], places: NDArray[np.int64], known: Rows, steps: Rows) -> Rows:
    """Means of rows; places count through the known ones first."""
    out = np.zeros((len(indptr) - 1, steps.shape[1]), dtype=np.float32)
    for r in range(len(indptr) - 1):
        row = out[r]
        for e in range(indptr[r], indptr[r + 1]):
            at = places[e]
            other = known[at] if at < len(known) else steps[at - len(known)]
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
