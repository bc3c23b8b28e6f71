"""MLP: three linear layers, no edges."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, misc"
from __future__ import annotations

import triton  # type: ignore[import-not-found, import-untyped, unused-ignore]
import triton.language as tl  # type: ignore[import-not-found, import-untyped, unused-ignore]

from grapheraser.engines.cuda.dense import activate_and_drop
from grapheraser.engines.cuda.layout import Gradient
from grapheraser.engines.cuda.run import Run
from grapheraser.engines.shared.layout import TensorLayout

ROWS = 16


@triton.jit
def linear(
    h, out, slope, theta, tiles, row_shard, labels, shares, seeds, id_keys, clock,
    SIZE: tl.constexpr, WEIGHT: tl.constexpr, BIAS: tl.constexpr, IN: tl.constexpr,
    OUT: tl.constexpr, ROWS: tl.constexpr, TILE: tl.constexpr, DEPTH: tl.constexpr,
    IS_BACKWARD: tl.constexpr, NUM_CLASSES: tl.constexpr, LAYER: tl.constexpr,
    ACTIVATION: tl.constexpr, LIMIT: tl.constexpr,
):  # fmt: skip
    """Compute a tile of a layer for a few rows of one shard; grid ``[row tiles, unit tiles]``.

    Forward: ``out = drop(act(h W + b))`` and its derivatives in ``slope``. With
    ``NUM_CLASSES > 0``: the loss's gradient by the logits ``h W + b``. Backward:
    ``out = slope * (h W^T)``, W as stored ``[OUT, IN]``.
    """
    first, end = tl.load(tiles + 2 * tl.program_id(0)), tl.load(tiles + 2 * tl.program_id(0) + 1)
    shard = tl.load(row_shard + first).to(tl.int64)
    base = theta + shard * SIZE
    r = (first + tl.arange(0, ROWS)).to(tl.int64)
    inside = r < end
    unit = tl.program_id(1) * TILE + tl.arange(0, TILE)
    total = tl.zeros((ROWS, TILE), h.dtype.element_ty)
    for k0 in range(0, IN, DEPTH):
        k = k0 + tl.arange(0, DEPTH)
        part = tl.load(h + r[None, :] * IN + k[:, None], mask=inside[None, :], other=0.0)
        if IS_BACKWARD:
            weight = tl.load(base + WEIGHT + unit[None, :] * IN + k[:, None])
        else:
            weight = tl.load(base + WEIGHT + k[:, None] * OUT + unit[None, :])
        # With the summed axis in the middle triton would make this a product in tf32.
        total += tl.sum(part[:, :, None] * weight[:, None, :], axis=0)
    at = r[:, None] * OUT + unit[None, :]
    if IS_BACKWARD:
        total *= tl.load(slope + at, mask=inside[:, None], other=0.0)
    else:
        total += tl.load(base + BIAS + unit)[None, :]
        if NUM_CLASSES > 0:
            logits = tl.where(unit[None, :] < NUM_CLASSES, total, -float("inf"))
            power = tl.exp(logits - tl.max(logits, axis=1)[:, None])
            label = tl.load(labels + r, mask=inside, other=0)
            chance = power / tl.sum(power, axis=1)[:, None]
            total = chance - tl.where(unit[None, :] == label[:, None], 1.0, 0.0)
            total = total * tl.load(shares + r, mask=inside, other=0.0)[:, None]
        else:
            id_key = tl.load(id_keys + r, mask=inside, other=0)
            total, derivative = activate_and_drop(
                total, unit[None, :], tl.load(seeds + shard), id_key[:, None],
                tl.load(clock + 1), LAYER, ACTIVATION, LIMIT,
            )  # fmt: skip
            tl.store(slope + at, derivative, mask=inside[:, None])
    tl.store(out + at, total, mask=inside[:, None])


def buffers(layout: TensorLayout) -> dict[str, tuple[str, int]]:
    """Name the buffers that an epoch writes; each has a row per what, and a width."""
    hidden, second, classes = layout.hidden.width, layout["weight2"].out.width, layout.classes.width
    rows = {"h1": hidden, "slope1": hidden, "g1": hidden, "g3": classes}
    rows |= {"h2": second, "slope2": second, "g2": second}
    return {name: ("rows", width) for name, width in rows.items()}


def gradients(layout: TensorLayout) -> list[Gradient]:
    """Name the buffers that the gradients of the parameters are made of."""
    del layout
    return [
        Gradient("weight2", "h1", "g2"),
        Gradient("weight3", "h2", "g3"),
        Gradient("bias1", None, "g1"),
        Gradient("bias2", None, "g2"),
        Gradient("bias3", None, "g3"),
    ]


def epoch(run: Run) -> None:
    """Launch one epoch."""
    layout, b = run.layout, run.arena
    hidden, second, classes = layout.hidden.width, layout["weight2"].out.width, layout.classes.width
    run.project(b["h1"], hidden=b["slope1"])
    _linear(run, "h1", "h2", "slope2", "weight2", "bias2", hidden, second)
    _linear(run, "h2", "g3", "slope2", "weight3", "bias3", second, classes, layout.num_classes)
    _linear(run, "g3", "g2", "slope2", "weight3", None, classes, second)
    _linear(run, "g2", "g1", "slope1", "weight2", None, second, hidden)
    with run.beside():
        run.update_parameters()
    run.update_columns(b["g1"])


def _linear(
    run: Run,
    h: str,
    out: str,
    slope: str,
    weight: str,
    bias: str | None,
    width_in: int,
    width_out: int,
    num_classes: int = 0,
) -> None:
    """Launch a layer, or its gradient when there is no bias to add."""
    layout, s, b = run.layout, run.stack, run.arena
    tile = width_out if num_classes else 16
    linear[(s.num_tiles, width_out // tile)](
        b[h], b[out], b[slope], run.theta, s.tiles, s.row_shard, s.labels, s.loss_shares, s.seeds,
        s.id_keys, run.clock,
        SIZE=layout.size, WEIGHT=layout.offset(weight),
        BIAS=0 if bias is None else layout.offset(bias),
        IN=width_in, OUT=width_out, ROWS=ROWS, TILE=tile, DEPTH=max(1, min(width_in, 512 // tile)),
        IS_BACKWARD=bias is None, NUM_CLASSES=num_classes, LAYER=2, ACTIVATION=layout.activation,
        LIMIT=layout.limits.hidden, num_warps=4,
    )  # fmt: skip
