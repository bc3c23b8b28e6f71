"""The hashes behind every derived random number, for compiled code."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from grapheraser.arrays import Floats32, Ints
from grapheraser.kernels.compiled import compiled
from grapheraser.seeding import GOLDEN, derive
from grapheraser.seeding import mixed as _mixed

mixed = compiled(_mixed)


def keyed_uniform(rows: NDArray[np.integer], num_columns: int, key: int) -> Floats32:
    """Float32 in [0, 1): entry (r, c) depends on the key, ``rows[r]`` and c alone."""
    keys = np.uint64(key), np.uint64(derive(key, "columns"))
    uniform: Floats32 = _uniform(rows.astype(np.int64), num_columns, *keys)
    return uniform


@compiled
def paired(a: np.uint64, b: np.uint64) -> np.uint64:
    """A hash of b under the key a."""
    return mixed(a + b * GOLDEN)


@compiled
def _keyed(number: int, key: np.uint64) -> np.uint64:
    """`seeding.keyed_hash` of one number."""
    z = np.uint64(number) * GOLDEN + key
    for _ in range(2):
        z = mixed(z) + GOLDEN
    return z


@compiled
def _uniform(rows: Ints, num_columns: int, key: np.uint64, columns_key: np.uint64) -> Floats32:
    out = np.empty((len(rows), num_columns), dtype=np.float32)
    columns = np.empty(num_columns, dtype=np.uint64)
    for c in range(num_columns):
        columns[c] = _keyed(c, columns_key)
    for r in range(len(rows)):
        row = _keyed(rows[r], key)
        for c in range(num_columns):
            z = mixed(row + columns[c])
            out[r, c] = np.float32(z >> np.uint64(40)) * np.float32(2.0**-24)
    return out
