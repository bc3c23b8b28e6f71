"""Springs: neighbours attract each other, all nodes repel each other, until they come to rest.

Attraction grows with the distance, repulsion falls with it and grows with the degrees of both
nodes, which pushes hubs, and the communities around them, apart. What is near is added up node by
node; what is farther away, cell by cell of a pyramid of grids, the coarser the farther. So a step
takes n log n instead of n^2. The large form is found on a coarse graph first, see `levels`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from grapheraser.arrays import Floats, Ints, Ints32
from grapheraser.kernels.compiled import compiled
from grapheraser.seeding import keyed_hash

Places = Floats

# A graph of so many nodes starts from scattered places.
_SMALLEST = 40
# Steps on the coarsest graph and on every finer one; how much farther a step may lead than the
# nodes lie apart, and what is left of that after each.
_FIRST = (300, 2.0, 0.985)
_LATER = (60, 2.0, 0.93)
# Nodes in a cell of the finest grid, on average.
_IN_A_CELL = 2
# The square of a distance below which repulsion does not grow any more.
_TOUCHING = 1e-4


def settle(indptr: Ints, indices: Ints32, ids: Ints, key: int) -> Places:
    """Places ``[n, 2]`` of the nodes of a connected graph.

    Rows hold both directions of every edge, none from a node to itself. Ids and key decide who
    looks for company first.
    """
    order = np.argsort(keyed_hash(ids, key), kind="stable")
    found = levels(indptr, indices, order, _SMALLEST)
    coarsest = len(found[-1].masses)
    places = _settled(found[-1], _scattered(coarsest, key) * math.sqrt(len(ids)), *_FIRST)
    for level in found[-2::-1]:
        near = _scattered(len(level.masses), key) * _spacing(level)
        places = _settled(level, places[level.parents] + near, *_LATER)
    return places


def _settled(level: Level, places: Places, steps: int, far: float, cooling: float) -> Places:
    depth = max(1, math.ceil(math.log2(len(places) / _IN_A_CELL) / 2))
    _relax(
        level.indptr,
        level.indices,
        level.weights,
        level.degrees + level.masses,
        places,
        depth,
        steps,
        far * _spacing(level),
        cooling,
    )
    return places


def _spacing(level: Level) -> float:
    return math.sqrt(level.masses.mean())


def _scattered(count: int, key: int) -> Places:
    """Places in the unit square around 0."""
    numbers = keyed_hash(np.arange(2 * count), key).reshape(count, 2)
    return (numbers >> np.uint64(11)) / 2.0**53 - 0.5


@compiled
def _relax(indptr, indices, weights, masses, places, depth, steps, farthest, cooling):  # type: ignore[no-untyped-def]
    """Move every node by the force on it, again and again, less and less far."""
    n = len(masses)
    forces = np.empty((n, 2))
    for _ in range(steps):
        repel(places, masses, depth, forces)
        for u in range(n):
            held = 0.0
            for e in range(indptr[u], indptr[u + 1]):
                v = indices[e]
                forces[u, 0] += weights[e] * (places[v, 0] - places[u, 0])
                forces[u, 1] += weights[e] * (places[v, 1] - places[u, 1])
                held += weights[e]
            # A node that is held by many springs must not swing beyond where it belongs.
            forces[u, 0] /= masses[u] + held
            forces[u, 1] /= masses[u] + held
        for u in range(n):
            length = np.sqrt(forces[u, 0] ** 2 + forces[u, 1] ** 2)
            step = 1.0 if length <= farthest else farthest / length
            places[u, 0] += forces[u, 0] * step
            places[u, 1] += forces[u, 1] * step
        farthest *= cooling


@compiled
def repel(places, masses, depth, forces):  # type: ignore[no-untyped-def]
    """Write the repulsion of all others on every node to ``forces`` ``[n, 2]``.

    Two nodes at a distance d repel each other with the product of their masses, over d.
    """
    low, side = _square(places)
    width = 1 << depth
    cells, starts, order = _sorted_into_cells(places, low, side, width)
    offsets, sums = _pyramid(places, masses, cells, depth)
    for u in order:
        x, y = cells[u] % width, cells[u] // width
        fx, fy = 0.0, 0.0
        for level in range(2, depth + 1):
            dx, dy = _far(places[u], x, y, depth, level, offsets[level], sums)
            fx += dx
            fy += dy
        for row in range(max(0, y - 1), min(width, y + 2)):
            first, last = row * width + max(0, x - 1), row * width + min(width - 1, x + 1)
            for i in range(starts[first], starts[last + 1]):
                v = order[i]
                dx, dy = places[u, 0] - places[v, 0], places[u, 1] - places[v, 1]
                push = masses[v] / (dx * dx + dy * dy + _TOUCHING)  # 0 for the node itself
                fx += dx * push
                fy += dy * push
        forces[u, 0], forces[u, 1] = fx * masses[u], fy * masses[u]


@compiled
def _far(place, x, y, depth, level, offset, sums):  # type: ignore[no-untyped-def]
    """The push of the cells of a level that are not near, and were near one level above."""
    width = 1 << level
    x, y = x >> (depth - level), y >> (depth - level)
    left, right = max(0, ((x >> 1) - 1) * 2), min(width, ((x >> 1) + 2) * 2)
    below, above = max(0, ((y >> 1) - 1) * 2), min(width, ((y >> 1) + 2) * 2)
    fx, fy = 0.0, 0.0
    for row in range(below, above):
        for column in range(left, right):
            cell = offset + row * width + column
            if (abs(column - x) <= 1 and abs(row - y) <= 1) or sums[cell, 0] == 0.0:
                continue
            dx, dy = place[0] - sums[cell, 1], place[1] - sums[cell, 2]
            push = sums[cell, 0] / (dx * dx + dy * dy)
            fx += dx * push
            fy += dy * push
    return fx, fy


@compiled
def _square(places):  # type: ignore[no-untyped-def]
    """The lower corner and the side of a square that holds all places."""
    low, side = np.empty(2), 0.0
    for axis in range(2):
        low[axis] = places[:, axis].min()
        side = max(side, places[:, axis].max() - low[axis])
    return low, side * 1.0001 + 1e-12


@compiled
def _sorted_into_cells(places, low, side, width):  # type: ignore[no-untyped-def]
    """The cell of every node; where each cell's nodes start in the order; and that order."""
    n = len(places)
    cells, order = np.empty(n, dtype=np.int32), np.empty(n, dtype=np.int32)
    starts = np.zeros(width * width + 1, dtype=np.int32)
    for u in range(n):
        x = int((places[u, 0] - low[0]) / side * width)
        y = int((places[u, 1] - low[1]) / side * width)
        cells[u] = y * width + x
        starts[cells[u] + 1] += 1
    for cell in range(width * width):
        starts[cell + 1] += starts[cell]
    at = starts[:-1].copy()
    for u in range(n):
        order[at[cells[u]]] = u
        at[cells[u]] += 1
    return cells, starts, order


@compiled
def _pyramid(places, masses, cells, depth):  # type: ignore[no-untyped-def]
    """Mass and centre of every cell of every grid, and where each grid starts."""
    offsets = np.zeros(depth + 2, dtype=np.int64)
    for level in range(depth + 1):
        offsets[level + 1] = offsets[level] + (1 << (2 * level))
    sums = np.zeros((offsets[-1], 3))
    for u in range(len(masses)):
        cell = offsets[depth] + cells[u]
        sums[cell, 0] += masses[u]
        sums[cell, 1] += masses[u] * places[u, 0]
        sums[cell, 2] += masses[u] * places[u, 1]
    for level in range(depth, 0, -1):
        width = 1 << level
        for cell in range(width * width):
            parent = offsets[level - 1] + (cell // width >> 1) * (width >> 1) + (cell % width >> 1)
            for i in range(3):
                sums[parent, i] += sums[offsets[level] + cell, i]
    for cell in range(len(sums)):
        if sums[cell, 0] > 0.0:
            sums[cell, 1] /= sums[cell, 0]
            sums[cell, 2] /= sums[cell, 0]
    return offsets, sums


# Nodes that become one at the most, in a step from one level to the next.
_JOINED = 4
# A step that leaves more than this share of the nodes is not worth it.
_LEFT = 0.8


class Level(NamedTuple):
    """A graph, the nodes of which stand for so many each."""

    # indptr, indices: its rows, both directions of every edge.
    indptr: Ints
    indices: Ints32
    weights: Floats  # how many edges each stands for
    masses: Floats  # how many nodes each stands for
    degrees: Floats  # of those nodes, added up
    parents: Ints32  # the node of the next level that each becomes; empty on the last


def levels(indptr: Ints, indices: Ints32, order: Ints, smallest: int) -> list[Level]:
    """A connected graph and coarser ones, the finest first.

    ``order`` is that in which nodes look for somebody to join; a graph of ``smallest`` nodes is not
    made coarser.
    """
    weights: Floats = np.ones(len(indices))
    masses: Floats = np.ones(len(indptr) - 1)
    degrees: Floats = np.diff(indptr).astype(np.float64)
    found = []
    while True:
        n = len(masses)
        parents, count = _joined(indptr, indices, weights, masses, order)
        last = n <= smallest or count > _LEFT * n
        parents = parents[:0] if last else parents
        found.append(Level(indptr, indices, weights, masses, degrees, parents))
        if last:
            return found
        indptr, indices, weights = _contracted(indptr, indices, weights, parents, count)
        masses, degrees = (_added(sums, parents, count) for sums in (masses, degrees))
        order = np.argsort(masses, kind="stable")


def _added(sums: Floats, groups: Ints32, count: int) -> Floats:
    """Add up what the nodes of each group have."""
    total = np.zeros(count)
    np.add.at(total, groups, sums)
    return total


@compiled
def _joined(indptr, indices, weights, masses, order):  # type: ignore[no-untyped-def]
    """The group of every node: that of the neighbour with most edges to it for its size."""
    n = len(masses)
    groups = np.full(n, -1, dtype=np.int32)
    sizes, total = np.zeros(n, dtype=np.int32), np.zeros(n)
    count = 0
    for u in order:
        if groups[u] >= 0:
            continue
        best, score = -1, 0.0
        for e in range(indptr[u], indptr[u + 1]):
            v = indices[e]
            group = groups[v]
            if group >= 0 and sizes[group] >= _JOINED:
                continue
            mass = masses[v] if group < 0 else total[group]
            found = weights[e] / (mass * (indptr[v + 1] - indptr[v]))
            if found > score:
                best, score = v, found
        if best >= 0 and groups[best] >= 0:
            group = groups[best]
        else:
            group = count
            count += 1
            if best >= 0:
                groups[best] = group
                sizes[group] += 1
                total[group] += masses[best]
        groups[u] = group
        sizes[group] += 1
        total[group] += masses[u]
    return groups, count


@compiled
def _contracted(indptr, indices, weights, groups, count):  # type: ignore[no-untyped-def]
    """The rows of the graph of groups; edges within one are gone, others are added up."""
    n = len(groups)
    starts = np.zeros(count + 1, dtype=np.int64)
    for u in range(n):
        starts[groups[u] + 1] += 1
    for g in range(count):
        starts[g + 1] += starts[g]
    members, at = np.empty(n, dtype=np.int32), starts[:-1].copy()
    for u in range(n):
        members[at[groups[u]]] = u
        at[groups[u]] += 1
    rows = np.zeros(count + 1, dtype=np.int64)
    columns, sums = np.empty(len(indices), dtype=np.int32), np.empty(len(indices))
    seen, filled = np.full(count, -1, dtype=np.int64), 0
    for g in range(count):
        first = filled
        for i in range(starts[g], starts[g + 1]):
            for e in range(indptr[members[i]], indptr[members[i] + 1]):
                other = groups[indices[e]]
                if other == g:
                    continue
                if seen[other] < first:
                    seen[other] = filled
                    columns[filled], sums[filled] = other, 0.0
                    filled += 1
                sums[seen[other]] += weights[e]
        rows[g + 1] = filled
    return rows, columns[:filled].copy(), sums[:filled].copy()
