"""Batch norm: statistics of the shard's own rows while training, running ones to keep.

Sums over rows run from the first to the last, one accumulator per unit: the variance in a second
pass around the mean, since sums of squares would round otherwise.
"""

from __future__ import annotations

from grapheraser.engines.cpu.dense import Array
from grapheraser.kernels.compiled import compiled
from grapheraser.kernels.vectors import LANES, Tile, fma, load, root, store, zeros
from grapheraser.models.constants import NORM_EPS, NORM_MOMENTUM


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
