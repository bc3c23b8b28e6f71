"""Counts of a graph's colours, as a sparse row of several blocks.

A colour is a hash of what is found at a place of a graph; equal surroundings have equal colours,
in any graph, whatever the order of nodes. Blocks:

- ``atoms``: labels, degrees and single features of the nodes, labels and features of the edges;
- ``near``: what surrounds a node within one and within two steps (Weisfeiler and Lehman's colours);
- ``far``: likewise within three and four steps;
- ``paths``: the labels of two nodes and the distance between them, up to four steps;
- ``rings``: the labels of an edge's ends and the size of the smallest ring through it, up to eight;
- ``shape``: degrees, those around them within two steps, sizes of rings: no labels;
- ``profile``: degrees, triangles and sizes in coarse classes, which large dense graphs share.

No vocabulary is kept: a colour's column follows from its hash and a key, so nothing of a graph that
is gone is left in the columns of others. A row is ``log(1 + count)``, each block of length 1. Sums
run in the order of columns, so products of two rows have the same bits either way round.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from grapheraser.graph import Graph
from grapheraser.graphs.encoding import HEADER
from grapheraser.kernels.compiled import compiled
from grapheraser.kernels.elementary import logarithm
from grapheraser.kernels.hashing import mixed, paired
from grapheraser.kernels.paged import feature_rows
from grapheraser.seeding import derive

BLOCKS = ("atoms", "near", "far", "paths", "rings", "shape", "profile")
ATOMS, NEAR, FAR, PATHS, RINGS, SHAPE, PROFILE = range(len(BLOCKS))
# Columns of a block.
SIZE = 2**13
COLUMNS = len(BLOCKS) * SIZE
# Steps between the ends of a path, and nodes of a ring.
_PATH, _RING = 4, 8
_STEPS = 4


class SparseRows(NamedTuple):
    """Rows of colours.

    Attributes:
        pointers: int64 ``[m, len(BLOCKS) + 1]``, where each block of a row begins, and its end.
        columns: int32, ascending within a row.
        values: float32.
        sizes: float64 ``[m]``, log(1 + nodes).
    """

    pointers: NDArray[np.int64]
    columns: NDArray[np.int32]
    values: NDArray[np.float32]
    sizes: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.pointers)

    def taken(self, rows: NDArray[np.int64]) -> SparseRows:
        """Return some of the rows, in their order."""
        return SparseRows(*_taken(*self, rows))

    def and_more(self, others: SparseRows) -> SparseRows:
        """Append other rows."""
        return SparseRows(
            np.append(self.pointers, len(self.columns) + others.pointers, axis=0),
            np.append(self.columns, others.columns),
            np.append(self.values, others.values),
            np.append(self.sizes, others.sizes),
        )


def coloured(graph: Graph, places: NDArray[np.int64], seed: int) -> SparseRows:
    """Return the rows of the graphs at these places."""
    pointers, _, values = feature_rows(graph.table, places)
    return SparseRows(*_rows(pointers, values, _key(seed)))


def coloured_rows(x: sp.csr_array, seed: int) -> SparseRows:
    """Return the rows of graphs that are written in rows of features; see `encoding`."""
    return SparseRows(*_rows(x.indptr.astype(np.int64), x.data, _key(seed)))


def _key(seed: int) -> np.uint64:
    return np.uint64(derive(seed, "colours"))


@compiled
def _taken(pointers, columns, values, sizes, rows):  # type: ignore[no-untyped-def]
    new, total = pointers[rows], 0
    for i in range(len(rows)):
        new[i] += total - new[i, 0]
        total = new[i, -1]
    out, carried = np.empty(total, dtype=np.int32), np.empty(total, dtype=np.float32)
    start = 0
    while start < len(rows):  # a run of rows that follow each other is copied at once
        end = start + 1
        while end < len(rows) and rows[end] == rows[end - 1] + 1:
            end += 1
        first, last = pointers[rows[start], 0], pointers[rows[end - 1], -1]
        out[new[start, 0] : new[end - 1, -1]] = columns[first:last]
        carried[new[start, 0] : new[end - 1, -1]] = values[first:last]
        start = end
    return new, out, carried, sizes[rows]


@compiled
def _rows(pointers, values, key):  # type: ignore[no-untyped-def]
    counts = np.zeros(COLUMNS, dtype=np.int32)
    m, end = len(pointers) - 1, 0
    out, sizes = np.empty((m, len(BLOCKS) + 1), dtype=np.int64), np.empty(m)
    columns, carried = np.empty(1024, dtype=np.int32), np.empty(1024, dtype=np.float32)
    for r in range(m):
        row = values[pointers[r] : pointers[r + 1]]
        seen, start = _colours_of(row, key, counts), end
        end = start + len(seen)
        if end > len(columns):
            columns, carried = _longer(columns, carried, end)
        for i in range(len(seen)):
            columns[start + i] = seen[i]
            carried[start + i] = np.float32(logarithm(1.0 + counts[seen[i]]))
            counts[seen[i]] = 0
        out[r] = start + np.searchsorted(seen, np.arange(len(BLOCKS) + 1) * SIZE)
        for block in range(len(BLOCKS)):
            _unit(carried[out[r, block] : out[r, block + 1]])
        sizes[r] = logarithm(1.0 + _number(row, 0))
    return out, columns[:end].copy(), carried[:end].copy(), sizes


@compiled
def _longer(columns, carried, end):  # type: ignore[no-untyped-def]
    more, rest = np.empty(2 * end, dtype=np.int32), np.empty(2 * end, dtype=np.float32)
    more[: len(columns)] = columns
    rest[: len(carried)] = carried
    return more, rest


@compiled
def _unit(carried):  # type: ignore[no-untyped-def]
    """Give a block the length 1."""
    total = 0.0
    for value in carried:
        total += np.float64(value) * np.float64(value)
    length = math.sqrt(total)
    for i in range(len(carried)):
        carried[i] = np.float32(carried[i] / length)


@compiled(inline=True)
def _number(row, at):  # type: ignore[no-untyped-def]
    """Read a number of a row; see `encoding`."""
    value = np.int64(row[at])
    return value >> 1 if value & 1 else -(value >> 1)


@compiled
def _column(block, kind, colour, key):  # type: ignore[no-untyped-def]
    """Return the column of a colour: of its block, its kind and its hash."""
    z = paired(paired(key, np.uint64(kind)), colour)
    return np.int32(block * SIZE + np.int64(z >> np.uint64(51)))


@compiled(inline=True)
def _count(column, counts, seen, end):  # type: ignore[no-untyped-def]
    if counts[column] == 0:
        seen[end] = column
        end += 1
    counts[column] += 1
    return end


@compiled
def _colours_of(row, key, counts):  # type: ignore[no-untyped-def]
    """Count the colours of one graph; returns the sorted columns that occur.

    Whatever is summed over neighbours is a sum of hashes modulo 2**64, which has no order.
    """
    n, m, f, g = _number(row, 0), _number(row, 1), _number(row, 2), _number(row, 3)
    directed = _number(row, 4) == 1
    labels, colours = np.empty(n, dtype=np.uint64), np.empty(n, dtype=np.uint64)
    most = len(BLOCKS) + n * (11 + f + _STEPS + 2) + m * (5 + g) + n * n
    seen, end = np.empty(min(COLUMNS, most), dtype=np.int32), 0
    for block in range(len(BLOCKS)):  # a constant, so that no block is empty
        end = _count(_column(block, 0, np.uint64(0), key), counts, seen, end)
    starts, ends, kinds = _adjacency(row, n, m, f, g, directed, key)
    end = _count_atoms(row, n, m, f, g, starts, labels, key, counts, seen, end)
    colours[:] = labels
    for step in range(_STEPS):
        colours = _refined(colours, starts, ends, kinds)
        block = NEAR if step < 2 else FAR
        for i in range(n):
            end = _count(_column(block, step + 1, colours[i], key), counts, seen, end)
    for i in range(n):
        colours[i] = mixed(np.uint64(starts[i + 1] - starts[i]))
        end = _count(_column(SHAPE, 1, colours[i], key), counts, seen, end)
    plain = np.zeros(len(kinds), dtype=np.uint64)
    for step in range(2):
        colours = _refined(colours, starts, ends, plain)
        for i in range(n):
            end = _count(_column(SHAPE, step + 2, colours[i], key), counts, seen, end)
    end = _count_paths(labels, starts, ends, key, counts, seen, end)
    end = _count_rings(labels, starts, ends, key, counts, seen, end)
    end = _count_profile(starts, ends, key, counts, seen, end)
    return np.sort(seen[:end])


@compiled
def _count_atoms(row, n, m, f, g, starts, labels, key, counts, seen, end):  # type: ignore[no-untyped-def]
    """Count what nodes and edges carry; writes a hash of all that a node carries to ``labels``."""
    for i in range(n):
        at = HEADER + i * (2 + f)
        label = mixed(np.uint64(_number(row, at + 1)) + np.uint64(1))
        end = _count(_column(ATOMS, 1, label, key), counts, seen, end)
        for c in range(f):
            cell = paired(np.uint64(c), np.uint64(_number(row, at + 2 + c)))
            end = _count(_column(ATOMS, 2, cell, key), counts, seen, end)
            label = paired(label, cell)
        labels[i] = label
        end = _count(
            _column(ATOMS, 3, np.uint64(starts[i + 1] - starts[i]), key), counts, seen, end
        )
    for e in range(m):
        at = HEADER + n * (2 + f) + e * (3 + g)
        end = _count(_column(ATOMS, 4, np.uint64(_number(row, at + 2)), key), counts, seen, end)
        for c in range(g):
            cell = paired(np.uint64(c), np.uint64(_number(row, at + 3 + c)))
            end = _count(_column(ATOMS, 5, cell, key), counts, seen, end)
    return end


@compiled
def _adjacency(row, n, m, f, g, directed, key):  # type: ignore[no-untyped-def]
    """Neighbours of each node, and a hash of what the edge to each of them carries.

    Edges are walked both ways; which way is part of the hash where they have directions.
    """
    starts = np.zeros(n + 1, dtype=np.int64)
    first = HEADER + n * (2 + f)
    for e in range(m):
        u, v = _number(row, first + e * (3 + g)), _number(row, first + e * (3 + g) + 1)
        starts[u + 1] += 1
        if u != v:
            starts[v + 1] += 1
    for i in range(n):
        starts[i + 1] += starts[i]
    ends, kinds = np.empty(starts[n], dtype=np.int64), np.empty(starts[n], dtype=np.uint64)
    at = starts[:n].copy()
    for e in range(m):
        place = first + e * (3 + g)
        u, v = _number(row, place), _number(row, place + 1)
        kind = np.uint64(_number(row, place + 2))
        for c in range(g):
            kind = paired(kind + np.uint64(c), np.uint64(_number(row, place + 3 + c)))
        ends[at[u]], kinds[at[u]] = v, paired(key, kind)
        at[u] += 1
        if u != v:
            back = kind + np.uint64(1 << 32) if directed else kind
            ends[at[v]], kinds[at[v]] = u, paired(key, back)
            at[v] += 1
    return starts, ends, kinds


@compiled
def _refined(colours, starts, ends, kinds):  # type: ignore[no-untyped-def]
    out = np.empty_like(colours)
    for i in range(len(colours)):
        total = np.uint64(0)
        for e in range(starts[i], starts[i + 1]):
            total += mixed(paired(kinds[e], colours[ends[e]]))
        out[i] = paired(mixed(colours[i]), total)
    return out


@compiled
def _count_paths(labels, starts, ends, key, counts, seen, end):  # type: ignore[no-untyped-def]
    n = len(labels)
    distance, queue = np.full(n, -1, dtype=np.int64), np.empty(n, dtype=np.int64)
    for source in range(n):
        distance[source], queue[0], first, last = 0, source, 0, 1
        while first < last and distance[queue[first]] < _PATH:
            u = queue[first]
            first += 1
            for e in range(starts[u], starts[u + 1]):
                if distance[ends[e]] < 0:
                    distance[ends[e]] = distance[u] + 1
                    queue[last] = ends[e]
                    last += 1
        for i in range(last):
            node = queue[i]
            if node > source:
                both = mixed(labels[source]) + mixed(labels[node])
                column = _column(PATHS, distance[node], both, key)
                end = _count(column, counts, seen, end)
            distance[node] = -1
    return end


@compiled
def _count_rings(labels, starts, ends, key, counts, seen, end):  # type: ignore[no-untyped-def]
    n = len(labels)
    distance, queue = np.full(n, -1, dtype=np.int64), np.empty(n, dtype=np.int64)
    for source in range(n):
        for edge in range(starts[source], starts[source + 1]):
            target = ends[edge]
            if target <= source:
                continue
            distance[source], queue[0], first, last = 0, source, 0, 1
            while first < last and distance[target] < 0 and distance[queue[first]] < _RING - 1:
                u = queue[first]
                first += 1
                for e in range(starts[u], starts[u + 1]):
                    v = ends[e]
                    if distance[v] < 0 and not (u == source and v == target):
                        distance[v] = distance[u] + 1
                        queue[last] = v
                        last += 1
            size = distance[target] + 1
            both = mixed(labels[source]) + mixed(labels[target])
            end = _count(_column(RINGS, 1 + size, both, key), counts, seen, end)
            end = _count(_column(SHAPE, 5, np.uint64(size), key), counts, seen, end)
            for i in range(last):
                distance[queue[i]] = -1
    return end


@compiled
def _count_profile(starts, ends, key, counts, seen, end):  # type: ignore[no-untyped-def]
    """Count coarse classes of each node: how many neighbours, triangles, and shares of both."""
    n = len(starts) - 1
    near = np.zeros(n, dtype=np.bool_)
    for i in range(n):
        own = ends[starts[i] : starts[i + 1]]
        degree, around, triangles = len(own), 0, 0
        for u in own:
            near[u] = True
        for u in own:
            around += starts[u + 1] - starts[u]
            for e in range(starts[u], starts[u + 1]):
                triangles += near[ends[e]] and ends[e] != i and u != i
        for u in own:
            near[u] = False
        triangles //= 2
        joined = 8 * degree // max(n - 1, 1)
        closed = 8 * triangles // max(degree * (degree - 1) // 2, 1)
        found = (
            _halves(degree + 1, 1),
            _halves(triangles + 1, 1),
            joined,
            closed,
            _halves(around + degree, max(degree, 1)),
            64 * joined + closed,
            _halves(n + 1, 1),
        )
        for kind, value in enumerate(found):
            end = _count(_column(PROFILE, kind + 1, np.uint64(value), key), counts, seen, end)
    return end


@compiled
def _halves(value, over):  # type: ignore[no-untyped-def]
    """Return floor(2 log2(value / over)) in whole numbers; 0 for less than 1."""
    out = 0
    while (np.int64(over) * over) << (out + 1) <= np.int64(value) * value:
        out += 1
    return out
