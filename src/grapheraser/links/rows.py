"""Features of a node and of its surroundings, for the cosines of two nodes.

Three rows describe a node: its own features, the mean over one step of its neighbourhood (itself
included), and the mean over two steps with its own features added. Each node's features are at
length 1 before they count. In each step a bounded number of neighbours counts; the node at the
other end of the pair never does, where it is a neighbour.

A row has a place for every feature column, of which few are used: it comes with a list of those.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from grapheraser.kernels.compiled import compiled
from grapheraser.kernels.neighbourhoods import ANY, chosen_but
from grapheraser.kernels.paged import copy_features, node_at, prefetch_features
from grapheraser.links.adjacency import counted

# Neighbours that count in the step from the node, and in the one from there.
SECOND, FIRST = 10, 5
# Nodes whose features alone are read.
MAX_FAR = FIRST * (SECOND + 1)
# How much a node's own features count beside those around it.
OWN_WEIGHT = 0.5
OWN, ONE, TWO = range(3)


@compiled
def room_for_walk(num_features: int):  # type: ignore[no-untyped-def]
    """Room for a node's features, and for the neighbours that count in each step."""
    features = np.empty(num_features, dtype=np.int32), np.empty(num_features, dtype=np.float32)
    near = np.empty(SECOND, dtype=np.uint64), np.empty(SECOND, dtype=np.int64)
    far = np.empty(FIRST, dtype=np.uint64), np.empty(FIRST, dtype=np.int64)
    return features, near, far


@compiled
def room_for_rows(num_features: int):  # type: ignore[no-untyped-def]
    """Rows of one node: values by column and row, the columns in use, how many, and which."""
    return (
        np.zeros((num_features, 4), dtype=np.float32),  # the fourth makes a column 16 bytes
        np.empty(num_features, dtype=np.int32),
        np.zeros(1, dtype=np.int64),
        np.zeros(num_features, dtype=np.bool_),
    )


@compiled
def describe(rows, table, place, but, key, room, near_read, far_read):  # type: ignore[no-untyped-def]
    """Write the rows of a node, each at length 1, or 0 where there is nothing.

    What the rows held is cleared. ``but`` is the id of a neighbour that doesn't count, -1 for none,
    and ``key`` decides which others do. ``near_read`` takes the ids of the neighbours whose own
    neighbours were read, ``far_read`` those of nodes whose features alone were; returns how many.
    """
    _clear(rows)
    _, (hashes, chosen), _ = room
    _add(rows, OWN, 1.0, table, place, room)
    count = chosen_but(table, place, ANY, key, but, hashes, chosen)
    end = _add_step(rows, ONE, 1.0, table, place, but, key, room, far_read, 0)
    values, columns, size, _ = rows
    for i in range(size[0]):
        values[columns[i], TWO] = values[columns[i], ONE]
    for i in range(count):
        near_read[i] = node_at(table, chosen[i])
        share = counted(table, place, near_read[i])
        end = _add_step(rows, TWO, share, table, chosen[i], -1, key, room, far_read, end)
    for row in (OWN, ONE, TWO):
        _to_length_1(rows, row)
    for i in range(size[0]):
        values[columns[i], TWO] += np.float32(OWN_WEIGHT) * values[columns[i], OWN]
    _to_length_1(rows, TWO)
    return count, end


@compiled
def _clear(rows) -> None:  # type: ignore[no-untyped-def]
    values, columns, size, used = rows
    for i in range(size[0]):
        values[columns[i]] = np.float32(0.0)
        used[columns[i]] = False
    size[0] = 0


@compiled
def _add(rows, row, weight, table, place, room) -> None:  # type: ignore[no-untyped-def]
    """Add a node's features, at length 1 and weighted; a node without any adds nothing."""
    values, columns, size, used = rows
    (of, features), _, _ = room
    count = copy_features(table, place, of, features, 0)
    square = np.float32(0.0)
    for e in range(count):
        square += features[e] * features[e]
    if square == 0.0:
        return
    scale = np.float32(weight) / np.sqrt(square)
    end = size[0]
    for e in range(count):
        c = of[e]
        if not used[c]:
            used[c] = True
            columns[end] = c
            end += 1
        values[c, row] += features[e] * scale
    size[0] = end


@compiled
def _add_step(rows, row, share, table, place, but, key, room, read, end):  # type: ignore[no-untyped-def]
    """Add a share of the mean over a node and its neighbours that count.

    Where edges have weights, each neighbour counts by the root of its weight, and the node as one
    of weight 1 does. Returns where what was read ends.
    """
    _, _, (hashes, chosen) = room
    count = chosen_but(table, place, ANY, key, but, hashes, chosen)
    total = 1.0
    for other in chosen[:count]:
        prefetch_features(table, other)
        total += counted(table, place, node_at(table, other))
    weight = share / total
    _add(rows, row, weight, table, place, room)
    for other in chosen[:count]:
        node = node_at(table, other)
        _add(rows, row, weight * counted(table, place, node), table, other, room)
        read[end] = node
        end += 1
    return end


@compiled
def _to_length_1(rows, row) -> None:  # type: ignore[no-untyped-def]
    values, columns, size, _ = rows
    square = 0.0
    for i in range(size[0]):
        value = float(values[columns[i], row])
        square += value * value
    scale = np.float32(1.0 / math.sqrt(square)) if square > 0.0 else np.float32(0.0)
    for i in range(size[0]):
        values[columns[i], row] *= scale


@compiled
def cosines(one, other, out) -> None:  # type: ignore[no-untyped-def]
    """Write the scalar products of the rows of two nodes.

    Own features; one step; two steps; own features of each with one step of the other.
    """
    values, columns, size, _ = one
    others = other[0]
    own = first = second = both = 0.0
    for i in range(size[0]):
        a, b = values[columns[i]], others[columns[i]]
        own += float(a[OWN]) * float(b[OWN])
        first += float(a[ONE]) * float(b[ONE])
        second += float(a[TWO]) * float(b[TWO])
        both += float(a[OWN]) * float(b[ONE]) + float(a[ONE]) * float(b[OWN])
    out[0], out[1], out[2], out[3] = own, first, second, both


@compiled
def project(rows, targets, signs, length, out: NDArray[np.int16]) -> None:  # type: ignore[no-untyped-def]
    """The row over two steps, projected to fewer columns, as whole numbers at a length."""
    values, columns, size, used = rows
    spread = len(targets) // len(used)
    sums, square = np.zeros(len(out)), 0.0
    for i in range(size[0]):
        c = np.int64(columns[i])
        for t in range(c * spread, c * spread + spread):
            sums[targets[t]] += float(signs[t]) * float(values[c, TWO])
    for u in range(len(out)):
        square += sums[u] * sums[u]
    scale = length / math.sqrt(square) if square > 0.0 else 0.0
    for u in range(len(out)):
        out[u] = np.int16(np.rint(sums[u] * scale))
