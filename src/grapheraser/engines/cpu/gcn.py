"""GCN: ``A drop(act(A X W1 + b1)) W2 + b2``, with A the normalised adjacency."""

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
from grapheraser.engines.cpu.sparse import InputWeights, propagate
from grapheraser.engines.shared.layout import HIDDEN_1, TensorLayout
from grapheraser.kernels.compiled import compiled
from grapheraser.kernels.vectors import ONE, Tile, tile_for

ROLES = ("bias1", "weight2", "bias2")


def options(layout: TensorLayout) -> tuple[Any, ...]:
    """Return what `train` takes besides data and weights."""
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
    """Train W1 in ``weights``, and b1, W2, b2 in ``parameters``, where ``offsets`` say.

    ``classes`` is the padded width of the logits. Without ``has_bias`` b1 and b2 stay zero.
    """
    n, hidden = len(shard.labels), weights.values.shape[1]
    bias_1, weight_2, bias_2 = offsets
    edges, theta, gradient = shard.edges, parameters.values, parameters.gradient
    z, h = matrix(n, hidden, theta), matrix(n, hidden, theta)
    slope, g = matrix(n, hidden, theta), matrix(n, hidden, theta)
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

        loss_gradient(shard, logits)
        propagate(edges.indptr, edges.indices, edges.backward, logits, p, ONE)
        depth = shard.num_classes
        back_through(h, p, theta, gradient, weight_2, depth, weight_2t, g, slope, ONE, tile)
        if has_bias:
            bias_gradient(logits, gradient, bias_2, ONE)
            bias_gradient(g, gradient, bias_1, tile)
        propagate(edges.indptr, edges.indices, edges.backward, g, h, tile)
        finish(shard, weights, parameters, epoch, entries, h, tile)
