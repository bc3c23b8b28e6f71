"""GCN and GraphSAGE: two layers that sum over neighbours with fixed weights.

GCN: ``A drop(act(A X W1 + b1)) W2 + b2``, A the normalised adjacency. GraphSAGE: the same with A
the mean, plus a second product with the node's own row; both products lie side by side, as pairs.
"""

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
    hidden = layout.hidden.width
    return hidden, layout.classes.width, layout["bias1"].trained, tile_for(hidden)


@compiled
def train(
    shard: Shard,
    weights: InputWeights,
    parameters: Parameters,
    offsets: tuple[int, ...],
    hidden: int,
    classes: int,
    has_bias: bool,
    tile: Tile,
) -> None:
    """Train W1 in ``weights``, and b1, W2, b2 in ``parameters``, where ``offsets`` say.

    ``hidden`` and ``classes`` are padded widths. Of GraphSAGE, W1 is L1 beside R1, and W2 L2 beside
    R2. Without ``has_bias`` b1 and b2 stay zero.
    """
    n, pair = len(shard.labels), weights.values.shape[1] // hidden
    bias_1, weight_2, bias_2 = offsets
    edges, theta, gradient = shard.edges, parameters.values, parameters.gradient
    z, h = matrix(n, pair * hidden, theta), matrix(n, hidden, theta)
    slope, g = matrix(n, hidden, theta), matrix(n, hidden, theta)
    p, logits = matrix(n, pair * classes, theta), matrix(n, classes, theta)
    weight_2t = matrix(pair * classes, hidden, theta)
    depth = (pair - 1) * classes + shard.num_classes
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
        back_through(h, p, theta, gradient, weight_2, depth, weight_2t, g, slope, ONE, tile)
        if has_bias:
            bias_gradient(logits, gradient, bias_2, ONE)
            bias_gradient(g, gradient, bias_1, tile)
        propagate(edges.indptr, edges.indices, edges.backward, g, z, tile)
        finish(shard, weights, parameters, epoch, entries, z, tile)
