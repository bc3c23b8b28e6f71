"""Which few neighbours of a node count where not all can.

Those with the smallest keyed hashes. That follows from ids alone: deleting a neighbour that does
not count changes nothing, deleting one that does lets in the next, and a fresh fit on what is left
chooses the same.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from grapheraser.kernels.compiled import compiled
from grapheraser.kernels.hashing import paired


@compiled
def room_for(count: int) -> tuple[NDArray[np.uint64], NDArray[np.int32]]:
    """Room for the hashes and the positions of so many neighbours."""
    return np.empty(count, dtype=np.uint64), np.empty(count, dtype=np.int32)


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
    """Write the allowed neighbours that count, as many as there is room, by position; how many."""
    own = paired(key, np.uint64(ids[row]))
    most, count = len(chosen), 0
    for e in range(indptr[row], indptr[row + 1]):
        other = indices[e]
        if not allowed[other]:
            continue
        value = paired(own, np.uint64(ids[other]))
        if count == most and value >= hashes[most - 1]:
            continue
        at = min(count, most - 1)
        while at > 0 and hashes[at - 1] > value:
            hashes[at], chosen[at] = hashes[at - 1], chosen[at - 1]
            at -= 1
        hashes[at], chosen[at] = value, other
        count = min(count + 1, most)
    for i in range(1, count):
        for at in range(i, 0, -1):
            if chosen[at - 1] > chosen[at]:
                chosen[at - 1], chosen[at] = chosen[at], chosen[at - 1]
    return count
