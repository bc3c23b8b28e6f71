"""The edges between some nodes of a graph."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from grapheraser.kernels.compiled import compiled
from grapheraser.kernels.hashing import mixed
from grapheraser.kernels.paged import Table, degree_at, first_edge, neighbour


@compiled
def induced_edges(
    table: Table, places: NDArray[np.int64], ids: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """CSR over the ranks of sorted ids, which lie at these places.

    An open-addressing table finds the rank of a neighbour; most neighbours of a shard's nodes are
    in other shards and meet an empty slot.
    """
    bits = 4
    while (1 << bits) < 4 * len(ids):
        bits += 1
    mask = np.uint64((1 << bits) - 1)
    slots = np.full(1 << bits, -1, dtype=np.int32)
    for rank in range(len(ids)):
        slot = mixed(np.uint64(ids[rank])) & mask
        while slots[slot] >= 0:
            slot = (slot + np.uint64(1)) & mask
        slots[slot] = rank
    most = 0
    for place in places:
        most += degree_at(table, place)
    indptr, indices = np.zeros(len(ids) + 1, dtype=np.int64), np.empty(most, dtype=np.int32)
    end = 0
    for rank in range(len(ids)):
        first = first_edge(table, places[rank])
        for e in range(degree_at(table, places[rank])):
            other = neighbour(first, e)
            slot = mixed(np.uint64(other)) & mask
            while slots[slot] >= 0 and ids[slots[slot]] != other:
                slot = (slot + np.uint64(1)) & mask
            if slots[slot] >= 0:
                indices[end] = slots[slot]
                end += 1
        indptr[rank + 1] = end
    return indptr, indices[:end].copy()
