"""Features of a node and of its surroundings, for the cosines of two nodes.

Three rows describe a node: its own features, the mean over one step of its neighbourhood (itself
included), and the mean over two steps with its own features added. All as a sketch projects them,
each node's features at length 1 before it counts. In each step a bounded number of neighbours
counts; the node at the other end of the pair never does, where it is a neighbour.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from grapheraser.kernels.compiled import compiled
from grapheraser.kernels.paged import copy_features, node_at, prefetch_features
from grapheraser.links.adjacency import nearest

# Neighbours that count in the step from the node, and in the one from there.
SECOND, FIRST = 8, 4
# How much a node's own features count beside those around it.
OWN = 0.5
# Features are projected to so many columns, where there are more than may stay as they are.
COLUMNS, UNHASHED = 256, 512
# Nodes whose features alone are read.
MOST_FAR = FIRST * (SECOND + 1)


@compiled
def room_for_rows(num_features: int, width: int):  # type: ignore[no-untyped-def]
    """Room for a node's features, for the neighbours that count, and for one step."""
    features = np.empty(num_features, dtype=np.int32), np.empty(num_features, dtype=np.float32)
    near = np.empty(SECOND, dtype=np.uint64), np.empty(SECOND, dtype=np.int64)
    far = np.empty(FIRST, dtype=np.uint64), np.empty(FIRST, dtype=np.int64)
    return features, near, far, np.empty(width, dtype=np.float32)


@compiled
def _add(row, table, place, features, targets, signs):  # type: ignore[no-untyped-def]
    """Add a node's features, at length 1 and projected; a node without any adds nothing."""
    columns, values = features
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
def _step(row, table, place, but, key, room, targets, signs, read, end):  # type: ignore[no-untyped-def]
    """Add the mean over a node and its neighbours that count to a row of zeros.

    Returns: where the ids of those that were read end.
    """
    features, _, (hashes, chosen), _ = room
    count = nearest(table, place, key, but, hashes, chosen)
    for other in chosen[:count]:
        prefetch_features(table, other)
    _add(row, table, place, features, targets, signs)
    for other in chosen[:count]:
        _add(row, table, other, features, targets, signs)
        read[end] = node_at(table, other)
        end += 1
    share = np.float32(1.0 / (count + 1))
    for c in range(len(row)):
        row[c] *= share
    return end


@compiled
def describe(rows, table, place, but, key, room, targets, signs, near_read, far_read):  # type: ignore[no-untyped-def]
    """Write the three rows of a node, each at length 1 or 0.

    Args:
        rows: float32 ``[3, width]``: own features, one step, two steps.
        table: the graph.
        place: of the node.
        but: id of a neighbour that doesn't count; -1 for none.
        key: decides which neighbours count.
        room: see `room_for_rows`.
        targets: of the projection.
        signs: of the projection.
        near_read: ids of the neighbours whose own neighbours were read.
        far_read: ids of nodes whose features alone were read.

    Returns: how many there are of both.
    """
    features, (hashes, chosen), _, step = room
    rows[:] = 0.0
    _add(rows[0], table, place, features, targets, signs)
    end = _step(rows[1], table, place, but, key, room, targets, signs, far_read, 0)
    count = nearest(table, place, key, but, hashes, chosen)
    for c in range(len(step)):
        rows[2, c] = rows[1, c]
    for i in range(count):
        near_read[i] = node_at(table, chosen[i])
        step[:] = 0.0
        end = _step(step, table, chosen[i], -1, key, room, targets, signs, far_read, end)
        for c in range(len(step)):
            rows[2, c] += step[c]
    _to_length_1(rows[0])
    _to_length_1(rows[1])
    _to_length_1(rows[2])
    for c in range(len(step)):
        rows[2, c] += np.float32(OWN) * rows[0, c]
    _to_length_1(rows[2])
    return count, end


@compiled
def _to_length_1(row: NDArray[np.float32]) -> None:
    square = 0.0
    for c in range(len(row)):
        square += float(row[c]) * float(row[c])
    scale = np.float32(1.0 / math.sqrt(square)) if square > 0.0 else np.float32(0.0)
    for c in range(len(row)):
        row[c] *= scale


@compiled
def product(a: NDArray[np.float32], b: NDArray[np.float32]) -> float:
    """The scalar product of two rows, four sums side by side."""
    p = q = s = t = 0.0
    whole = len(a) - len(a) % 4
    for c in range(0, whole, 4):
        p += float(a[c]) * float(b[c])
        q += float(a[c + 1]) * float(b[c + 1])
        s += float(a[c + 2]) * float(b[c + 2])
        t += float(a[c + 3]) * float(b[c + 3])
    for c in range(whole, len(a)):
        p += float(a[c]) * float(b[c])
    return (p + q) + (s + t)


@compiled
def own_cosine(table, u, v, one, two):  # type: ignore[no-untyped-def]
    """The cosine of the features of two nodes as they are; 0 where one has none.

    Args:
        table: the graph.
        u: place of one node.
        v: place of the other.
        one: room for the columns and values of a node.
        two: the same for the other.
    """
    count, other = copy_features(table, u, *one, 0), copy_features(table, v, *two, 0)
    a = b = both = 0.0
    for e in range(count):
        a += float(one[1][e]) * float(one[1][e])
    for e in range(other):
        b += float(two[1][e]) * float(two[1][e])
    e = 0
    for f in range(other):
        while e < count and one[0][e] < two[0][f]:
            e += 1
        if e == count:
            break
        if one[0][e] == two[0][f]:
            both += float(one[1][e]) * float(two[1][f])
    return both / math.sqrt(a * b) if a > 0.0 and b > 0.0 else 0.0
