"""MLP: three linear layers, no edges."""

from __future__ import annotations

from typing import Any

import numpy as np

from grapheraser.kernels.compiled import compiled
from grapheraser.kernels.vectors import ONE, Tile, tile_for
from grapheraser.training.cpu.adam import Parameters
from grapheraser.training.cpu.dense import (
    activate,
    add_bias,
    bias_gradient,
    loss_gradient,
    matmul,
    times,
    transpose,
    weight_gradient,
)
from grapheraser.training.cpu.epoch import Shard, begin, entries_of, finish, matrix
from grapheraser.training.cpu.noise import row_keys
from grapheraser.training.cpu.sparse import InputWeights
from grapheraser.training.layout.dropout import HIDDEN_1, HIDDEN_2
from grapheraser.training.layout.tensors import TensorLayout

ROLES = ("bias1", "weight2", "bias2", "weight3", "bias3")


def options(layout: TensorLayout) -> tuple[Any, ...]:
    """What `train` takes besides data and weights."""
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
    """Train in place.

    Args:
        shard: the data; its edges are not looked at.
        weights: W1.
        parameters: b1, W2, b2, W3, b3.
        offsets: where each of these begins.
        second: padded width of the second hidden layer.
        classes: padded width of the logits.
        tile: of the first hidden layer.
        second_tile: of the second.
    """
    n, hidden = len(shard.labels), weights.values.shape[1]
    bias_1, weight_2, bias_2, weight_3, bias_3 = offsets
    theta, gradient = parameters.values, parameters.gradient
    z, h1, slope_1, g1 = (
        matrix(n, hidden, theta),
        matrix(n, hidden, theta),
        matrix(n, hidden, theta),
        matrix(n, hidden, theta),
    )
    h2, slope_2, g2 = (
        matrix(n, second, theta),
        matrix(n, second, theta),
        matrix(n, second, theta),
    )
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

        loss_gradient(logits, shard.labels, shard.num_classes, logits)
        bias_gradient(logits, gradient, bias_3, ONE)
        weight_gradient(h2, logits, gradient, weight_3, ONE)
        transpose(theta, weight_3, weight_3t)
        matmul(logits, shard.num_classes, weight_3t.reshape(-1), 0, g2, second_tile)
        times(g2, slope_2, second_tile)
        bias_gradient(g2, gradient, bias_2, second_tile)
        weight_gradient(h1, g2, gradient, weight_2, second_tile)
        transpose(theta, weight_2, weight_2t)
        matmul(g2, second, weight_2t.reshape(-1), 0, g1, tile)
        times(g1, slope_1, tile)
        bias_gradient(g1, gradient, bias_1, tile)
        finish(shard, weights, parameters, epoch, entries, g1, tile)
