"""Batch norm over the rows of each shard: statistics, and the sums of its gradient.

One program sums all rows of a shard, ``ROWS`` at a time: sums of two shards never meet.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, misc"
from __future__ import annotations

import triton  # type: ignore[import-not-found, import-untyped, unused-ignore]
import triton.language as tl  # type: ignore[import-not-found, import-untyped, unused-ignore]

from grapheraser.models.constants import NORM_EPS, NORM_MOMENTUM

MOMENTUM = tl.constexpr(NORM_MOMENTUM)
EPS = tl.constexpr(NORM_EPS)


@triton.jit
def statistics(
    z, mean, inverse, running, bounds,
    WIDTH: tl.constexpr, TILE: tl.constexpr, ROWS: tl.constexpr, FIRST: tl.constexpr,
):  # fmt: skip
    """Write mean and inverse deviation ``[shards, width]``; grid ``[shards, tiles]``.

    Rows ``FIRST`` and ``FIRST + 1`` of ``running [shards, 4, width]`` follow the mean and the
    unbiased variance, as torch's do. A single row has variance 0.
    """
    shard = tl.program_id(0)
    unit = tl.program_id(1) * TILE + tl.arange(0, TILE)
    start, end = tl.load(bounds + shard), tl.load(bounds + shard + 1)
    n = (end - start).to(z.dtype.element_ty)
    total = tl.zeros((TILE,), z.dtype.element_ty)
    for r0 in range(start, end, ROWS):
        r = (r0 + tl.arange(0, ROWS)).to(tl.int64)
        at = r[:, None] * WIDTH + unit[None, :]
        total += tl.sum(tl.load(z + at, mask=r[:, None] < end, other=0.0), axis=0)
    centre = total / n
    total = tl.zeros((TILE,), z.dtype.element_ty)
    for r0 in range(start, end, ROWS):
        r = (r0 + tl.arange(0, ROWS)).to(tl.int64)
        at = r[:, None] * WIDTH + unit[None, :]
        offset = tl.load(z + at, mask=r[:, None] < end, other=0.0) - centre[None, :]
        offset = tl.where(r[:, None] < end, offset, 0.0)
        total += tl.sum(offset * offset, axis=0)
    variance = total / n
    tl.store(mean + shard * WIDTH + unit, centre)
    tl.store(inverse + shard * WIDTH + unit, 1.0 / tl.sqrt(variance + EPS))
    at = running + (shard * 4 + FIRST) * WIDTH + unit
    tl.store(at, tl.load(at) * (1 - MOMENTUM) + centre * MOMENTUM)
    at += WIDTH
    unbiased = total / tl.maximum(n - 1, 1.0)
    tl.store(at, tl.load(at) * (1 - MOMENTUM) + unbiased * MOMENTUM)


@triton.jit
def normalised(z, mean, inverse, theta, shard, unit, WEIGHT, BIAS, WIDTH: tl.constexpr):
    """Return one row after the norm; theta is the shard's own."""
    value = (z - tl.load(mean + shard * WIDTH + unit)) * tl.load(inverse + shard * WIDTH + unit)
    return value * tl.load(theta + WEIGHT + unit) + tl.load(theta + BIAS + unit)


@triton.jit
def gradient_sums(
    g, z, mean, inverse, by_weight, by_bias, bounds,
    WIDTH: tl.constexpr, TILE: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """Write the gradients of weight and bias ``[shards, width]``; grid ``[shards, tiles]``."""
    shard = tl.program_id(0)
    unit = tl.program_id(1) * TILE + tl.arange(0, TILE)
    start, end = tl.load(bounds + shard), tl.load(bounds + shard + 1)
    centre, scale = tl.load(mean + shard * WIDTH + unit), tl.load(inverse + shard * WIDTH + unit)
    weight = tl.zeros((TILE,), z.dtype.element_ty)
    bias = tl.zeros((TILE,), z.dtype.element_ty)
    for r0 in range(start, end, ROWS):
        r = (r0 + tl.arange(0, ROWS)).to(tl.int64)
        at = r[:, None] * WIDTH + unit[None, :]
        part = tl.load(g + at, mask=r[:, None] < end, other=0.0)
        row = tl.load(z + at, mask=r[:, None] < end, other=0.0)
        weight += tl.sum(part * (row - centre[None, :]) * scale[None, :], axis=0)
        bias += tl.sum(part, axis=0)
    tl.store(by_weight + shard * WIDTH + unit, weight)
    tl.store(by_bias + shard * WIDTH + unit, bias)


@triton.jit
def norm_gradient(
    g, z, mean, inverse, by_weight, by_bias, theta, shard, unit, share, WEIGHT,
    WIDTH: tl.constexpr,
):  # fmt: skip
    """Return one row of the gradient by the norm's input, from g by its result."""
    at = shard * WIDTH + unit
    scale = tl.load(inverse + at)
    standard = (z - tl.load(mean + at)) * scale
    row = g - tl.load(by_bias + at) * share - standard * (tl.load(by_weight + at) * share)
    return row * scale * tl.load(theta + WEIGHT + unit)
