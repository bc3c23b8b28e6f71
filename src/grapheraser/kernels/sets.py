"""Small sets of node ids or places in compiled code: open addressing, never more than half full.

A set is an array of keys in the order in which they came, how many there are, and slots::

    slots, keys = room_for_set(most)
    rank = put(slots, keys, count, key)    # == count: it is new, and there is one more now
    rank = find(slots, keys, key)          # -1: not there
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from grapheraser.kernels.compiled import compiled
from grapheraser.kernels.hashing import mixed


@compiled
def room_for_set(most: int) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """The slots and the keys of a set of at most so many."""
    bits = 3
    while (1 << bits) < 2 * most:
        bits += 1
    return np.full(1 << bits, -1, dtype=np.int32), np.empty(most, dtype=np.int64)


@compiled
def _slot(slots: NDArray[np.int32], keys: NDArray[np.int64], key: int) -> np.uint64:
    mask = np.uint64(len(slots) - 1)
    slot = mixed(np.uint64(key)) & mask
    while slots[slot] >= 0 and keys[slots[slot]] != key:
        slot = (slot + np.uint64(1)) & mask
    return slot


@compiled
def find(slots: NDArray[np.int32], keys: NDArray[np.int64], key: int) -> int:
    """The rank of a key among those that came, or -1."""
    return slots[_slot(slots, keys, key)]


@compiled
def put(slots: NDArray[np.int32], keys: NDArray[np.int64], count: int, key: int) -> int:
    """The rank of a key, which is added if it is not there; there are ``count`` keys so far."""
    slot = _slot(slots, keys, key)
    if slots[slot] < 0:
        slots[slot] = count
        keys[count] = key
    return slots[slot]


@compiled
def rank_of(key: int, among: NDArray[np.int64]) -> int:
    """The rank of a key in a sorted array; -1 where it is not there."""
    low, high = 0, len(among)
    while low < high:
        middle = (low + high) // 2
        if among[middle] < key:
            low = middle + 1
        else:
            high = middle
    return low if low < len(among) and among[low] == key else -1


def ranks(keys: NDArray[np.int64], among: NDArray[np.int64]) -> NDArray[np.int64]:
    """The rank of each key in a sorted array; -1 where it is not there."""
    at = np.searchsorted(among, keys)
    there = at < len(among)
    there[there] = among[at[there]] == keys[there]
    return np.where(there, at, -1)
