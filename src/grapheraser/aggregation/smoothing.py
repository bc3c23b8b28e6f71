"""Features smoothed over two hops, as whole numbers.

The row of a node is its own features plus the mean over two steps of its neighbourhood (itself
included in each step), at length 1, times `SCALE` and rounded. Means by rows, not GCN's symmetric
weights: a node's degree then has no part in the rows of others, so that a deletion changes the
rows within two hops instead of three.

Whole numbers make sums over nodes exact, whatever their order.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray

from grapheraser.aggregation.sketch import Sketch
from grapheraser.graph import Graph

SCALE = 2.0**16
# How much a node's own features count beside its neighbourhood; chosen on validation nodes.
OWN = 0.5

Rows = NDArray[np.float32]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class FirstSteps:
    """Mean features over one step of some nodes.

    Attributes:
        nodes: int64 ``[m]``, ids in any order.
        rows: float32 ``[m, width]``.
    """

    nodes: NDArray[np.int64]
    rows: Rows

    def without(self, nodes: NDArray[np.int64]) -> FirstSteps:
        """Those of all but the given nodes."""
        keep = ~np.isin(self.nodes, nodes)
        return FirstSteps(self.nodes[keep], self.rows[keep])


def smoothed_rows(
    sketch: Sketch,
    graph: Graph,
    positions: NDArray[np.int64],
    allowed: Mask,
    known: FirstSteps | None = None,
) -> tuple[NDArray[np.float64], FirstSteps]:
    """Rows ``[len(positions), sketch.width]`` of whole numbers of at most `SCALE`.

    Args:
        sketch: projects the features.
        graph: where to walk.
        positions: rows of the graph, all of them allowed.
        allowed: ``[num_nodes]``, the nodes that walks may visit.
        known: first steps that need not be computed again.

    Returns: the rows, and the first steps of all nodes around.
    """
    near, indptr, places = _ring(graph.indptr, graph.indices, positions, allowed)
    once = np.empty((len(near), sketch.width), dtype=np.float32)
    unknown = np.flatnonzero(~_copy_known(once, graph.ids[near], known))
    once[unknown] = _first_steps(
        graph.indptr,
        graph.indices,
        graph.x.indptr,
        graph.x.indices,
        graph.x.data,
        near[unknown],
        allowed,
        sketch.targets,
        sketch.signs,
        graph.num_features,
        sketch.width,
    )
    own = _features(
        graph.x.indptr,
        graph.x.indices,
        graph.x.data,
        positions,
        sketch.targets,
        sketch.signs,
        graph.num_features,
        sketch.width,
    )
    return _whole_numbers(own, _means(indptr, places, once)), FirstSteps(graph.ids[near], once)


def _copy_known(
    rows: Rows, nodes: NDArray[np.int64], known: FirstSteps | None
) -> NDArray[np.bool_]:
    """Copy what is known of these nodes into their rows; returns which those are."""
    if known is None or len(known.nodes) == 0:
        return np.zeros(len(nodes), dtype=bool)
    order = np.argsort(known.nodes)
    at = np.minimum(np.searchsorted(known.nodes, nodes, sorter=order), len(order) - 1)
    found = known.nodes[order[at]] == nodes
    rows[found] = known.rows[order[at[found]]]
    return found


@njit(cache=True, nogil=True)
def _ring(
    indptr: NDArray[np.int64],
    indices: NDArray[np.int32],
    positions: NDArray[np.int64],
    allowed: Mask,
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int32]]:
    """The allowed nodes within one step, and for each position where they are among those.

    Returns: their positions; row pointers; places, each row's own node first and then its
    neighbours in order.
    """
    place = np.full(len(indptr) - 1, -1, dtype=np.int32)
    rows = np.zeros(len(positions) + 1, dtype=np.int64)
    bound = len(positions)
    for r in range(len(positions)):
        bound += indptr[positions[r] + 1] - indptr[positions[r]]
    found = np.empty(bound, dtype=np.int64)
    places = np.empty(bound, dtype=np.int32)
    count, entries = 0, 0
    for r in range(len(positions)):
        node = positions[r]
        for e in range(indptr[node] - 1, indptr[node + 1]):
            other = node if e < indptr[node] else np.int64(indices[e])
            if not allowed[other]:
                continue
            if place[other] < 0:
                place[other] = count
                found[count] = other
                count += 1
            places[entries] = place[other]
            entries += 1
        rows[r + 1] = entries
    return found[:count], rows, places[:entries]


@njit(cache=True, nogil=True)
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


@njit(cache=True, nogil=True)
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


@njit(cache=True, nogil=True)
def _first_steps(
    indptr: NDArray[np.int64],
    indices: NDArray[np.int32],
    x_indptr: NDArray[np.int32],
    x_indices: NDArray[np.int32],
    x_data: Rows,
    positions: NDArray[np.int64],
    allowed: Mask,
    targets: NDArray[np.uint16],
    signs: Rows,
    num_features: int,
    width: int,
) -> Rows:
    """Mean features of each node and its allowed neighbours, itself first, then in order."""
    out = np.zeros((len(positions), width), dtype=np.float32)
    for r in range(len(positions)):
        node, row, count = positions[r], out[r], 1
        _add_features(row, node, x_indptr, x_indices, x_data, targets, signs, num_features)
        for e in range(indptr[node], indptr[node + 1]):
            if allowed[indices[e]]:
                count += 1
                _add_features(
                    row, indices[e], x_indptr, x_indices, x_data, targets, signs, num_features
                )
        share = np.float32(1.0 / count)
        for u in range(width):
            row[u] *= share
    return out


@njit(cache=True, nogil=True)
def _means(indptr: NDArray[np.int64], places: NDArray[np.int32], z: Rows) -> Rows:
    out = np.zeros((len(indptr) - 1, z.shape[1]), dtype=np.float32)
    for r in range(len(indptr) - 1):
        row = out[r]
        for e in range(indptr[r], indptr[r + 1]):
            other = z[places[e]]
            for u in range(z.shape[1]):
                row[u] += other[u]
        share = np.float32(1.0 / max(1, indptr[r + 1] - indptr[r]))
        for u in range(z.shape[1]):
            row[u] *= share
    return out


@njit(cache=True, nogil=True)
def _whole_numbers(own: Rows, twice: Rows) -> NDArray[np.float64]:
    out = np.zeros(twice.shape)
    for r in range(len(twice)):
        a, b = _inverse_length(own[r]) * OWN, _inverse_length(twice[r])
        square = 0.0
        for u in range(twice.shape[1]):
            value = a * own[r, u] + b * twice[r, u]
            out[r, u] = value
            square += value * value
        scale = SCALE / math.sqrt(square) if square > 0.0 else 0.0
        for u in range(twice.shape[1]):
            out[r, u] = np.rint(out[r, u] * scale)
    return out


@njit(cache=True, nogil=True)
def _inverse_length(row: Rows) -> float:
    square = 0.0
    for u in range(len(row)):
        square += float(row[u]) * float(row[u])
    return 1.0 / math.sqrt(square) if square > 0.0 else 0.0
