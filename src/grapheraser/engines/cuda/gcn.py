"""GCN and GraphSAGE: two layers that sum over neighbours with fixed weights.

GCN: ``A drop(act(A X W1 + b1)) W2 + b2``, A the normalised adjacency. GraphSAGE: the same with A
the mean, plus a second product with the node's own row; both products lie side by side, and the
kernels are told so by ``IS_PAIR``.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, misc"
from __future__ import annotations

import triton  # type: ignore[import-not-found, import-untyped, unused-ignore]
import triton.language as tl  # type: ignore[import-not-found, import-untyped, unused-ignore]

from grapheraser.engines.cuda.dense import (
    activate_and_drop,
    loss_gradient,
    row_times,
    row_times_transposed,
)
from grapheraser.engines.cuda.layout import Gradient
from grapheraser.engines.cuda.run import Run, warps_for
from grapheraser.engines.cuda.sparse import gather, spread
from grapheraser.engines.shared.layout import HIDDEN_1, TensorLayout

HIDDEN_LAYER = tl.constexpr(HIDDEN_1)


@triton.jit
def first_layer(
    z, h, slope, p, theta, row_shard, seeds, id_keys, clock, indptr, indices, forward,
    SIZE: tl.constexpr, BIAS: tl.constexpr, WEIGHT: tl.constexpr, HIDDEN: tl.constexpr,
    OUT: tl.constexpr, IS_PAIR: tl.constexpr, ACTIVATION: tl.constexpr, LIMIT: tl.constexpr,
    EDGES: tl.constexpr,
):  # fmt: skip
    """From ``z = X W1`` to the hidden units h, their derivatives, and ``p = h W2``."""
    r = tl.program_id(0)
    start, end = tl.load(indptr + r), tl.load(indptr + r + 1)
    shard = tl.load(row_shard + r).to(tl.int64)
    unit = tl.arange(0, HIDDEN)
    stride: tl.constexpr = HIDDEN * (2 if IS_PAIR else 1)
    value = gather(z, indices, forward, start, end, stride, HIDDEN, EDGES)
    row = r.to(tl.int64)
    if IS_PAIR:
        value += tl.load(z + row * stride + HIDDEN + unit)
    value += tl.load(theta + shard * SIZE + BIAS + unit)
    value, derivative = activate_and_drop(
        value, unit, tl.load(seeds + shard), tl.load(id_keys + r), tl.load(clock + 1),
        HIDDEN_LAYER, ACTIVATION, LIMIT,
    )  # fmt: skip
    tl.store(h + row * HIDDEN + unit, value)
    tl.store(slope + row * HIDDEN + unit, derivative)
    out = row_times(value, theta + shard * SIZE + WEIGHT, HIDDEN, OUT)
    tl.store(p + row * OUT + tl.arange(0, OUT), out)


@triton.jit
def second_layer(
    p, g, theta, row_shard, labels, shares, indptr, indices, forward,
    SIZE: tl.constexpr, BIAS: tl.constexpr, CLASSES: tl.constexpr, NUM_CLASSES: tl.constexpr,
    IS_PAIR: tl.constexpr, EDGES: tl.constexpr,
):  # fmt: skip
    """From p to the logits, and on to the loss's gradient g by them."""
    r = tl.program_id(0)
    start, end = tl.load(indptr + r), tl.load(indptr + r + 1)
    shard = tl.load(row_shard + r).to(tl.int64)
    unit = tl.arange(0, CLASSES)
    stride: tl.constexpr = CLASSES * (2 if IS_PAIR else 1)
    logits = gather(p, indices, forward, start, end, stride, CLASSES, EDGES)
    row = r.to(tl.int64)
    if IS_PAIR:
        logits += tl.load(p + row * stride + CLASSES + unit)
    logits += tl.load(theta + shard * SIZE + BIAS + unit)
    found = loss_gradient(logits, tl.load(labels + r), tl.load(shares + r), NUM_CLASSES, CLASSES)
    tl.store(g + row * CLASSES + unit, found)


@triton.jit
def second_layer_gradient(
    g, g_p, g_hidden, slope, theta, row_shard, indptr, indices, backward,
    SIZE: tl.constexpr, WEIGHT: tl.constexpr, HIDDEN: tl.constexpr, CLASSES: tl.constexpr,
    IS_PAIR: tl.constexpr, EDGES: tl.constexpr,
):  # fmt: skip
    """From g by the logits to ``g_p`` by p and ``g_hidden`` by what h is activated from."""
    r = tl.program_id(0)
    start, end = tl.load(indptr + r), tl.load(indptr + r + 1)
    weight = theta + tl.load(row_shard + r).to(tl.int64) * SIZE + WEIGHT
    unit, hidden = tl.arange(0, CLASSES), tl.arange(0, HIDDEN)
    out: tl.constexpr = CLASSES * (2 if IS_PAIR else 1)
    total = gather(g, indices, backward, start, end, CLASSES, CLASSES, EDGES)
    row = r.to(tl.int64)
    tl.store(g_p + row * out + unit, total)
    by_hidden = row_times_transposed(total, weight, HIDDEN, out, CLASSES)
    if IS_PAIR:
        own = tl.load(g + row * CLASSES + unit)
        tl.store(g_p + row * out + CLASSES + unit, own)
        by_hidden += row_times_transposed(own, weight + CLASSES, HIDDEN, out, CLASSES)
    by_hidden *= tl.load(slope + row * HIDDEN + hidden)
    tl.store(g_hidden + row * HIDDEN + hidden, by_hidden)


def buffers(layout: TensorLayout) -> dict[str, tuple[str, int]]:
    """Name the buffers that an epoch writes; each has a row per what, and a width."""
    hidden, inputs = layout.hidden.width, layout.inputs.out.width
    classes, out = layout.classes.width, layout["weight2"].out.width
    rows = {"z": inputs, "h": hidden, "slope": hidden, "p": out}
    rows |= {"g": classes, "g_p": out, "g_hidden": hidden, "g_input": inputs}
    return {name: ("rows", width) for name, width in rows.items()}


def gradients(layout: TensorLayout) -> list[Gradient]:
    """Name the buffers that the gradients of the parameters are made of."""
    matrix = [Gradient("weight2", "h", "g_p")]
    if not layout["bias1"].trained:
        return matrix
    return [*matrix, Gradient("bias1", None, "g_hidden"), Gradient("bias2", None, "g")]


def epoch(run: Run) -> None:
    """Launch one epoch."""
    layout, s, b = run.layout, run.stack, run.arena
    hidden, classes, out = layout.hidden.width, layout.classes.width, layout["weight2"].out.width
    is_pair = len(layout.inputs.names) == 2
    size, weight = layout.size, layout.offset("weight2")
    edges = run.edges_per_step
    run.project(b["z"])
    first_layer[(s.num_rows,)](
        b["z"], b["h"], b["slope"], b["p"], run.theta, s.row_shard, s.seeds, s.id_keys, run.clock,
        s.indptr, s.indices, s.forward,
        SIZE=size, BIAS=layout.offset("bias1"), WEIGHT=weight, HIDDEN=hidden, OUT=out,
        IS_PAIR=is_pair, ACTIVATION=layout.activation, LIMIT=layout.limits.hidden, EDGES=edges,
        num_warps=warps_for(hidden * max(edges, out)),
    )  # fmt: skip
    second_layer[(s.num_rows,)](
        b["p"], b["g"], run.theta, s.row_shard, s.labels, s.loss_shares, s.indptr, s.indices,
        s.forward,
        SIZE=size, BIAS=layout.offset("bias2"), CLASSES=classes, NUM_CLASSES=layout.num_classes,
        IS_PAIR=is_pair, EDGES=edges, num_warps=warps_for(classes * edges),
    )  # fmt: skip
    second_layer_gradient[(s.num_rows,)](
        b["g"], b["g_p"], b["g_hidden"], b["slope"], run.theta, s.row_shard, s.indptr, s.indices,
        s.backward,
        SIZE=size, WEIGHT=weight, HIDDEN=hidden, CLASSES=classes, IS_PAIR=is_pair, EDGES=edges,
        num_warps=warps_for(classes * max(edges, hidden)),
    )  # fmt: skip
    with run.beside():
        run.update_parameters()
    spread[(s.num_rows,)](
        b["g_hidden"], b["g_input"], s.indptr, s.indices, s.backward,
        WIDTH=hidden, IS_PAIR=is_pair, EDGES=edges, num_warps=warps_for(hidden * edges),
    )  # fmt: skip
    run.update_columns(b["g_input"])
