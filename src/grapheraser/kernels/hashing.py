"""The hashes behind every derived random number, for compiled code."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from grapheraser.kernels.compiled import compiled
from grapheraser.seeding import GOLDEN, MIX_A, MIX_B, derive, keyed_hash


def keyed_uniform(rows: NDArray[np.integer], num_columns: int, key: int) -> NDArray[np.float32]:
    """Uniform numbers in [0, 1): entry (r, c) depends on the key, ``rows[r]`` and c alone.

    Returns: float32 ``[len(rows), num_columns]``.
    """
    row_keys = keyed_hash(rows, key)
    column_keys = keyed_hash(np.arange(num_columns), derive(key, "columns"))
    return _uniform(row_keys, column_keys)


@compiled
def mixed(z: np.uint64) -> np.uint64:
    """One round of splitmix64's finaliser."""
    z = (z ^ (z >> np.uint64(30))) * MIX_A
    z = (z ^ (z >> np.uint64(27))) * MIX_B
    return z ^ (z >> np.uint64(31))


@compiled
def paired(a: np.uint64, b: np.uint64) -> np.uint64:
    """A hash of b under the key a."""
    return mixed(a + b * GOLDEN)


@compiled
def _uniform(row_keys: NDArray[np.uint64], column_keys: NDArray[np.uint64]) -> NDArray[np.float32]:
    out = np.empty((len(row_keys), len(column_keys)), dtype=np.float32)
    for r in range(len(row_keys)):
        for c in range(len(column_keys)):
            z = mixed(row_keys[r] + column_keys[c])
            out[r, c] = np.float32(z >> np.uint64(40)) * np.float32(2.0**-24)
    return out
