"""A few neighbours of each node, where all would be too many.

Those with the smallest keyed hashes are chosen. The choice follows from ids alone: deleting a
neighbour that was not chosen changes nothing, deleting one that was lets in the next, and a fresh
fit on the remaining graph chooses the same.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from grapheraser.kernels.compiled import compiled
from grapheraser.kernels.hashing import paired


@compiled
def room_for(count: int) -> tuple[NDArray[np.uint64], NDArray[np.int32]]:
    """Room for the hashes and the positions of ``count`` neighbours."""
    return np.empty(count, dtype=np.uint64), np.empty(count, dtype=np.int32)


@compiled
def places_for(count: int) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """Room for the hashes and the places of ``count`` neighbours."""
    return np.empty(count, dtype=np.uint64), np.empty(count, dtype=np.int64)


@compiled
def chosen_neighbours(
    indptr: NDArray[np.int64],
    indices: NDArray[np.int32],
    ids: NDArray[np.int64],
    row: int,
    allowed: NDArray[np.bool_],
    key: np.uint64,
    hashes: NDArray[np.uint64],
    chosen: NDArray[np.int32],
) -> int:
    """Write the chosen among the allowed neighbours, by position; returns how many there are."""
    own = paired(key, np.uint64(ids[row]))
    count = 0
    for e in range(indptr[row], indptr[row + 1]):
        other = indices[e]
        if allowed[other]:
            value = paired(own, np.uint64(ids[other]))
            count = admit(value, other, hashes, chosen, count)
    put_in_order(chosen, count)
    return count


@compiled
def admit(
    value: np.uint64,
    item: int,
    hashes: NDArray[np.uint64],
    chosen: NDArray[Any],
    count: int,
) -> int:
    """Let an item in among the smallest hashes if it is one of them; returns how many there are."""
    most = len(chosen)
    if count == most and value >= hashes[most - 1]:
        return count
    at = min(count, most - 1)
    while at > 0 and hashes[at - 1] > value:
        hashes[at], chosen[at] = hashes[at - 1], chosen[at - 1]
        at -= 1
    hashes[at], chosen[at] = value, item
    return min(count + 1, most)


@compiled
def put_in_order(chosen: NDArray[Any], count: int) -> None:
    """Sort the first ``count`` items, in place."""
    for i in range(1, count):
        for at in range(i, 0, -1):
            if chosen[at - 1] > chosen[at]:
                chosen[at - 1], chosen[at] = chosen[at], chosen[at - 1]
