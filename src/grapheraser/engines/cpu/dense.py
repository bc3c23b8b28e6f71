"""Dense kernels on padded rows: products, activations and the gradient of the loss.

Matrices are C-contiguous ``[n, width]`` with ``width`` a multiple of 16; units beyond the real
ones are zero and stay zero. Parameters and their gradients are segments of flat arrays, named by
the offset of their first entry.

Every sum is one accumulator per lane, which takes its terms in ascending order of the summed index,
each by one fused multiply-add. Rows are independent, and the numbers of rows or columns that are
computed side by side only hide latency. What would change the bits: several accumulators for one
sum, a product rounded before it is added, a sum split between threads, or padding that is not zero.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from grapheraser.arrays import Ints
from grapheraser.engines.cpu.noise import EVERY_UNIT, scale_of
from grapheraser.engines.shared.layout import BETA_1, BETA_2, EPS, Schedule
from grapheraser.kernels.compiled import compiled
from grapheraser.kernels.vectors import (
    LANES,
    ONE,
    Tile,
    exponential,
    fma,
    fold_max,
    fold_sum,
    inverse_root,
    kept_lanes,
    larger,
    load,
    store,
    where_below,
    where_positive,
    zeros,
)
from grapheraser.models.constants import ELU, RELU

Array = NDArray[np.floating]


@compiled
def matmul(h: Array, depth: int, weight: Array, weight_at: int, out: Array, tile: Tile) -> None:
    """``out[r] = sum_k h[r, k] weight[k]``, k below ``depth``, weight a segment ``[., width]``.

    Four rows at a time: that many independent sums hide the latency of a multiply-add.
    """
    n, width = out.shape
    for t in range(0, width, LANES * len(tile)):
        r = 0
        while r + 4 <= n:
            a, b, c, d = zeros(h, tile), zeros(h, tile), zeros(h, tile), zeros(h, tile)
            for k in range(depth):
                w = load(weight, weight_at + k * width + t, tile)
                a = fma(w, h[r, k], a)
                b = fma(w, h[r + 1, k], b)
                c = fma(w, h[r + 2, k], c)
                d = fma(w, h[r + 3, k], d)
            store(out, r * width + t, a)
            store(out, (r + 1) * width + t, b)
            store(out, (r + 2) * width + t, c)
            store(out, (r + 3) * width + t, d)
            r += 4
        while r < n:
            a = zeros(h, tile)
            for k in range(depth):
                a = fma(load(weight, weight_at + k * width + t, tile), h[r, k], a)
            store(out, r * width + t, a)
            r += 1


@compiled
def weight_gradient(h: Array, g: Array, gradient: Array, at: int, tile: Tile) -> None:
    """``gradient[k] = sum_r h[r, k] g[r]``: a segment ``[width of h, width of g]``."""
    n, width = g.shape
    for t in range(0, width, LANES * len(tile)):
        for k in range(0, h.shape[1], 4):
            a, b, c, d = zeros(g, tile), zeros(g, tile), zeros(g, tile), zeros(g, tile)
            for r in range(n):
                row = load(g, r * width + t, tile)
                a = fma(row, h[r, k], a)
                b = fma(row, h[r, k + 1], b)
                c = fma(row, h[r, k + 2], c)
                d = fma(row, h[r, k + 3], d)
            store(gradient, at + k * width + t, a)
            store(gradient, at + (k + 1) * width + t, b)
            store(gradient, at + (k + 2) * width + t, c)
            store(gradient, at + (k + 3) * width + t, d)


@compiled
def transpose(weight: Array, at: int, out: Array) -> None:
    """``out[m, k] = weight[k, m]`` for a segment with as many columns as ``out`` has rows."""
    rows, columns = out.shape
    for m in range(rows):
        for k in range(columns):
            out[m, k] = weight[at + k * rows + m]


@compiled
def back_through(
    h: Array,
    g: Array,
    theta: Array,
    gradient: Array,
    at: int,
    depth: int,
    transposed: Array,
    out: Array,
    slope: Array,
    g_tile: Tile,
    tile: Tile,
) -> None:
    """Go from ``g`` by ``h W`` back to W's gradient, and to ``out`` by what h was activated from.

    W lies in ``theta`` from ``at`` on, and ``transposed`` is room for its transpose. Columns of g
    from ``depth`` on are padding; ``slope`` holds the derivatives of the units h. ``out`` may be h
    itself, which is read before it is written.
    """
    weight_gradient(h, g, gradient, at, g_tile)
    transpose(theta, at, transposed)
    matmul(g, depth, transposed.reshape(-1), 0, out, tile)
    times(out, slope, tile)


@compiled
def add_bias(z: Array, bias: Array, at: int, tile: Tile) -> None:
    """``z[r] += bias``."""
    n, width = z.shape
    for r in range(n):
        for t in range(0, width, LANES * len(tile)):
            store(z, r * width + t, load(z, r * width + t, tile) + load(bias, at + t, tile))


@compiled
def bias_gradient(g: Array, gradient: Array, at: int, tile: Tile) -> None:
    """``gradient = sum_r g[r]``."""
    n, width = g.shape
    for t in range(0, width, LANES * len(tile)):
        total = zeros(g, tile)
        for r in range(n):
            total = total + load(g, r * width + t, tile)
        store(gradient, at + t, total)


@compiled
def activate(
    z: Array, code: int, keys: NDArray[np.uint32], limit: int, out: Array, slope: Array, tile: Tile
) -> None:
    """Activation and dropout: ``out`` the units, ``slope`` their derivatives by ``z``."""
    n, width = z.shape
    scale = scale_of(limit)
    for r in range(n):
        for t in range(0, width, LANES * len(tile)):
            at = r * width + t
            value = load(z, at, tile)
            ones = zeros(z, tile) + 1.0
            derivative = ones
            if code == RELU:
                derivative = where_positive(value, ones, 0.0)
                value = larger(value, 0.0)
            elif code == ELU:
                power = exponential(value)
                derivative = where_positive(value, ones, power)
                value = where_positive(value, value, power - 1.0)
            if limit > 0:
                kept = kept_lanes(value, keys[r], t, EVERY_UNIT, limit) * scale
                value = value * kept
                derivative = derivative * kept
            store(out, at, value)
            store(slope, at, derivative)


@compiled
def times(g: Array, slope: Array, tile: Tile) -> None:
    """``g *= slope``."""
    for at in range(0, g.size, LANES * len(tile)):
        store(g, at, load(g, at, tile) * load(slope, at, tile))


@compiled
def class_gradient(logits: Array, labels: Ints, num_classes: int, g: Array) -> None:
    """Gradient of the mean cross-entropy by the logits; a row without a label (-1) has none."""
    n, width = logits.shape
    labelled = 0
    for r in range(n):
        labelled += labels[r] >= 0
    share = 1.0 / labelled
    for r in range(n):
        if labels[r] < 0:
            for t in range(0, width, LANES):
                store(g, r * width + t, zeros(g, ONE))
            continue
        best = zeros(g, ONE) - np.inf
        for t in range(0, width, LANES):
            value = load(logits, r * width + t, ONE)
            best = larger(best, where_below(num_classes - t, value, -np.inf))
        best = fold_max(best, 1)
        total = zeros(g, ONE)
        for t in range(0, width, LANES):
            at = r * width + t
            power = exponential(load(logits, at, ONE) - best)
            power = where_below(num_classes - t, power, 0.0)
            store(g, at, power)
            total = total + power
        factor = zeros(g, ONE) + share
        factor = factor / fold_sum(total, 1)
        for t in range(0, width, LANES):
            at = r * width + t
            store(g, at, load(g, at, ONE) * factor)
        g[r, labels[r]] -= share


@compiled
def target_gradient(outputs: Array, targets: Array, numbers: bool, g: Array) -> None:
    """Gradient of the binary cross-entropy of each label, or of the squared error, by the outputs.

    ``targets`` holds, side by side, what is wanted of each output and what an error counts: 0 where
    the target is not known, and in the padding.
    """
    n, width = outputs.shape
    for r in range(n):
        for t in range(0, width, LANES):
            value = load(outputs, r * width + t, ONE)
            if not numbers:  # the logistic function, by a power that can't overflow
                power = exponential(larger(value, value * -1.0) * -1.0)
                inverse = (zeros(g, ONE) + 1.0) / (power + 1.0)
                value = where_positive(value, inverse, power * inverse)
            value = value - load(targets, r * 2 * width + t, ONE)
            store(g, r * width + t, value * load(targets, r * 2 * width + width + t, ONE))


Rates: TypeAlias = tuple[float, float, float]


class Parameters(NamedTuple):
    """All parameters but the input's, with all that changes along with them."""

    # values, gradient, first, second: flat, the parameters end to end, their gradient and Adam's
    # moments of it.
    values: NDArray[np.floating]
    gradient: NDArray[np.floating]
    first: NDArray[np.floating]
    second: NDArray[np.floating]
    # ``[4, hidden]``, running mean and variance of the first and of the second norm.
    running: NDArray[np.floating]


@compiled
def rates_of(schedule: Schedule, epoch: int) -> Rates:
    """Return one epoch's step, correction and decay."""
    return schedule.step[epoch], schedule.correction[epoch], schedule.decay


@compiled
def adam_tile(
    values: NDArray[np.floating],
    first: NDArray[np.floating],
    second: NDArray[np.floating],
    at: int,
    gradient: Any,
    rates: Rates,
    tile: Tile,
) -> Any:
    """Update one tile of weights in place; returns the new weights, still in registers.

    The bits of a weight follow from its own gradient and moments. Multiply-adds are fused where
    `fma` says so and nowhere else, and the root is Newton's (`inverse_root`), not the processor's.
    """
    step, correction, decay = rates
    w = load(values, at, tile)
    g = fma(w, decay, gradient)
    m = load(first, at, tile)
    m = fma(g - m, 1 - BETA_1, m)
    v = fma(g * (1 - BETA_2), g, load(second, at, tile) * BETA_2)
    denominator = fma(v * inverse_root(v), correction, EPS)
    w = fma(m / denominator, -step, w)
    store(values, at, w)
    store(first, at, m)
    store(second, at, v)
    return w


@compiled
def adam_step(p: Parameters, rates: Rates) -> None:
    """Update all parameters from their gradient."""
    values, gradient, first, second = p.values, p.gradient, p.first, p.second
    for at in range(0, len(values), LANES):
        adam_tile(values, first, second, at, load(gradient, at, ONE), rates, ONE)
