"""Dropout without a generator: whether a unit is dropped is a hash of where it is.

A mask depends on (task seed, epoch, layer, node id, unit) and on nothing else, so deleting a node
never changes the mask of another one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from grapheraser.engines.shared.layout import Limits
from grapheraser.kernels.compiled import compiled
from grapheraser.kernels.hashing import mixed
from grapheraser.seeding import GOLDEN, keyed_hash

EVERY_UNIT = 2**31

_LOW = np.uint64(0xFFFFFFFF)


class Noise(NamedTuple):
    """The source of all dropout masks of a task."""

    seed: np.uint64  # the task's
    id_keys: NDArray[np.uint64]  # uint64 ``[n]``, a hash of each node's id
    # hidden, features, attention: a unit is dropped when its 32-bit hash is below this.
    hidden: int
    features: int
    attention: int


def noise_of(seed: int, ids: NDArray[np.int64], limits: Limits) -> Noise:
    """Return the noise of one task."""
    return Noise(np.uint64(seed % 2**64), keyed_hash(ids, 0), *limits)


@compiled
def scale_of(limit: int) -> float:
    """Return the factor of units that are kept, so that the expected value stays."""
    return 1.0 / (1.0 - limit / 4294967296.0)


@compiled
def row_keys(noise: Noise, epoch: int, layer: int, keys: NDArray[np.uint32]) -> None:
    """Write a key per node ``[n]`` for one layer in one epoch."""
    place = mixed(noise.seed + GOLDEN * np.uint64(epoch * 8 + layer + 1))
    id_keys = noise.id_keys
    for r in range(len(keys)):
        keys[r] = np.uint32(mixed(id_keys[r] + place) >> np.uint64(32))


@compiled
def edge_key(target_key: np.uint32, source_id_key: np.uint64) -> np.uint32:
    """Return a key for one edge, from the row key of its target."""
    return np.uint32(mixed(source_id_key ^ np.uint64(target_key)) >> np.uint64(32))


@compiled
def is_kept(row_key: np.uint32, unit: int, limit: int) -> bool:
    """Tell whether dropout keeps one unit; the same hash as `vectors.kept_lanes`."""
    h = np.uint64(row_key) ^ ((np.uint64(unit) * np.uint64(0x9E3779B1)) & _LOW)
    h = ((h ^ (h >> np.uint64(16))) * np.uint64(0x7FEB352D)) & _LOW
    h = ((h ^ (h >> np.uint64(15))) * np.uint64(0x846CA68B)) & _LOW
    h = h ^ (h >> np.uint64(16))
    return bool(h >= np.uint64(limit))
