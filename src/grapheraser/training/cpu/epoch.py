"""What the training of every kind of model shares: the data of a shard, and an epoch's two ends."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from grapheraser.training.cpu.adam import Parameters, Schedule, adam_step
from grapheraser.training.cpu.dense import Array
from grapheraser.training.cpu.noise import Noise
from grapheraser.training.cpu.simd import Tile
from grapheraser.training.cpu.sparse import (
    Edges,
    Features,
    InputWeights,
    drop_features,
    input_step,
    project,
)


class Shard(NamedTuple):
    """All that training reads and never writes.

    Attributes:
        x: features by column.
        edges: adjacency with the weights that the model gives to edges.
        labels: int64 ``[n]``.
        num_classes: C, at most the padded width of the logits.
        noise: where dropout comes from.
        schedule: Adam's rates by epoch.
        activation: a code of `dense`.
    """

    x: Features
    edges: Edges
    labels: NDArray[np.int64]
    num_classes: int
    noise: Noise
    schedule: Schedule
    activation: int


@njit(cache=True, nogil=True)
def matrix(rows: int, width: int, like: Array) -> Array:
    """Zeros ``[rows, width]`` that start at a cache line: a vector then never spans two."""
    spare = 64 // like.itemsize
    flat = np.zeros(rows * width + spare, dtype=like.dtype)
    start = (-(flat.ctypes.data // like.itemsize)) % spare
    return flat[start : start + rows * width].reshape(rows, width)


@njit(cache=True, nogil=True)
def begin(shard: Shard, weights: InputWeights, z: Array, tile: Tile) -> Array:
    """The first epoch's ``z = X W``; returns X's entries ``[2, nnz]`` of this and the next epoch.

    Without input dropout both rows are the same.
    """
    entries = np.empty((2, len(shard.x.values)), dtype=z.dtype)
    entries[0] = shard.x.values
    entries[1] = shard.x.values
    if shard.noise.features > 0:
        keys = np.empty(len(shard.labels), dtype=np.uint32)
        drop_features(shard.x, shard.noise, 0, keys, entries[0])
    project(shard.x, entries[0], weights.values, z, tile)
    return entries


@njit(cache=True, nogil=True)
def finish(
    shard: Shard,
    weights: InputWeights,
    parameters: Parameters,
    epoch: int,
    entries: Array,
    keys: NDArray[np.uint32],
    g: Array,
    z: Array,
    tile: Tile,
) -> None:
    """Update all weights from ``g`` (by X W) and the gradients, and put the next X W into ``z``."""
    adam_step(parameters, shard.schedule, epoch)
    now, then = entries[epoch % 2], entries[(epoch + 1) % 2]
    if shard.noise.features > 0:
        drop_features(shard.x, shard.noise, epoch + 1, keys, then)
    input_step(shard.x, weights, shard.schedule, epoch, g, now, then, z, tile)
