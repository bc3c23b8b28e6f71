"""Pieces of kernels that work on one node's row, and the training of dense parameters.

Every block shape is a function of the model alone, and a block never holds rows of two shards, so
a shard's sums run in the same order whatever it is stacked with.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, misc"
from __future__ import annotations

import triton  # type: ignore[import-not-found, import-untyped, unused-ignore]
import triton.language as tl  # type: ignore[import-not-found, import-untyped, unused-ignore]

from grapheraser.engines.cuda.noise import kept_scale, row_key
from grapheraser.engines.shared import layout
from grapheraser.models import constants

BETA_1 = tl.constexpr(layout.BETA_1)
BETA_2 = tl.constexpr(layout.BETA_2)
EPS = tl.constexpr(layout.EPS)
RELU = tl.constexpr(constants.RELU)
ELU = tl.constexpr(constants.ELU)


@triton.jit
def activate(value, ACTIVATION: tl.constexpr):
    """Return the activation's value and derivative; codes of `models.constants`."""
    positive = value > 0
    derivative = tl.full(value.shape, 1.0, value.dtype)
    if ACTIVATION == RELU:
        derivative = tl.where(positive, derivative, 0.0)
        value = tl.where(positive, value, 0.0)
    elif ACTIVATION == ELU:
        power = tl.exp(tl.where(positive, 0.0, value))
        derivative = tl.where(positive, derivative, power)
        value = tl.where(positive, value, power - 1.0)
    return value, derivative


@triton.jit
def activate_and_drop(
    value, unit, seed, id_key, epoch, LAYER: tl.constexpr, ACTIVATION: tl.constexpr,
    LIMIT: tl.constexpr,
):  # fmt: skip
    """Activate, then drop: return the units and their derivatives."""
    value, derivative = activate(value, ACTIVATION)
    if LIMIT > 0:
        scale = kept_scale(row_key(seed, id_key, epoch, LAYER), unit, LIMIT).to(value.dtype)
        value = value * scale
        derivative = derivative * scale
    return value, derivative


@triton.jit
def row_times(row, weight, IN: tl.constexpr, OUT: tl.constexpr):
    """``row W``: ``[IN]`` by ``[IN, OUT]``."""
    k, n = tl.arange(0, IN), tl.arange(0, OUT)
    return tl.sum(row[:, None] * tl.load(weight + k[:, None] * OUT + n[None, :]), axis=0)


@triton.jit
def row_times_transposed(row, weight, IN: tl.constexpr, STRIDE: tl.constexpr, OUT: tl.constexpr):
    """``row W^T`` for ``OUT`` columns of a W with ``STRIDE`` of them: ``[OUT]`` to ``[IN]``."""
    k, n = tl.arange(0, IN), tl.arange(0, OUT)
    return tl.sum(row[None, :] * tl.load(weight + k[:, None] * STRIDE + n[None, :]), axis=1)


@triton.jit
def loss_gradient(logits, label, share, NUM_CLASSES: tl.constexpr, WIDTH: tl.constexpr):
    """Return the gradient of the mean cross-entropy by one row of logits.

    ``share`` is one over the number of labelled rows, and 0 for a row without a label (-1).
    """
    unit = tl.arange(0, WIDTH)
    real = unit < NUM_CLASSES
    logits = tl.where(real, logits, -float("inf"))
    power = tl.exp(logits - tl.max(logits, axis=0))
    chance = power / tl.sum(power, axis=0)
    return (chance - tl.where(unit == label, 1.0, 0.0)) * share


@triton.jit
def adam(weight, first, second, gradient, step, correction, DECAY: tl.constexpr):
    """Take a step of Adam with weight decay in the gradient: return weight and moments."""
    gradient = gradient + weight * DECAY
    first = first + (gradient - first) * (1 - BETA_1)
    second = second * BETA_2 + gradient * gradient * (1 - BETA_2)
    weight = weight - step * (first / (tl.sqrt(second) * correction + EPS))
    return weight, first, second


@triton.jit
def update_parameters(
    theta, first, second, arena, jobs, bounds, clock, step, correction,
    SIZE: tl.constexpr, DECAY: tl.constexpr, ROWS: tl.constexpr, TILE: tl.constexpr,
):  # fmt: skip
    """Train one tile of one parameter of one shard; grid ``[jobs, shards]``.

    A parameter's gradient is ``L^T R`` over the rows of the shard, with L and R buffers of the
    arena; a vector's is ``1^T R``. A row of ``jobs`` says where: L, its width (0: ones), R, its
    width, the tile's place in theta, the parameter's width, and whether R has one row per shard.
    """
    job = jobs + tl.program_id(0) * 8
    shard = tl.program_id(1)
    left, left_width = tl.load(job), tl.load(job + 1).to(tl.int32)
    right, right_width = tl.load(job + 2), tl.load(job + 3)
    place, width = tl.load(job + 4), tl.load(job + 5)
    by_shard = tl.load(job + 6)
    epoch = tl.load(clock + 1)
    if (tl.program_id(0) == 0) & (shard == 0):
        tl.store(clock, epoch + 1)

    start = tl.where(by_shard > 0, shard, tl.load(bounds + shard))
    end = tl.where(by_shard > 0, shard + 1, tl.load(bounds + shard + 1))
    i, j = tl.arange(0, TILE), tl.arange(0, TILE)
    inside = (left_width > 0) | (i[:, None] + 0 * j[None, :] == 0)
    at = shard.to(tl.int64) * SIZE + place + i[:, None] * width + j[None, :]
    weight = tl.load(theta + at, mask=inside, other=0.0)
    m = tl.load(first + at, mask=inside, other=0.0)
    v = tl.load(second + at, mask=inside, other=0.0)
    # One reduction at the end: in the loop every thread adds up what it has. Row i of a shard,
    # counted from its first, goes to accumulator i % ROWS: its stack has no part in the order.
    product = tl.zeros((ROWS, TILE, TILE), theta.dtype.element_ty)
    for r0 in range(start, end, ROWS):
        r = (r0 + tl.arange(0, ROWS)).to(tl.int64)
        valid = r < end
        b = tl.load(
            arena + right + r[:, None] * right_width + j[None, :], mask=valid[:, None], other=0.0
        )
        a = tl.load(
            arena + left + r[:, None] * left_width + i[None, :],
            mask=valid[:, None] & (left_width > 0),
            other=1.0,
        )
        product += a[:, :, None] * b[:, None, :]
    gradient = tl.sum(product, axis=0)
    weight, m, v = adam(
        weight, m, v, gradient, tl.load(step + epoch), tl.load(correction + epoch), DECAY
    )
    tl.store(theta + at, weight, mask=inside)
    tl.store(first + at, m, mask=inside)
    tl.store(second + at, v, mask=inside)
