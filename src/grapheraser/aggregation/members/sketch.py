"""A random projection of wide sparse features that depends on the seed alone.

Every feature column is sent to a few of the output columns, each with a sign. Where it goes is a
keyed hash of its number, so nothing in the data has a part in it. Sparse rows stay cheap to
project: a few additions per non-zero feature instead of one per output column.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from grapheraser.seeding import derive, keyed_hash

MOST_COLUMNS = 2**16 - 1


@dataclass(frozen=True, eq=False)
class Projection:
    """Where each feature column goes.

    Attributes:
        targets: uint16 ``[num_features * spread]``, output columns, feature after feature; small
            integers, because the projection lives on the cache.
        signs: float32, likewise.
    """

    targets: NDArray[np.uint16]
    signs: NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Sketch:
    """How a row is made of features.

    Attributes:
        own: of a node's own features.
        around: of the features around it; the same one, unless the two are kept apart.
        width: number of output columns.
    """

    own: Projection
    around: Projection
    width: int

    @property
    def apart(self) -> bool:
        """Whether a node's own features can be told from those around it."""
        return self.own is not self.around

    @classmethod
    @lru_cache(maxsize=8)
    def of(
        cls, num_features: int, columns: int, seed: int, *, spread: int = 2, apart: bool = False
    ) -> Sketch:
        """Features as they are, or projected to ``columns`` of them where there are more.

        Args:
            num_features: of the graph.
            columns: how many there are to be at the most.
            seed: of the run.
            spread: to how many of them a feature is sent.
            apart: whether a node's own features are to be told from those around it.
        """
        width = num_features * (1 + apart)
        if width <= columns:
            around = _placed(num_features, 0)
            return cls(_placed(num_features, num_features) if apart else around, around, width)
        size = num_features, columns, spread
        around = _projected(*size, derive(seed, "sketch"))
        own = _projected(*size, derive(seed, "sketch", "own")) if apart else around
        return cls(own, around, columns)


def _placed(num_features: int, first: int) -> Projection:
    targets = np.arange(first, first + num_features, dtype=np.uint16)
    return Projection(targets, np.ones(num_features, dtype=np.float32))


def _projected(num_features: int, columns: int, spread: int, key: int) -> Projection:
    hashes = keyed_hash(np.arange(num_features * spread), key)
    targets = (hashes >> np.uint64(1)) % np.uint64(columns)
    signs = np.where(hashes & np.uint64(1), 1.0, -1.0) / math.sqrt(spread)
    return Projection(targets.astype(np.uint16), signs.astype(np.float32))
