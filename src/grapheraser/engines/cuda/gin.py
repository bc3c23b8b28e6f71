"""GIN: each layer adds a node's neighbours to it, then applies a two-layer perceptron."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, misc"
from __future__ import annotations

import triton  # type: ignore[import-not-found, import-untyped, unused-ignore]
import triton.language as tl  # type: ignore[import-not-found, import-untyped, unused-ignore]

from grapheraser.engines.cuda.dense import (
    RELU,
    activate,
    activate_and_drop,
    loss_gradient,
    row_times,
    row_times_transposed,
)
from grapheraser.engines.cuda.layout import Gradient
from grapheraser.engines.cuda.run import Run, warps_for
from grapheraser.engines.cuda.sparse import gather, spread
from grapheraser.engines.shared.layout import TensorLayout
from grapheraser.models.constants import NORM_EPS, NORM_MOMENTUM

# Batch norm: one program sums all rows of a shard, ``ROWS`` at a time, so sums of two shards never
# meet.
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


NORM_TILE, NORM_ROWS = 16, 64


@triton.jit
def perceptron(
    z, h, slope, out, g_out, g, theta, row_shard, labels, shares, indptr, indices, forward,
    SIZE: tl.constexpr, BIAS_1: tl.constexpr, WEIGHT: tl.constexpr, BIAS_2: tl.constexpr,
    HIDDEN: tl.constexpr, OUT: tl.constexpr, NUM_CLASSES: tl.constexpr, EDGES: tl.constexpr,
):  # fmt: skip
    """``h = relu(A z + b1)`` and ``out = h W + b2``.

    With ``NUM_CLASSES > 0`` out are the logits, and what is stored are the gradients of the loss
    by them and by what h is activated from.
    """
    r = tl.program_id(0)
    start, end = tl.load(indptr + r), tl.load(indptr + r + 1)
    base = theta + tl.load(row_shard + r).to(tl.int64) * SIZE
    unit, last = tl.arange(0, HIDDEN), tl.arange(0, OUT)
    value = gather(z, indices, forward, start, end, HIDDEN, HIDDEN, EDGES)
    value, derivative = activate(value + tl.load(base + BIAS_1 + unit), RELU)
    row = r.to(tl.int64)
    tl.store(h + row * HIDDEN + unit, value)
    result = row_times(value, base + WEIGHT, HIDDEN, OUT) + tl.load(base + BIAS_2 + last)
    if NUM_CLASSES > 0:
        share = tl.load(shares + r)
        found = loss_gradient(result, tl.load(labels + r), share, NUM_CLASSES, OUT)
        tl.store(g_out + row * OUT + last, found)
        by_h = row_times_transposed(found, base + WEIGHT, HIDDEN, OUT, OUT) * derivative
        tl.store(g + row * HIDDEN + unit, by_h)
    else:
        tl.store(slope + row * HIDDEN + unit, derivative)
        tl.store(out + row * OUT + last, result)


@triton.jit
def between(
    z, h, slope, p, g_out, g, mean, inverse, theta, row_shard, labels, shares, seeds, id_keys,
    clock,
    SIZE: tl.constexpr, SCALE: tl.constexpr, SHIFT: tl.constexpr, WEIGHT: tl.constexpr,
    BIAS: tl.constexpr, HIDDEN: tl.constexpr, OUT: tl.constexpr, NUM_CLASSES: tl.constexpr,
    HAS_NORM: tl.constexpr, LAYER: tl.constexpr, ACTIVATION: tl.constexpr, LIMIT: tl.constexpr,
):  # fmt: skip
    """``h = drop(act(norm(z)))`` and ``p = h W``.

    With ``NUM_CLASSES > 0`` p + bias are the logits, and what is stored are the gradients of the
    loss by them and by the norm's result.
    """
    r = tl.program_id(0)
    shard = tl.load(row_shard + r).to(tl.int64)
    base = theta + shard * SIZE
    unit, last = tl.arange(0, HIDDEN), tl.arange(0, OUT)
    row = r.to(tl.int64)
    value = tl.load(z + row * HIDDEN + unit)
    if HAS_NORM:
        value = normalised(value, mean, inverse, base, shard, unit, SCALE, SHIFT, HIDDEN)
    value, derivative = activate_and_drop(
        value, unit, tl.load(seeds + shard), tl.load(id_keys + r), tl.load(clock + 1),
        LAYER, ACTIVATION, LIMIT,
    )  # fmt: skip
    tl.store(h + row * HIDDEN + unit, value)
    result = row_times(value, base + WEIGHT, HIDDEN, OUT)
    if NUM_CLASSES > 0:
        logits = result + tl.load(base + BIAS + last)
        share = tl.load(shares + r)
        found = loss_gradient(logits, tl.load(labels + r), share, NUM_CLASSES, OUT)
        tl.store(g_out + row * OUT + last, found)
        by_h = row_times_transposed(found, base + WEIGHT, HIDDEN, OUT, OUT) * derivative
        tl.store(g + row * HIDDEN + unit, by_h)
    else:
        tl.store(slope + row * HIDDEN + unit, derivative)
        tl.store(p + row * OUT + last, result)


@triton.jit
def perceptron_gradient(
    g, z, g_z, g_h, slope, mean, inverse, by_weight, by_bias, theta, row_shard, shares,
    SIZE: tl.constexpr, SCALE: tl.constexpr, WEIGHT: tl.constexpr, HIDDEN: tl.constexpr,
    OUT: tl.constexpr, HAS_NORM: tl.constexpr,
):  # fmt: skip
    """From g by the result of the norm to ``g_z`` by its input and ``g_h`` by ``A z + b1``."""
    r = tl.program_id(0)
    shard = tl.load(row_shard + r).to(tl.int64)
    base = theta + shard * SIZE
    unit, last = tl.arange(0, HIDDEN), tl.arange(0, OUT)
    row = r.to(tl.int64)
    value = tl.load(g + row * OUT + last)
    if HAS_NORM:
        value = norm_gradient(
            value, tl.load(z + row * OUT + last), mean, inverse, by_weight, by_bias, base, shard,
            last, tl.load(shares + r), SCALE, OUT,
        )  # fmt: skip
    tl.store(g_z + row * OUT + last, value)
    value = row_times_transposed(value, base + WEIGHT, HIDDEN, OUT, OUT)
    value *= tl.load(slope + row * HIDDEN + unit)
    tl.store(g_h + row * HIDDEN + unit, value)


@triton.jit
def between_gradient(
    g, g_p, g_y, slope, theta, row_shard, indptr, indices, backward,
    SIZE: tl.constexpr, WEIGHT: tl.constexpr, HIDDEN: tl.constexpr, EDGES: tl.constexpr,
):  # fmt: skip
    """From g by ``A p`` to ``g_p`` by p and ``g_y`` by the norm's result."""
    r = tl.program_id(0)
    start, end = tl.load(indptr + r), tl.load(indptr + r + 1)
    base = theta + tl.load(row_shard + r).to(tl.int64) * SIZE
    unit = tl.arange(0, HIDDEN)
    at = r.to(tl.int64) * HIDDEN + unit
    total = gather(g, indices, backward, start, end, HIDDEN, HIDDEN, EDGES)
    tl.store(g_p + at, total)
    value = row_times_transposed(total, base + WEIGHT, HIDDEN, HIDDEN, HIDDEN)
    tl.store(g_y + at, value * tl.load(slope + at))


def buffers(layout: TensorLayout) -> dict[str, tuple[str, int]]:
    """Name the buffers that an epoch writes; each has a row per what, and a width."""
    hidden, last, classes = layout.hidden.width, layout["weight4"].out.width, layout.classes.width
    rows = dict.fromkeys(("z", "h1", "h2", "h3", "slope1", "slope2", "slope3", "p"), hidden)
    rows |= dict.fromkeys(("m1", "g1", "g2", "g3", "g_p", "g_y", "g_input"), hidden)
    rows |= {"m2": last, "h4": last, "g4": last, "g_y2": last, "g_out": classes}
    found = {name: ("rows", width) for name, width in rows.items()}
    for layer, width in ((1, hidden), (2, last)):
        for name in ("mean", "inverse", "by_weight", "by_bias"):
            found[f"{name}{layer}"] = ("shards", width)
    return found


def gradients(layout: TensorLayout) -> list[Gradient]:
    """Name the buffers that the gradients of the parameters are made of."""
    found = [
        Gradient("weight2", "h1", "g2"),
        Gradient("weight3", "h2", "g_p"),
        Gradient("weight4", "h3", "g4"),
        Gradient("bias1", None, "g1"),
        Gradient("bias2", None, "g2"),
        Gradient("bias3", None, "g3"),
        Gradient("bias4", None, "g4"),
    ]
    if layout.spec.linear_head:
        found += [Gradient("head", "h4", "g_out"), Gradient("head_bias", None, "g_out")]
    for layer in range(1, len(layout.norms) + 1):
        found += [
            Gradient(f"scale{layer}", None, f"by_weight{layer}", by_shard=True),
            Gradient(f"shift{layer}", None, f"by_bias{layer}", by_shard=True),
        ]
    return found


def epoch(run: Run) -> None:
    """Launch one epoch."""
    layout, s, b = run.layout, run.stack, run.arena
    has_head = layout.spec.linear_head
    run.project(b["z"])
    _perceptron(run, 1, "z", "h1", "slope1", "m1", 0)
    _statistics(run, 1)
    _between(run, 1, "m1", "h2", "slope2", "p", "weight3", 0)
    if has_head:
        _perceptron(run, 2, "p", "h3", "slope3", "m2", 0)
        _statistics(run, 2)
        _between(run, 2, "m2", "h4", "slope2", "p", "head", layout.num_classes)
        _perceptron_gradient(run, 2, "g_y2", "m2", "g4", "g3", "slope3", "weight4")
    else:
        _perceptron(run, 2, "p", "h3", "slope3", "m2", layout.num_classes)
    hidden, edges = layout.hidden.width, run.edges_per_step
    between_gradient[(s.num_rows,)](
        b["g3"], b["g_p"], b["g_y"], b["slope2"], run.theta, s.row_shard, s.indptr, s.indices,
        s.backward,
        SIZE=layout.size, WEIGHT=layout.offset("weight3"), HIDDEN=hidden, EDGES=edges,
        num_warps=warps_for(hidden * max(hidden, edges)),
    )  # fmt: skip
    _perceptron_gradient(run, 1, "g_y", "m1", "g2", "g1", "slope1", "weight2")
    with run.beside():
        run.update_parameters()
    spread[(s.num_rows,)](
        b["g1"], b["g_input"], s.indptr, s.indices, s.backward,
        WIDTH=hidden, IS_PAIR=False, EDGES=edges, num_warps=warps_for(hidden * edges),
    )  # fmt: skip
    run.update_columns(b["g_input"])


def _perceptron(
    run: Run, layer: int, z: str, h: str, slope: str, out: str, num_classes: int
) -> None:
    layout, s, b = run.layout, run.stack, run.arena
    hidden, edges = layout.hidden.width, run.edges_per_step
    width = hidden if layer == 1 else layout["weight4"].out.width
    perceptron[(s.num_rows,)](
        b[z], b[h], b[slope], b[out], b["g4"], b["g3"], run.theta, s.row_shard, s.labels,
        s.loss_shares, s.indptr, s.indices, s.forward,
        SIZE=layout.size, BIAS_1=layout.offset(f"bias{2 * layer - 1}"),
        WEIGHT=layout.offset(f"weight{2 * layer}"), BIAS_2=layout.offset(f"bias{2 * layer}"),
        HIDDEN=hidden, OUT=width, NUM_CLASSES=num_classes, EDGES=edges,
        num_warps=warps_for(hidden * max(width, edges)),
    )  # fmt: skip


def _statistics(run: Run, layer: int) -> None:
    layout, s, b = run.layout, run.stack, run.arena
    if not layout.norms:
        return
    width = layout.hidden.width if layer == 1 else layout["weight4"].out.width
    statistics[(s.num_shards, width // NORM_TILE)](
        b[f"m{layer}"], b[f"mean{layer}"], b[f"inverse{layer}"], run.running, s.bounds,
        WIDTH=width, TILE=NORM_TILE, ROWS=NORM_ROWS, FIRST=2 * (layer - 1), num_warps=4,
    )  # fmt: skip


def _between(
    run: Run, layer: int, z: str, h: str, slope: str, p: str, weight: str, num_classes: int
) -> None:
    layout, s, b = run.layout, run.stack, run.arena
    width = layout.hidden.width if layer == 1 else layout["weight4"].out.width
    out = layout[weight].out.width
    between[(s.num_rows,)](
        b[z], b[h], b[slope], b[p], b["g_out"], b["g_y2"], b[f"mean{layer}"], b[f"inverse{layer}"],
        run.theta, s.row_shard, s.labels, s.loss_shares, s.seeds, s.id_keys, run.clock,
        SIZE=layout.size, SCALE=layout.offset(f"scale{layer}"),
        SHIFT=layout.offset(f"shift{layer}"), WEIGHT=layout.offset(weight),
        BIAS=layout.offset("head_bias"), HIDDEN=width, OUT=out,
        NUM_CLASSES=num_classes, HAS_NORM=bool(layout.norms), LAYER=layer,
        ACTIVATION=layout.activation, LIMIT=layout.limits.hidden, num_warps=warps_for(width * out),
    )  # fmt: skip


def _perceptron_gradient(
    run: Run, layer: int, g: str, z: str, g_z: str, g_h: str, slope: str, weight: str
) -> None:
    layout, s, b = run.layout, run.stack, run.arena
    hidden = layout.hidden.width
    width = hidden if layer == 1 else layout["weight4"].out.width
    names = ("mean", "inverse", "by_weight", "by_bias")
    mean, inverse, by_weight, by_bias = (b[f"{name}{layer}"] for name in names)
    if layout.norms:
        gradient_sums[(s.num_shards, width // NORM_TILE)](
            b[g], b[z], mean, inverse, by_weight, by_bias, s.bounds,
            WIDTH=width, TILE=NORM_TILE, ROWS=NORM_ROWS, num_warps=4,
        )  # fmt: skip
    perceptron_gradient[(s.num_rows,)](
        b[g], b[z], b[g_z], b[g_h], b[slope], mean, inverse, by_weight, by_bias, run.theta,
        s.row_shard, s.shares,
        SIZE=layout.size, SCALE=layout.offset(f"scale{layer}"), WEIGHT=layout.offset(weight),
        HIDDEN=hidden, OUT=width, HAS_NORM=bool(layout.norms), num_warps=warps_for(hidden * width),
    )  # fmt: skip
