"""GAT: a layer of several attention heads and one of a single head.

With a skip, both products of a layer lie side by side: what attention mixes, and a node's own part.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from grapheraser.engines.cpu.attention import Attention, attend, attend_gradient
from grapheraser.engines.cpu.dense import (
    Array,
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
from grapheraser.engines.shared.layout import ATTENTION_1, ATTENTION_2, HIDDEN_1, TensorLayout
from grapheraser.kernels.compiled import compiled
from grapheraser.kernels.vectors import LANES, ONE, Tile, tile_for

ROLES = ("att_src1", "att_dst1", "bias1", "weight2", "att_src2", "att_dst2", "bias2")


def options(layout: TensorLayout) -> tuple[Any, ...]:
    """Return what `train` takes besides data and weights."""
    hidden, classes = layout.hidden, layout.classes.width
    return hidden.period, hidden.width, classes, tile_for(hidden.width)


@compiled
def attention_of(shard: Shard, num_heads: int, like: Array) -> Attention:
    """Make room for a layer's attention."""
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
def take_left(pair: Array, out: Array) -> None:
    """Copy what attention mixes to ``out``; without a skip that is ``pair`` itself."""
    n, width = out.shape
    if pair.shape[1] > width:
        for r in range(n):
            for i in range(width):
                out[r, i] = pair[r, i]


@compiled
def add_right(pair: Array, out: Array) -> None:
    """Add a node's own part, if there is one."""
    n, width = out.shape
    if pair.shape[1] > width:
        for r in range(n):
            for i in range(width):
                out[r, i] += pair[r, width + i]


@compiled
def put_beside(left: Array, right: Array, pair: Array) -> None:
    """Write the gradient by ``pair``: by what attention mixes, and by a node's own part if any."""
    n, width = left.shape
    skip = pair.shape[1] > width
    for r in range(n):
        for i in range(width):
            pair[r, i] = left[r, i]
            if skip:
                pair[r, width + i] = right[r, i]


@compiled
def train(
    shard: Shard,
    weights: InputWeights,
    parameters: Parameters,
    offsets: tuple[int, ...],
    num_heads: int,
    hidden: int,
    classes: int,
    tile: Tile,
) -> None:
    """Train W1 in ``weights``, with a skip R1 beside it, and all others in ``parameters``.

    These are the attention of sources and of targets, and the bias, of layer 1; W2, with a skip R2
    beside it; the same three of layer 2. ``offsets`` say where each begins. ``num_heads`` of layer
    1 are rounded up to a power of two; ``hidden`` and ``classes`` are padded widths.
    """
    n, skip = len(shard.labels), weights.values.shape[1] > hidden
    pair = 2 if skip else 1
    source_1, target_1, bias_1, weight_2, source_2, target_2, bias_2 = offsets
    edges, theta, gradient = shard.edges, parameters.values, parameters.gradient
    noise = shard.noise
    wide_z, wide_p = matrix(n, pair * hidden, theta), matrix(n, pair * classes, theta)
    z = matrix(n, hidden, theta) if skip else wide_z
    p = matrix(n, classes, theta) if skip else wide_p
    h, slope, g = matrix(n, hidden, theta), matrix(n, hidden, theta), matrix(n, hidden, theta)
    logits, g_p = matrix(n, classes, theta), matrix(n, classes, theta)
    weight_2t = matrix(pair * classes, hidden, theta)
    depth = classes + shard.num_classes if skip else shard.num_classes
    first = attention_of(shard, num_heads, theta)
    second = attention_of(shard, 1, theta)
    keys = np.empty(n, dtype=np.uint32)
    entries = entries_of(shard)

    for epoch in range(len(shard.schedule.step)):
        begin(shard, weights, epoch, entries, keys, wide_z, tile)
        take_left(wide_z, z)
        attend(edges, noise, epoch, ATTENTION_1, first, z, theta, source_1, target_1, h)
        add_right(wide_z, h)
        add_bias(h, theta, bias_1, tile)
        row_keys(noise, epoch, HIDDEN_1, keys)
        activate(h, shard.activation, keys, noise.hidden, h, slope, tile)
        matmul(h, hidden, theta, weight_2, wide_p, ONE)
        take_left(wide_p, p)
        attend(edges, noise, epoch, ATTENTION_2, second, p, theta, source_2, target_2, logits)
        add_right(wide_p, logits)
        add_bias(logits, theta, bias_2, ONE)

        loss_gradient(shard, logits)
        bias_gradient(logits, gradient, bias_2, ONE)
        attend_gradient(edges, second, p, theta, gradient, source_2, target_2, logits, g_p)
        put_beside(g_p, logits, wide_p)
        back_through(h, wide_p, theta, gradient, weight_2, depth, weight_2t, g, slope, ONE, tile)
        bias_gradient(g, gradient, bias_1, tile)
        attend_gradient(edges, first, z, theta, gradient, source_1, target_1, g, h)
        put_beside(h, g, wide_z)
        finish(shard, weights, parameters, epoch, entries, wide_z, tile)
