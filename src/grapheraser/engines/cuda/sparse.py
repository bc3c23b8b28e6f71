"""Sparse kernels: along the edges of the shards, and through their features.

No atomics: whoever writes a row or a column also sums it, in the order of its entries, a block of
them at a time. The sizes of blocks (`EDGES`, `ENTRIES`, `LONG`, `SHORT`) decide the order of a sum,
so they follow from the model alone, never from the graph, the stack or the GPU's load: other sizes,
other bits. Entries behind the end of a row are zeros, which add nothing.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, misc"
from __future__ import annotations

import triton  # type: ignore[import-not-found, import-untyped, unused-ignore]
import triton.language as tl  # type: ignore[import-not-found, import-untyped, unused-ignore]

from grapheraser.engines.cuda.dense import activate_and_drop, adam
from grapheraser.engines.cuda.noise import kept_scale, row_key
from grapheraser.engines.shared.layout import HIDDEN_1, INPUT

INPUT_LAYER = tl.constexpr(INPUT)
HIDDEN_LAYER = tl.constexpr(HIDDEN_1)


@triton.jit
def gather(
    z, indices, weights, start, end, STRIDE: tl.constexpr, WIDTH: tl.constexpr,
    EDGES: tl.constexpr,
):  # fmt: skip
    """``sum_e weights[e] z[indices[e]]`` over the entries of one row: ``[WIDTH]``."""
    unit = tl.arange(0, WIDTH)
    total = tl.zeros((WIDTH,), z.dtype.element_ty)
    for e0 in range(start, end, EDGES):
        e = e0 + tl.arange(0, EDGES)
        inside = e < end
        source = tl.load(indices + e, mask=inside, other=0).to(tl.int64)
        weight = tl.load(weights + e, mask=inside, other=0.0)
        rows = tl.load(
            z + source[:, None] * STRIDE + unit[None, :], mask=inside[:, None], other=0.0
        )
        total += tl.sum(rows * weight[:, None], axis=0)
    return total


@triton.jit
def entry_values(values, columns, features, k, inside, seed, id_key, epoch, LIMIT: tl.constexpr):
    """Return entries of a row of X and their columns, after the input dropout of this epoch."""
    column = tl.load(columns + k, mask=inside, other=0).to(tl.int64)
    value = tl.load(values + k, mask=inside, other=0.0)
    if LIMIT > 0:
        feature = tl.load(features + column, mask=inside, other=0)
        key = row_key(seed, id_key, epoch, INPUT_LAYER)
        value = value * kept_scale(key, feature, LIMIT).to(value.dtype)
    return value, column


@triton.jit
def project(
    z, slope, weights, theta, indptr, columns, values, features, row_shard, seeds, id_keys, clock,
    WIDTH: tl.constexpr, TILE: tl.constexpr, ENTRIES: tl.constexpr, INPUT_LIMIT: tl.constexpr,
    IS_HIDDEN: tl.constexpr, SIZE: tl.constexpr, BIAS: tl.constexpr, ACTIVATION: tl.constexpr,
    LIMIT: tl.constexpr,
):  # fmt: skip
    """``z = X W``, one row and one tile of units; grid ``[rows, tiles]``. Starts an epoch.

    With ``IS_HIDDEN`` the bias, the activation and dropout follow at once.
    """
    r = tl.program_id(0)
    epoch = tl.load(clock)
    if (r == 0) & (tl.program_id(1) == 0):
        tl.store(clock + 1, epoch)
    shard = tl.load(row_shard + r).to(tl.int64)
    seed, id_key = tl.load(seeds + shard), tl.load(id_keys + r)
    unit = tl.program_id(1) * TILE + tl.arange(0, TILE)
    product = tl.zeros((ENTRIES, TILE), z.dtype.element_ty)
    start, end = tl.load(indptr + r), tl.load(indptr + r + 1)
    for k0 in range(start, end, ENTRIES):
        k = k0 + tl.arange(0, ENTRIES)
        inside = k < end
        value, column = entry_values(
            values, columns, features, k, inside, seed, id_key, epoch, INPUT_LIMIT
        )
        rows = tl.load(
            weights + column[:, None] * WIDTH + unit[None, :], mask=inside[:, None], other=0.0
        )
        product += rows * value[:, None]
    total = tl.sum(product, axis=0)
    at = r.to(tl.int64) * WIDTH + unit
    if IS_HIDDEN:
        total += tl.load(theta + shard * SIZE + BIAS + unit)
        total, derivative = activate_and_drop(
            total, unit, seed, id_key, epoch, HIDDEN_LAYER, ACTIVATION, LIMIT
        )
        tl.store(slope + at, derivative)
    tl.store(z + at, total)


@triton.jit
def spread(
    g, out, indptr, indices, backward,
    WIDTH: tl.constexpr, IS_PAIR: tl.constexpr, EDGES: tl.constexpr,
):  # fmt: skip
    """Write the gradient by X W from ``g``, that by the sum over neighbours; grid ``[rows]``.

    With ``IS_PAIR`` (sage) the right half of ``out`` is the gradient by the node's own part.
    """
    r = tl.program_id(0)
    unit = tl.arange(0, WIDTH)
    total = gather(
        g, indices, backward, tl.load(indptr + r), tl.load(indptr + r + 1), WIDTH, WIDTH, EDGES
    )
    r = r.to(tl.int64)
    if IS_PAIR:
        tl.store(out + r * 2 * WIDTH + unit, total)
        tl.store(out + r * 2 * WIDTH + WIDTH + unit, tl.load(g + r * WIDTH + unit))
    else:
        tl.store(out + r * WIDTH + unit, total)


@triton.jit
def kept_entries(x, r, feature, inside, row_shard, seeds, id_keys, epoch, LIMIT: tl.constexpr):
    """Return entries x in rows r of some columns, after the input dropout of this epoch."""
    if LIMIT > 0:
        seed = tl.load(seeds + tl.load(row_shard + r, mask=inside, other=0))
        key = row_key(seed, tl.load(id_keys + r, mask=inside, other=0), epoch, INPUT_LAYER)
        x = x * kept_scale(key, feature, LIMIT).to(x.dtype)
    return x


@triton.jit
def update_column(
    c, weights, first, second, g, indptr, rows, values, features, row_shard, seeds, id_keys,
    epoch, rate, scale, unit,
    WIDTH: tl.constexpr, TILE: tl.constexpr, LONG: tl.constexpr, LIMIT: tl.constexpr,
    DECAY: tl.constexpr,
):  # fmt: skip
    """Train one column with many entries: its gradient goes right into Adam."""
    at = c.to(tl.int64) * WIDTH + unit
    weight, m, v = tl.load(weights + at), tl.load(first + at), tl.load(second + at)
    feature = tl.load(features + c)
    product = tl.zeros((LONG, TILE), weights.dtype.element_ty)
    start, end = tl.load(indptr + c), tl.load(indptr + c + 1)
    for k0 in range(start, end, LONG):
        k = k0 + tl.arange(0, LONG)
        inside = k < end
        r = tl.load(rows + k, mask=inside, other=0).to(tl.int64)
        x = tl.load(values + k, mask=inside, other=0.0)
        x = kept_entries(x, r, feature, inside, row_shard, seeds, id_keys, epoch, LIMIT)
        part = tl.load(g + r[:, None] * WIDTH + unit[None, :], mask=inside[:, None], other=0.0)
        product += part * x[:, None]
    total = tl.sum(product, axis=0)
    weight, m, v = adam(weight, m, v, total, rate, scale, DECAY)
    tl.store(weights + at, weight)
    tl.store(first + at, m)
    tl.store(second + at, v)


@triton.jit
def update_block(
    c0, c1, weights, first, second, g, indptr, rows, values, features, row_shard, seeds, id_keys,
    epoch, rate, scale, unit,
    WIDTH: tl.constexpr, COLUMNS: tl.constexpr, SHORT: tl.constexpr, LIMIT: tl.constexpr,
    DECAY: tl.constexpr,
):  # fmt: skip
    """Train a few columns with at most ``SHORT`` entries each."""
    c = c0 + tl.arange(0, COLUMNS)
    real = c < c1
    at = c[:, None].to(tl.int64) * WIDTH + unit[None, :]
    weight = tl.load(weights + at, mask=real[:, None], other=0.0)
    m = tl.load(first + at, mask=real[:, None], other=0.0)
    v = tl.load(second + at, mask=real[:, None], other=0.0)
    start = tl.load(indptr + c, mask=real, other=0)
    end = tl.load(indptr + c + 1, mask=real, other=0)
    k = start[:, None] + tl.arange(0, SHORT)[None, :]
    inside = k < end[:, None]
    r = tl.load(rows + k, mask=inside, other=0).to(tl.int64)
    x = tl.load(values + k, mask=inside, other=0.0)
    feature = tl.load(features + c, mask=real, other=0)
    x = kept_entries(x, r, feature[:, None], inside, row_shard, seeds, id_keys, epoch, LIMIT)
    part = tl.load(
        g + r[:, :, None] * WIDTH + unit[None, None, :], mask=inside[:, :, None], other=0.0
    )
    total = tl.sum(part * x[:, :, None], axis=1)
    weight, m, v = adam(weight, m, v, total, rate, scale, DECAY)
    tl.store(weights + at, weight, mask=real[:, None])
    tl.store(first + at, m, mask=real[:, None])
    tl.store(second + at, v, mask=real[:, None])


@triton.jit(do_not_specialize=["num_long"])
def update_columns(
    weights, first, second, g, indptr, rows, values, features, blocks, num_long,
    row_shard, seeds, id_keys, clock, step, correction,
    WIDTH: tl.constexpr, TILE: tl.constexpr, COLUMNS: tl.constexpr, LONG: tl.constexpr,
    SHORT: tl.constexpr, LIMIT: tl.constexpr, DECAY: tl.constexpr,
):  # fmt: skip
    """Train the first layer; grid ``[blocks, tiles]``.

    The first ``num_long`` blocks are single columns with more than ``SHORT`` entries, the others
    up to ``COLUMNS`` columns with fewer, all of one shard.
    """
    block = tl.program_id(0)
    unit = tl.program_id(1) * TILE + tl.arange(0, TILE)
    epoch = tl.load(clock + 1)
    rate, scale = tl.load(step + epoch), tl.load(correction + epoch)
    c0, c1 = tl.load(blocks + 2 * block), tl.load(blocks + 2 * block + 1)
    if block < num_long:
        update_column(
            c0, weights, first, second, g, indptr, rows, values, features, row_shard, seeds,
            id_keys, epoch, rate, scale, unit, WIDTH, TILE, LONG, LIMIT, DECAY,
        )  # fmt: skip
    else:
        update_block(
            c0, c1, weights, first, second, g, indptr, rows, values, features, row_shard, seeds,
            id_keys, epoch, rate, scale, unit, WIDTH, COLUMNS, SHORT, LIMIT, DECAY,
        )  # fmt: skip
