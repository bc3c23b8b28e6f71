"""Row sums on a GPU, term after term, as `inference.rows` and `inference.hops` add them.

All are launched with `ROUNDED`: a product is fused with a sum only where the processor does so.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, misc"
from __future__ import annotations

import numpy as np
import triton  # type: ignore[import-not-found, import-untyped, unused-ignore]
import triton.language as tl  # type: ignore[import-not-found, import-untyped, unused-ignore]
from triton.language.extra import (  # type: ignore[import-not-found, import-untyped, unused-ignore]
    libdevice,
)

from grapheraser.kernels.vectors import EXP, LN2_HIGH, LN2_LOW, LOG2_E
from grapheraser.models.constants import LEAK

ROUNDED = {"enable_fp_fusion": False}

LEAKED = tl.constexpr(float(np.float32(LEAK)))
PER_LN2 = tl.constexpr(float(np.float32(LOG2_E)))
HIGH, LOW = tl.constexpr(float(np.float32(-LN2_HIGH))), tl.constexpr(float(np.float32(-LN2_LOW)))
E0, E1, E2, E3, E4, E5 = (tl.constexpr(float(np.float32(each))) for each in EXP)


@triton.jit
def _fma(a, b, c):
    """``a * b + c``, rounded once; all are brought to the shape of ``c``."""
    return tl.fma(tl.broadcast_to(a, c.shape), tl.broadcast_to(b, c.shape), c)


@triton.jit
def exponential(value):
    """`kernels.vectors.exponential` in float32."""
    zero = tl.zeros_like(value)
    clipped = tl.maximum(value, zero - 87.0)
    power = libdevice.rint(clipped * PER_LN2)
    rest = tl.fma(power, zero + HIGH, clipped)
    rest = tl.fma(power, zero + LOW, rest)
    total = tl.fma(zero + E0, rest, zero + E1)
    total = tl.fma(total, rest, zero + E2)
    total = tl.fma(total, rest, zero + E3)
    total = tl.fma(total, rest, zero + E4)
    total = tl.fma(total, rest, zero + E5)
    total = tl.fma(total, rest * rest, rest) + 1.0
    exponent = power.to(tl.int32) << 23
    return (total.to(tl.int32, bitcast=True) + exponent).to(tl.float32, bitcast=True)


@triton.jit
def project(
    out, weight, place, rows, indptr, indices, data, count,
    WIDTH: tl.constexpr, WHOLE: tl.constexpr, UNITS: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """The first rows of X W; grid ``[rows, units]``. Units from ``WHOLE`` on are not fused."""
    r = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    unit = tl.program_id(1) * UNITS + tl.arange(0, UNITS)[None, :]
    row = tl.load(rows + r, mask=r < count, other=0)
    start = tl.load(indptr + row)
    length = tl.where(r < count, tl.load(indptr + row + 1) - start, 0)
    total = tl.zeros((ROWS, UNITS), tl.float32)
    for k in range(0, tl.max(length)):
        inside = k < length
        value = tl.load(data + start + k, mask=inside, other=0.0)[:, None]
        column = tl.load(indices + start + k, mask=inside, other=0)
        at = tl.load(place + column, mask=inside, other=0).to(tl.int64)[:, None]
        factor = tl.load(weight + at * WIDTH + unit, mask=unit < WIDTH, other=0.0)
        new = tl.where(unit < WHOLE, _fma(factor, value, total), total + value * factor)
        total = tl.where(inside[:, None], new, total)
    at = r.to(tl.int64)[:, None] * WIDTH + unit
    tl.store(out + at, total, mask=(r < count)[:, None] & (unit < WIDTH))


@triton.jit
def matmul(
    out, h, weight, count,
    DEPTH: tl.constexpr, WIDTH: tl.constexpr, UNITS: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """``h @ weight``; grid ``[rows, units]``."""
    r = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    unit = tl.program_id(1) * UNITS + tl.arange(0, UNITS)[None, :]
    total = tl.zeros((ROWS, UNITS), tl.float32)
    for k in range(0, DEPTH):
        value = tl.load(h + r.to(tl.int64) * DEPTH + k, mask=r < count, other=0.0)[:, None]
        factor = tl.load(weight + k * WIDTH + unit, mask=unit < WIDTH, other=0.0)
        total = _fma(factor, value, total)
    at = r.to(tl.int64)[:, None] * WIDTH + unit
    tl.store(out + at, total, mask=(r < count)[:, None] & (unit < WIDTH))


@triton.jit
def add_neighbours(
    out, z, indptr, indices, factors, own, count,
    WIDTH: tl.constexpr, IS_WEIGHTED: tl.constexpr, UNITS: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """The sum over a row's neighbours; with ``IS_WEIGHTED`` by factors, itself the last term."""
    r = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    unit = tl.program_id(1) * UNITS + tl.arange(0, UNITS)[None, :]
    start = tl.load(indptr + r, mask=r < count, other=0)
    length = tl.where(r < count, tl.load(indptr + r + 1, mask=r < count, other=0) - start, 0)
    total = tl.zeros((ROWS, UNITS), tl.float32)
    for e in range(0, tl.max(length)):
        inside = e < length
        other = tl.load(indices + start + e, mask=inside, other=0).to(tl.int64)[:, None]
        value = tl.load(z + other * WIDTH + unit, mask=unit < WIDTH, other=0.0)
        if IS_WEIGHTED:
            value = value * tl.load(factors + start + e, mask=inside, other=0.0)[:, None]
        total = tl.where(inside[:, None], total + value, total)
    at = r.to(tl.int64)[:, None] * WIDTH + unit
    kept = (r < count)[:, None] & (unit < WIDTH)
    if IS_WEIGHTED:
        factor = tl.load(own + r, mask=r < count, other=0.0)[:, None]
        total = total + tl.load(z + at, mask=kept, other=0.0) * factor
    tl.store(out + at, total, mask=kept)


@triton.jit
def _score(source, here, indices, start, e, edges, r, head, inside, STRIP: tl.constexpr):
    """The score of each row's e-th neighbour, after the last one the row itself; and its place."""
    other = tl.load(indices + start + e, mask=e < edges, other=0)
    other = tl.where(e < edges, other, r).to(tl.int64)
    score = tl.load(source + other * STRIP + head, mask=inside, other=0.0) + here
    return tl.where(score > 0, score, score * LEAKED), other


@triton.jit
def attend(
    out, z, source, target, indptr, indices, count,
    LOOPS: tl.constexpr, STRIP: tl.constexpr, WIDE: tl.constexpr, WIDTH: tl.constexpr,
    UNITS: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """GAT's attention-weighted sum over neighbours; grid ``[rows, heads]``."""
    r = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    head = tl.program_id(1)
    unit = tl.arange(0, UNITS)[None, :]
    known = r < count
    start = tl.load(indptr + r, mask=known, other=0)
    edges = tl.where(known, tl.load(indptr + r + 1, mask=known, other=0) - start, 0)
    length = tl.where(known, edges + LOOPS, 0)
    here = tl.load(target + r.to(tl.int64) * STRIP + head, mask=known, other=0.0)
    best = tl.full((ROWS,), float("-inf"), tl.float32)
    for e in range(0, tl.max(length)):
        inside = e < length
        score, other = _score(source, here, indices, start, e, edges, r, head, inside, STRIP)
        best = tl.where(inside, tl.maximum(best, score), best)
    whole = tl.zeros((ROWS,), tl.float32)
    total = tl.zeros((ROWS, UNITS), tl.float32)
    for e in range(0, tl.max(length)):
        inside = e < length
        score, other = _score(source, here, indices, start, e, edges, r, head, inside, STRIP)
        share = exponential(tl.where(inside, score - best, 0.0))
        whole = tl.where(inside, whole + share, whole)
        at = other[:, None] * WIDE + head * WIDTH + unit
        value = tl.load(z + at, mask=inside[:, None] & (unit < WIDTH), other=0.0)
        total = tl.where(inside[:, None], total + value * share[:, None], total)
    whole = tl.broadcast_to(tl.where(length > 0, whole, 1.0)[:, None], total.shape)
    total = tl.div_rn(total, whole)
    at = r.to(tl.int64)[:, None] * WIDE + head * WIDTH + unit
    tl.store(out + at, total, mask=known[:, None] & (unit < WIDTH))


@triton.jit
def elu(z, size, BLOCK: tl.constexpr):
    """ELU, in place."""
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(z + at, mask=at < size, other=0.0)
    negative = exponential(tl.minimum(value, 0.0)) - 1.0
    tl.store(z + at, tl.where(value > 0, value, negative), mask=at < size)
