"""A random projection of wide sparse features that depends on the seed alone.

Every feature column is sent to a few of the output columns, each with a sign. Where it goes is a
keyed hash of its number, so nothing in the data has a part in it. Sparse rows stay cheap to
project: four additions per non-zero feature instead of one per output column.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from grapheraser.seeding import derive, keyed_hash

_SPREAD = 4
MOST_COLUMNS = 2**16 - 1


@dataclass(frozen=True, eq=False)
class Sketch:
    """Where each feature column goes.

    Attributes:
        targets: uint16 ``[num_features * spread]``, output columns, feature after feature; small
            integers, because the projection lives on the cache.
        signs: float32, likewise.
        width: number of output columns.
    """

    targets: NDArray[np.uint16]
    signs: NDArray[np.float32]
    width: int

    @classmethod
    @lru_cache(maxsize=8)
    def of(cls, num_features: int, columns: int, seed: int) -> Sketch:
        """Features as they are, or projected to ``columns`` of them where there are more."""
        if num_features <= columns:
            own = np.arange(num_features, dtype=np.uint16)
            return cls(own, np.ones(num_features, dtype=np.float32), num_features)
        slots = np.arange(num_features * _SPREAD)
        hashes = keyed_hash(slots, derive(seed, "sketch"))
        targets = (hashes >> np.uint64(1)) % np.uint64(columns)
        signs = np.where(hashes & np.uint64(1), 1.0, -1.0) / math.sqrt(_SPREAD)
        return cls(targets.astype(np.uint16), signs.astype(np.float32), columns)
