"""GAT: a layer of several attention heads and one of a single head."""

from __future__ import annotations

from typing import Any

import numpy as np

from grapheraser.kernels.compiled import compiled
from grapheraser.kernels.vectors import LANES, ONE, Tile, tile_for
from grapheraser.training.cpu.adam import Parameters
from grapheraser.training.cpu.attention import Attention, attend, attend_gradient
from grapheraser.training.cpu.dense import (
    Array,
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
from grapheraser.training.layout.dropout import ATTENTION_1, ATTENTION_2, HIDDEN_1
from grapheraser.training.layout.tensors import TensorLayout

ROLES = ("att_src1", "att_dst1", "bias1", "weight2", "att_src2", "att_dst2", "bias2")


def options(layout: TensorLayout) -> tuple[Any, ...]:
    """What `train` takes besides data and weights."""
    return layout.hidden.period, layout.classes.width, tile_for(layout.hidden.width)


@compiled
def attention_of(shard: Shard, num_heads: int, like: Array) -> Attention:
    """Room for a layer's attention."""
    nodes, entries, strip = len(shard.labels), len(shard.edges.indices), max(num_heads, LANES)
    share = matrix(entries, strip, like)
    dropout = shard.noise.attention > 0
    return Attention(
        matrix(nodes, strip, like),
        matrix(nodes, strip, like),
        share,
        matrix(entries if dropout else 0, strip, like),
        matrix(entries, strip, like) if dropout else share,
        matrix(entries, strip, like),
        matrix(nodes, strip, like),
        matrix(nodes, strip, like),
        np.empty(nodes, dtype=np.uint32),
        num_heads,
    )


@compiled
def train(
    shard: Shard,
    weights: InputWeights,
    parameters: Parameters,
    offsets: tuple[int, ...],
    num_heads: int,
    classes: int,
    tile: Tile,
) -> None:
    """Train in place.

    Args:
        shard: the data.
        weights: W1.
        parameters: attention of sources and of targets, and bias, of layer 1; W2; the same three
            of layer 2.
        offsets: where each of these begins.
        num_heads: of layer 1, rounded up to a power of two.
        classes: padded width of the logits.
        tile: of the hidden units.
    """
    n, hidden = len(shard.labels), weights.values.shape[1]
    source_1, target_1, bias_1, weight_2, source_2, target_2, bias_2 = offsets
    edges, theta, gradient = shard.edges, parameters.values, parameters.gradient
    noise = shard.noise
    z, h, slope, g = (
        matrix(n, hidden, theta),
        matrix(n, hidden, theta),
        matrix(n, hidden, theta),
        matrix(n, hidden, theta),
    )
    p, logits, g_p = matrix(n, classes, theta), matrix(n, classes, theta), matrix(n, classes, theta)
    weight_2t = matrix(classes, hidden, theta)
    first = attention_of(shard, num_heads, theta)
    second = attention_of(shard, 1, theta)
    keys = np.empty(n, dtype=np.uint32)
    entries = entries_of(shard)

    for epoch in range(len(shard.schedule.step)):
        begin(shard, weights, epoch, entries, keys, z, tile)
        attend(edges, noise, epoch, ATTENTION_1, first, z, theta, source_1, target_1, h)
        add_bias(h, theta, bias_1, tile)
        row_keys(noise, epoch, HIDDEN_1, keys)
        activate(h, shard.activation, keys, noise.hidden, h, slope, tile)
        matmul(h, hidden, theta, weight_2, p, ONE)
        attend(edges, noise, epoch, ATTENTION_2, second, p, theta, source_2, target_2, logits)
        add_bias(logits, theta, bias_2, ONE)

        loss_gradient(logits, shard.labels, shard.num_classes, logits)
        bias_gradient(logits, gradient, bias_2, ONE)
        attend_gradient(edges, second, p, theta, gradient, source_2, target_2, logits, g_p)
        weight_gradient(h, g_p, gradient, weight_2, ONE)
        transpose(theta, weight_2, weight_2t)
        matmul(g_p, shard.num_classes, weight_2t.reshape(-1), 0, g, tile)
        times(g, slope, tile)
        bias_gradient(g, gradient, bias_1, tile)
        attend_gradient(edges, first, z, theta, gradient, source_1, target_1, g, h)
        finish(shard, weights, parameters, epoch, entries, h, tile)
