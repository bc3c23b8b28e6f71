"""Randomness that is derived, never drawn from a shared stream.

Every random number in the package is a function of (seed, stage, shard id, ...). Nothing depends
on a global generator or on how many shards ran before, so removing one node or one shard can't
change the random numbers of another.
"""

from __future__ import annotations

import hashlib
import json

import numpy as np
from numba import njit
from numpy.typing import NDArray

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX_A = np.uint64(0xBF58476D1CE4E5B9)
_MIX_B = np.uint64(0x94D049BB133111EB)


def derive(seed: int, *path: str | int) -> int:
    """A 64-bit seed for one place in the computation, e.g. ``derive(0, "train", 7)``."""
    text = json.dumps([int(seed), *path], separators=(",", ":"))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little")


def generator(seed: int, *path: str | int) -> np.random.Generator:
    """A numpy generator of its own for one place in the computation."""
    return np.random.Generator(np.random.PCG64(derive(seed, *path)))


def keyed_hash(ids: NDArray[np.integer], key: int) -> NDArray[np.uint64]:
    """A 64-bit hash of every id under a key (splitmix64); each depends on its own id alone."""
    with np.errstate(over="ignore"):
        z = np.asarray(ids).astype(np.uint64) * GOLDEN + np.uint64(key)
        # Two rounds: consecutive ids under related keys must not show a pattern.
        for _ in range(2):
            z = (z ^ (z >> np.uint64(30))) * _MIX_A
            z = (z ^ (z >> np.uint64(27))) * _MIX_B
            z = (z ^ (z >> np.uint64(31))) + GOLDEN
    return z


def keyed_uniform(rows: NDArray[np.integer], num_columns: int, key: int) -> NDArray[np.float32]:
    """Uniform numbers in [0, 1): entry (r, c) depends on the key, ``rows[r]`` and c alone.

    Returns: float32 ``[len(rows), num_columns]``.
    """
    row_keys = keyed_hash(rows, key)
    column_keys = keyed_hash(np.arange(num_columns), derive(key, "columns"))
    return _mixed(row_keys, column_keys)


@njit(cache=True, nogil=True)
def mixed(z: np.uint64) -> np.uint64:
    """One round of splitmix64's finaliser, for compiled code."""
    z = (z ^ (z >> np.uint64(30))) * _MIX_A
    z = (z ^ (z >> np.uint64(27))) * _MIX_B
    return z ^ (z >> np.uint64(31))


@njit(cache=True, nogil=True)
def paired(a: np.uint64, b: np.uint64) -> np.uint64:
    """A hash of b under the key a, for compiled code."""
    return mixed(a + b * GOLDEN)


@njit(cache=True)
def _mixed(row_keys: NDArray[np.uint64], column_keys: NDArray[np.uint64]) -> NDArray[np.float32]:
    out = np.empty((len(row_keys), len(column_keys)), dtype=np.float32)
    for r in range(len(row_keys)):
        for c in range(len(column_keys)):
            z = mixed(row_keys[r] + column_keys[c])
            out[r, c] = np.float32(z >> np.uint64(40)) * np.float32(2.0**-24)
    return out
