"""The numbers of a pair of nodes, and what they were read from.

A pair is described by `NUMBERS`, in an order that its two nodes have no part in. They follow from
the graph without the edge between the two, and each pair's from a bounded part of it. In a directed
graph a pair is a source and a target, and has the numbers of `DIRECTIONS` besides, which follow
from the graph without the edge from the source to the target. What was read
is kept beside the numbers as hashes of ids, in three ways of reading: *around*, where a node's
degree or neighbours count; *step*, where its features and the few neighbours that stand for it
count; *far*, where its features alone count. After a change only the pairs that read something that
is not what it was are computed again. A hash may meet another node's: then a pair is computed again
that need not be, with the same result.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from grapheraser.aggregation.base import Change
from grapheraser.graph import Graph
from grapheraser.kernels.compiled import compiled
from grapheraser.kernels.hashing import mixed
from grapheraser.kernels.neighbourhoods import (
    ANY,
    chosen_alike,
    features_differ,
    places_for,
)
from grapheraser.kernels.paged import NOWHERE, locate
from grapheraser.links.adjacency import adjacent, counted_degree
from grapheraser.links.counts import (
    DIRECTIONS,
    MAX_AROUND,
    MAX_COMMON,
    NUMBERS,
    count_common,
    count_directions,
    count_paths,
    room_for_counts,
)
from grapheraser.links.rows import (
    FIRST,
    MAX_FAR,
    SECOND,
    cosines,
    describe,
    room_for_rows,
    room_for_walk,
)
from grapheraser.seeding import derive

_AROUND, _STEP, _FAR = range(3)
# Ids are told apart by so many bits of a hash.
_BITS = 17
_MAX_NEAR, _MAX_FAR = 2 * SECOND, 2 * MAX_FAR
_MAX_READ = 2 + MAX_COMMON + 2 * MAX_AROUND + _MAX_NEAR + _MAX_FAR

Pairs = NDArray[np.int64]
Numbers = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Described:
    """Pairs with their numbers and with what those were read from; follows from the graph."""

    pairs: Pairs  # int64 ``[m, 2]`` ids, sorted, each once; u < v, or sources and targets
    numbers: Numbers  # float64 ``[m, len(NUMBERS)]``, in a directed graph with `DIRECTIONS`
    pointers: NDArray[np.int64]  # int64 ``[m + 1]``, where what each pair has read begins
    read: NDArray[np.uint32]  # uint32, a hash of an id and how it was read

    @classmethod
    def of(cls, graph: Graph, pairs: Pairs, seed: int) -> Described:
        """Describe all of these pairs."""
        return cls(pairs, *_described(graph, pairs, seed, reading=True))

    def changed(self, change: Change, graph: Graph, pairs: Pairs, seed: int) -> Described:
        """`of` another list of pairs after a change, from what the change left as it was."""
        flags = _flags(change.before.graph.table, graph.table, change.touched, key_of(seed))
        _flag_all(flags, change.gone)
        source = _sources(self.pairs, pairs, self.pointers, self.read, flags)
        again = np.flatnonzero(source < 0)
        fresh = _described(graph, pairs[again], seed, reading=True)
        old = self.numbers, self.pointers, self.read
        return Described(pairs, *_merged(source, *old, *fresh))


def numbers_of(graph: Graph, pairs: Pairs, seed: int) -> Numbers:
    """The numbers of pairs of ids that are in the graph, a row each; see `Described`."""
    return _described(graph, pairs, seed, reading=False)[0]


@lru_cache(maxsize=8)
def key_of(seed: int) -> np.uint64:
    """Return the key that decides which neighbours of a hub count."""
    return np.uint64(derive(seed, "links", "neighbours"))


def _described(
    graph: Graph, pairs: Pairs, seed: int, *, reading: bool
) -> tuple[Numbers, NDArray[np.int64], NDArray[np.uint32]]:
    found: tuple[Numbers, NDArray[np.int64], NDArray[np.uint32]] = _describe_all(
        graph.table, np.ascontiguousarray(pairs), key_of(seed), graph.num_features, reading
    )
    return found


@compiled(inline=True)
def _mark(node: int, way: int) -> np.uint32:
    """A hash of an id, and how it was read."""
    return np.uint32((mixed(np.uint64(node)) >> np.uint64(64 - _BITS)) << np.uint64(2)) | np.uint32(
        way
    )


@compiled
def _describe_all(table, pairs, key, num_features, reading):  # type: ignore[no-untyped-def]
    width = len(NUMBERS) + (len(DIRECTIONS) if table.directed else 0)
    out = np.zeros((len(pairs), width))
    pointers = np.zeros(len(pairs) + 1, dtype=np.int64)
    read = np.empty(len(pairs) * _MAX_READ if reading else 0, dtype=np.uint32)
    counts, room = room_for_counts(), room_for_walk(num_features)
    rows, others = room_for_rows(num_features), room_for_rows(num_features)
    around = np.empty(2 + MAX_COMMON + 2 * MAX_AROUND, dtype=np.int64)
    near = np.empty(_MAX_NEAR, dtype=np.int64)
    far = np.empty(_MAX_FAR, dtype=np.int64)
    end = 0
    for i in range(len(pairs)):
        u, v = locate(table, pairs[i, 0]), locate(table, pairs[i, 1])
        edge = adjacent(table, u, pairs[i, 1])
        around[0], around[1] = pairs[i, 0], pairs[i, 1]
        seen = 2 + count_common(table, u, v, edge, key, out[i], counts, around[2:])
        out[i, 3], more = count_paths(table, u, v, edge, key, counts, around[seen:])
        seen += more
        without_v, without_u = (pairs[i, 1], pairs[i, 0]) if edge else (-1, -1)
        degrees = counted_degree(table, u, without_v), counted_degree(table, v, without_u)
        out[i, 4], out[i, 5] = min(degrees), max(degrees)
        if table.directed:
            count_directions(table, u, v, out[i])
        n, f = describe(rows, table, u, without_v, key, room, near, far)
        m, g = describe(others, table, v, without_u, key, room, near[n:], far[f:])
        cosines(rows, others, out[i, 6:])
        if reading:
            for node in around[:seen]:
                read[end] = _mark(node, _AROUND)
                end += 1
            for node in near[: n + m]:
                read[end] = _mark(node, _STEP)
                end += 1
            for node in far[: f + g]:
                read[end] = _mark(node, _FAR)
                end += 1
        pointers[i + 1] = end
    return out, pointers, read[:end].copy()


@compiled
def _flags(before, after, touched, key):  # type: ignore[no-untyped-def]
    """For each hash, the ways of reading in which a touched node is not what it was, as bits."""
    flags = np.zeros(1 << _BITS, dtype=np.uint8)
    hashes, chosen = places_for(FIRST)
    room = hashes, chosen, np.empty_like(chosen)
    for node in touched:
        at = _mark(node, 0) >> np.uint32(2)
        was, place = locate(before, node), locate(after, node)
        flags[at] |= 1 << _AROUND
        if was == NOWHERE:
            continue  # nothing has read a node that is new
        if features_differ(before, was, after, place):
            flags[at] |= (1 << _STEP) | (1 << _FAR)
        elif chosen_alike(before, was, after, place, ANY, key, room) < 0:
            flags[at] |= 1 << _STEP
    return flags


@compiled
def _flag_all(flags: NDArray[np.uint8], nodes: NDArray[np.int64]) -> None:
    for node in nodes:
        flags[_mark(node, 0) >> np.uint32(2)] = 7


@compiled
def _sources(old, new, pointers, read, flags):  # type: ignore[no-untyped-def]
    """Find each new pair among the old ones, if its numbers are what they were; else -1."""
    out = np.full(len(new), -1, dtype=np.int64)
    at = 0
    for i in range(len(new)):
        u, v = new[i]
        while at < len(old) and (old[at, 0] < u or (old[at, 0] == u and old[at, 1] < v)):
            at += 1
        if at < len(old) and old[at, 0] == u and old[at, 1] == v:
            stale = False
            for e in range(pointers[at], pointers[at + 1]):
                ways = flags[read[e] >> np.uint32(2)]
                stale |= (ways >> np.uint8(read[e] & np.uint32(3))) & 1 != 0
            out[i] = -1 if stale else at
    return out


@compiled
def _merged(source, numbers, pointers, read, fresh, fresh_pointers, fresh_read):  # type: ignore[no-untyped-def]
    """Numbers and what was read, of old pairs where there is a source and of fresh ones else."""
    out = np.empty((len(source), numbers.shape[1]))
    ends = np.zeros(len(source) + 1, dtype=np.int64)
    at = 0
    for i in range(len(source)):
        if source[i] >= 0:
            size = pointers[source[i] + 1] - pointers[source[i]]
        else:
            size = fresh_pointers[at + 1] - fresh_pointers[at]
            at += 1
        ends[i + 1] = ends[i] + size
    merged = np.empty(ends[-1], dtype=np.uint32)
    at = 0
    for i in range(len(source)):
        if source[i] >= 0:
            out[i] = numbers[source[i]]
            merged[ends[i] : ends[i + 1]] = read[pointers[source[i]] : pointers[source[i] + 1]]
        else:
            out[i] = fresh[at]
            merged[ends[i] : ends[i + 1]] = fresh_read[fresh_pointers[at] : fresh_pointers[at + 1]]
            at += 1
    return out, ends, merged
