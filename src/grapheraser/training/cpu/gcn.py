"""GCN: ``A drop(act(A X W1 + b1)) W2 + b2``, with A the normalised adjacency."""

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
from grapheraser.training.cpu.sparse import InputWeights, propagate
from grapheraser.training.layout.dropout import HIDDEN_1
from grapheraser.training.layout.tensors import TensorLayout

ROLES = ("bias1", "weight2", "bias2")


def options(layout: TensorLayout) -> tuple[Any, ...]:
    """What `train` takes besides data and weights."""
    return layout.classes.width, layout.spec.bias, tile_for(layout.hidden.width)


@compiled
def train(
    shard: Shard,
    weights: InputWeights,
    parameters: Parameters,
    offsets: tuple[int, ...],
    classes: int,
    has_bias: bool,
    tile: Tile,
) -> None:
    """Train in place.

    Args:
        shard: the data.
        weights: W1.
        parameters: b1, W2, b2.
        offsets: where each of these begins.
        classes: padded width of the logits.
        has_bias: whether b1 and b2 are trained; otherwise they stay zero.
        tile: of the hidden units.
    """
    n, hidden = len(shard.labels), weights.values.shape[1]
    bias_1, weight_2, bias_2 = offsets
    edges, theta, gradient = shard.edges, parameters.values, parameters.gradient
    z, h, slope, g = (
        matrix(n, hidden, theta),
        matrix(n, hidden, theta),
        matrix(n, hidden, theta),
        matrix(n, hidden, theta),
    )
    p, logits = matrix(n, classes, theta), matrix(n, classes, theta)
    weight_2t = matrix(classes, hidden, theta)
    keys = np.empty(n, dtype=np.uint32)
    entries = entries_of(shard)

    for epoch in range(len(shard.schedule.step)):
        begin(shard, weights, epoch, entries, keys, z, tile)
        row_keys(shard.noise, epoch, HIDDEN_1, keys)
        propagate(edges.indptr, edges.indices, edges.forward, z, h, tile)
        add_bias(h, theta, bias_1, tile)
        activate(h, shard.activation, keys, shard.noise.hidden, h, slope, tile)
        matmul(h, hidden, theta, weight_2, p, ONE)
        propagate(edges.indptr, edges.indices, edges.forward, p, logits, ONE)
        add_bias(logits, theta, bias_2, ONE)

        loss_gradient(logits, shard.labels, shard.num_classes, logits)
        propagate(edges.indptr, edges.indices, edges.backward, logits, p, ONE)
        weight_gradient(h, p, gradient, weight_2, ONE)
        transpose(theta, weight_2, weight_2t)
        matmul(p, shard.num_classes, weight_2t.reshape(-1), 0, g, tile)
        times(g, slope, tile)
        if has_bias:
            bias_gradient(logits, gradient, bias_2, ONE)
            bias_gradient(g, gradient, bias_1, tile)
        propagate(edges.indptr, edges.indices, edges.backward, g, h, tile)
        finish(shard, weights, parameters, epoch, entries, h, tile)
