"""Parts of training that all kinds of models share: a shard's data, and an epoch's two ends."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from grapheraser.arrays import AnyArray
from grapheraser.engines.cpu.dense import (
    Array,
    Parameters,
    adam_step,
    class_gradient,
    rates_of,
    target_gradient,
)
from grapheraser.engines.cpu.noise import Noise
from grapheraser.engines.cpu.sparse import (
    InputWeights,
    SparseFeatures,
    drop_features,
    input_step,
    project,
)
from grapheraser.engines.shared.adjacency import Adjacency
from grapheraser.engines.shared.layout import Schedule
from grapheraser.kernels.compiled import compiled
from grapheraser.kernels.vectors import Tile


class Shard(NamedTuple):
    """The data that training reads and never writes."""

    x: SparseFeatures  # features
    edges: Adjacency  # adjacency with the weights that the model gives to edges
    # Int64 ``[n]``, -1 for nodes that have no loss; or ``[n, 2 * width]``, see `target_gradient`.
    labels: AnyArray
    num_classes: int  # C, at most the padded width of the logits
    numbers: bool  # whether labels are numbers
    noise: Noise  # where dropout comes from
    schedule: Schedule  # Adam's rates by epoch
    activation: int  # a code of `models.constants`


@compiled
def matrix(rows: int, width: int, like: Array) -> Array:
    """Return zeros ``[rows, width]`` that start at a cache line: no vector spans two."""
    spare = 64 // like.itemsize
    flat = np.zeros(rows * width + spare, dtype=like.dtype)
    start = (-(flat.ctypes.data // like.itemsize)) % spare
    return flat[start : start + rows * width].reshape(rows, width)


class Entries(NamedTuple):
    """X's values in the current epoch, by row and by column: after dropout, where there is any."""

    by_row: Array
    by_column: Array


@compiled
def entries_of(shard: Shard) -> Entries:
    """Return X's own values, copied only if dropout is going to change them."""
    x = shard.x
    if shard.noise.features > 0:
        return Entries(x.row_values.copy(), x.column_values.copy())
    return Entries(x.row_values, x.column_values)


@compiled
def begin(
    shard: Shard,
    weights: InputWeights,
    epoch: int,
    entries: Entries,
    keys: NDArray[np.uint32],
    z: Array,
    tile: Tile,
) -> None:
    """Begin an epoch: input dropout, ``z = X W``."""
    x = shard.x
    if shard.noise.features > 0:
        drop_features(x, shard.noise, epoch, keys, entries.by_row, entries.by_column)
    project(x.row_indptr, x.row_places, entries.by_row, weights.values, z, tile)


@compiled
def loss_gradient(shard: Shard, logits: Array) -> None:
    """Put the gradient of the mean loss by the logits in their place."""
    _loss_gradient(shard.labels, shard.num_classes, shard.numbers, logits)


@compiled
def _loss_gradient(labels: AnyArray, num_classes: int, numbers: bool, logits: Array) -> None:
    if labels.ndim == 1:  # decided when this is compiled
        class_gradient(logits, labels, num_classes, logits)
    else:
        target_gradient(logits, labels, numbers, logits)


@compiled
def finish(
    shard: Shard,
    weights: InputWeights,
    parameters: Parameters,
    epoch: int,
    entries: Entries,
    g: Array,
    tile: Tile,
) -> None:
    """End an epoch: update all weights, those of the input from ``g`` by X W."""
    x, rates = shard.x, rates_of(shard.schedule, epoch)
    adam_step(parameters, rates)
    input_step(x.column_indptr, x.column_places, entries.by_column, weights, rates, g, tile)
