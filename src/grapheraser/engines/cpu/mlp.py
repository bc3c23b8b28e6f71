"""MLP: three linear layers, no edges."""

from __future__ import annotations

from typing import Any

import numpy as np

from grapheraser.engines.cpu.dense import (
    Parameters,
    activate,
    add_bias,
    back_through,
    bias_gradient,
    matmul,
)
from grapheraser.engines.cpu.epoch import Shard, begin, entries_of, finish, loss_gradient, matrix
from grapheraser.engines.cpu.noise import row_keys
from grapheraser.engines.cpu.sparse import InputWeights
from grapheraser.engines.shared.layout import HIDDEN_1, HIDDEN_2, TensorLayout
from grapheraser.kernels.compiled import compiled
from grapheraser.kernels.vectors import ONE, Tile, tile_for

ROLES = ("bias1", "weight2", "bias2", "weight3", "bias3")


def options(layout: TensorLayout) -> tuple[Any, ...]:
    """Return what `train` takes besides data and weights."""
    first, second = layout.hidden.width, layout["weight2"].out.width
    return second, layout.classes.width, tile_for(first), tile_for(second)


@compiled
def train(
    shard: Shard,
    weights: InputWeights,
    parameters: Parameters,
    offsets: tuple[int, ...],
    second: int,
    classes: int,
    tile: Tile,
    second_tile: Tile,
) -> None:
    """Train W1 in ``weights``, and b1, W2, b2, W3, b3 in ``parameters``, where ``offsets`` say.

    ``second`` and ``classes`` are padded widths: of the second hidden layer, and of the logits.
    """
    n, hidden = len(shard.labels), weights.values.shape[1]
    bias_1, weight_2, bias_2, weight_3, bias_3 = offsets
    theta, gradient = parameters.values, parameters.gradient
    z, h1 = matrix(n, hidden, theta), matrix(n, hidden, theta)
    slope_1, g1 = matrix(n, hidden, theta), matrix(n, hidden, theta)
    h2, slope_2, g2 = matrix(n, second, theta), matrix(n, second, theta), matrix(n, second, theta)
    logits = matrix(n, classes, theta)
    weight_2t, weight_3t = matrix(second, hidden, theta), matrix(classes, second, theta)
    keys = np.empty(n, dtype=np.uint32)
    entries = entries_of(shard)

    for epoch in range(len(shard.schedule.step)):
        begin(shard, weights, epoch, entries, keys, z, tile)
        add_bias(z, theta, bias_1, tile)
        row_keys(shard.noise, epoch, HIDDEN_1, keys)
        activate(z, shard.activation, keys, shard.noise.hidden, h1, slope_1, tile)
        matmul(h1, hidden, theta, weight_2, h2, second_tile)
        add_bias(h2, theta, bias_2, second_tile)
        row_keys(shard.noise, epoch, HIDDEN_2, keys)
        activate(h2, shard.activation, keys, shard.noise.hidden, h2, slope_2, second_tile)
        matmul(h2, second, theta, weight_3, logits, ONE)
        add_bias(logits, theta, bias_3, ONE)

        loss_gradient(shard, logits)
        bias_gradient(logits, gradient, bias_3, ONE)
        depth, wide = shard.num_classes, second_tile
        back_through(
            h2, logits, theta, gradient, weight_3, depth, weight_3t, g2, slope_2, ONE, wide
        )
        bias_gradient(g2, gradient, bias_2, second_tile)
        back_through(h1, g2, theta, gradient, weight_2, second, weight_2t, g1, slope_1, wide, tile)
        bias_gradient(g1, gradient, bias_1, tile)
        finish(shard, weights, parameters, epoch, entries, g1, tile)
