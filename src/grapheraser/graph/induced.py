"""The edges between some nodes of a graph."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from grapheraser.kernels.compiled import compiled
from grapheraser.kernels.paged import NOWHERE, Table, degree_at, first_edge, locate, neighbour
from grapheraser.kernels.sets import find, put, room_for_set


class AdjacencyBlock(NamedTuple):
    """The neighbours of consecutive nodes.

    Attributes:
        low: the position of the first.
        indptr: int64, where the neighbours of each begin.
        indices: int32, positions of the neighbours.
    """

    low: int
    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]


@compiled
def ranked_rows(
    table: Table, places: NDArray[np.int64], ranks: NDArray[np.int32]
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Pointers and ranks of those neighbours of nodes that have one; ``ranks`` are by place."""
    most = 0
    for place in places:
        most += degree_at(table, place)
    indptr, indices = np.zeros(len(places) + 1, dtype=np.int64), np.empty(most, dtype=np.int32)
    end = 0
    for row in range(len(places)):
        first = first_edge(table, places[row])
        for e in range(degree_at(table, places[row])):
            place = locate(table, neighbour(first, e))
            if place != NOWHERE and ranks[place] >= 0:
                indices[end] = ranks[place]
                end += 1
        indptr[row + 1] = end
    return indptr, indices[:end].copy()


@compiled
def induced_edges(
    table: Table, places: NDArray[np.int64], ids: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """CSR over the ranks of sorted ids, which lie at these places.

    Most neighbours of a shard's nodes are in other shards; a roomy set tells them at once.
    """
    slots, keys = room_for_set(2 * len(ids))
    for rank in range(len(ids)):
        put(slots, keys, rank, ids[rank])
    most = 0
    for place in places:
        most += degree_at(table, place)
    indptr, indices = np.zeros(len(ids) + 1, dtype=np.int64), np.empty(most, dtype=np.int32)
    end = 0
    for rank in range(len(ids)):
        first = first_edge(table, places[rank])
        for e in range(degree_at(table, places[rank])):
            other = neighbour(first, e)
            found = find(slots, keys, other)
            if found >= 0:
                indices[end] = found
                end += 1
        indptr[rank + 1] = end
    return indptr, indices[:end].copy()
