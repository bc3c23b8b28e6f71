"""GIN: each layer adds a node's neighbours to it, then applies a two-layer perceptron."""

from __future__ import annotations

from typing import Any

import numpy as np

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
from grapheraser.engines.cpu.sparse import InputWeights, propagate
from grapheraser.engines.shared.layout import HIDDEN_1, HIDDEN_2, TensorLayout
from grapheraser.kernels.compiled import compiled
from grapheraser.kernels.vectors import LANES, ONE, Tile, fma, load, root, store, tile_for, zeros
from grapheraser.models.constants import NORM_EPS, NORM_MOMENTUM, RELU


# Sums of the batch norm over rows run from the first to the last, one accumulator per unit: the
# variance in a second pass around the mean, since sums of squares would round otherwise.
@compiled
def normalise(
    z: Array,
    theta: Array,
    weight_at: int,
    bias_at: int,
    running: Array,
    mean_row: int,
    standard: Array,
    inverse_deviation: Array,
    tile: Tile,
) -> None:
    """``z = weight * standard + bias``, ``standard`` having mean 0 and variance 1 in each unit.

    ``running`` rows ``mean_row`` and ``mean_row + 1`` follow the mean and the unbiased variance,
    as torch's do. A single row has variance 0 (torch refuses it).
    """
    n, width = z.shape
    share, unbiased = 1.0 / n, n / max(n - 1, 1)
    for t in range(0, width, LANES * len(tile)):
        total = zeros(z, tile)
        for r in range(n):
            total = total + load(z, r * width + t, tile)
        mean = total * share
        spread = zeros(z, tile)
        for r in range(n):
            offset = load(z, r * width + t, tile) - mean
            spread = fma(offset, offset, spread)
        variance = spread * share
        inverse = 1.0 / root(variance + NORM_EPS)
        store(inverse_deviation, t, inverse)
        at = mean_row * width + t
        store(running, at, fma(load(running, at, tile), 1 - NORM_MOMENTUM, mean * NORM_MOMENTUM))
        at += width
        follow = variance * (NORM_MOMENTUM * unbiased)
        store(running, at, fma(load(running, at, tile), 1 - NORM_MOMENTUM, follow))
        weight, bias = load(theta, weight_at + t, tile), load(theta, bias_at + t, tile)
        for r in range(n):
            value = (load(z, r * width + t, tile) - mean) * inverse
            store(standard, r * width + t, value)
            store(z, r * width + t, fma(value, weight, bias))


@compiled
def norm_gradient(
    g: Array,
    standard: Array,
    inverse_deviation: Array,
    theta: Array,
    weight_at: int,
    bias_at: int,
    gradient: Array,
    tile: Tile,
) -> None:
    """Turn ``g`` by the result of `normalise` into ``g`` by its input."""
    n, width = g.shape
    share = 1.0 / n
    for t in range(0, width, LANES * len(tile)):
        by_weight, by_bias = zeros(g, tile), zeros(g, tile)
        for r in range(n):
            row = load(g, r * width + t, tile)
            by_weight = fma(row, load(standard, r * width + t, tile), by_weight)
            by_bias = by_bias + row
        store(gradient, weight_at + t, by_weight)
        store(gradient, bias_at + t, by_bias)
        factor = load(theta, weight_at + t, tile) * load(inverse_deviation, t, tile)
        by_weight = by_weight * share
        by_bias = by_bias * share
        for r in range(n):
            row = load(g, r * width + t, tile) - by_bias
            row = row - load(standard, r * width + t, tile) * by_weight
            store(g, r * width + t, row * factor)


ROLES = (
    *("bias1", "weight2", "bias2", "scale1", "shift1"),
    *("weight3", "bias3", "weight4", "bias4", "scale2", "shift2"),
    *("head", "head_bias"),
)


def options(layout: TensorLayout) -> tuple[Any, ...]:
    """Return what `train` takes besides data and weights."""
    spec, widths = layout.spec, (layout["weight4"].out.width, layout.classes.width)
    return *widths, spec.batch_norm, spec.linear_head, tile_for(layout.hidden.width)


@compiled
def train(
    shard: Shard,
    weights: InputWeights,
    parameters: Parameters,
    offsets: tuple[int, ...],
    last: int,
    classes: int,
    batch_norm: bool,
    linear_head: bool,
    tile: Tile,
) -> None:
    """Train W1 in ``weights``, and all others in ``parameters``, where ``offsets`` say.

    These are b1, W2, b2, weight and bias of norm 1; W3, b3, W4, b4, weight and bias of norm 2;
    weight and bias of the head; the offset is 0 for those that the model does not have.

    ``last`` is the padded width of the second layer's result: the logits, or hidden units before a
    head; ``classes`` that of the logits.
    """
    n, hidden = len(shard.labels), weights.values.shape[1]
    bias_1, weight_2, bias_2, scale_1, shift_1 = offsets[:5]
    weight_3, bias_3, weight_4, bias_4, scale_2, shift_2, weight_5, bias_5 = offsets[5:]
    edges, theta, gradient = shard.edges, parameters.values, parameters.gradient
    running = parameters.running
    dropout, drop_nothing = shard.noise.hidden, 0
    z, h1, slope_1 = matrix(n, hidden, theta), matrix(n, hidden, theta), matrix(n, hidden, theta)
    h2, slope_2 = matrix(n, hidden, theta), matrix(n, hidden, theta)
    h3, slope_3 = matrix(n, hidden, theta), matrix(n, hidden, theta)
    h4, slope_4 = matrix(n, last, theta), matrix(n, last, theta)
    standard_1, standard_2 = matrix(n, hidden, theta), matrix(n, last, theta)
    deviation_1, deviation_2 = matrix(1, hidden, theta), matrix(1, last, theta)
    g, g_out = matrix(n, hidden, theta), matrix(n, hidden, theta)
    logits = matrix(n, classes, theta)
    square_t = matrix(hidden, hidden, theta)
    last_t, head_t = matrix(last, hidden, theta), matrix(classes, last, theta)
    keys = np.empty(n, dtype=np.uint32)
    entries = entries_of(shard)

    for epoch in range(len(shard.schedule.step)):
        begin(shard, weights, epoch, entries, keys, z, tile)
        propagate(edges.indptr, edges.indices, edges.forward, z, h1, tile)
        add_bias(h1, theta, bias_1, tile)
        activate(h1, RELU, keys, drop_nothing, h1, slope_1, tile)
        matmul(h1, hidden, theta, weight_2, h2, tile)
        add_bias(h2, theta, bias_2, tile)
        if batch_norm:
            normalise(h2, theta, scale_1, shift_1, running, 0, standard_1, deviation_1, tile)
        row_keys(shard.noise, epoch, HIDDEN_1, keys)
        activate(h2, shard.activation, keys, dropout, h2, slope_2, tile)

        matmul(h2, hidden, theta, weight_3, g, tile)
        propagate(edges.indptr, edges.indices, edges.forward, g, h3, tile)
        add_bias(h3, theta, bias_3, tile)
        activate(h3, RELU, keys, drop_nothing, h3, slope_3, tile)
        matmul(h3, hidden, theta, weight_4, h4, ONE)
        add_bias(h4, theta, bias_4, ONE)

        if linear_head:
            if batch_norm:
                normalise(h4, theta, scale_2, shift_2, running, 2, standard_2, deviation_2, ONE)
            row_keys(shard.noise, epoch, HIDDEN_2, keys)
            activate(h4, shard.activation, keys, dropout, h4, slope_4, ONE)
            matmul(h4, last, theta, weight_5, logits, ONE)
            add_bias(logits, theta, bias_5, ONE)
            loss_gradient(shard, logits)
            bias_gradient(logits, gradient, bias_5, ONE)
            depth = shard.num_classes
            back_through(
                h4, logits, theta, gradient, weight_5, depth, head_t, h4, slope_4, ONE, ONE
            )
            if batch_norm:
                norm_gradient(h4, standard_2, deviation_2, theta, scale_2, shift_2, gradient, ONE)
        else:
            loss_gradient(shard, h4)

        # h4 now holds the gradient by the second layer's result.
        bias_gradient(h4, gradient, bias_4, ONE)
        back_through(h3, h4, theta, gradient, weight_4, last, last_t, g, slope_3, ONE, tile)
        bias_gradient(g, gradient, bias_3, tile)
        propagate(edges.indptr, edges.indices, edges.backward, g, g_out, tile)
        back_through(h2, g_out, theta, gradient, weight_3, hidden, square_t, g, slope_2, tile, tile)
        if batch_norm:
            norm_gradient(g, standard_1, deviation_1, theta, scale_1, shift_1, gradient, tile)
        bias_gradient(g, gradient, bias_2, tile)
        back_through(h1, g, theta, gradient, weight_2, hidden, square_t, g_out, slope_1, tile, tile)
        bias_gradient(g_out, gradient, bias_1, tile)
        propagate(edges.indptr, edges.indices, edges.backward, g_out, g, tile)
        finish(shard, weights, parameters, epoch, entries, g, tile)
