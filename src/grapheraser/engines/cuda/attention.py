"""GAT's kernels: attention over the edges into a node, forward and backward.

A row of the first layer holds the heads interleaved: unit f of head i lies at ``f * HEADS + i``
(as in the CPU engine), so a row is a block ``[UNITS, HEADS]``. The second layer has one head.
With ``IS_PAIR`` (a skip) the weights of a node's own row lie beside those of what attention mixes.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, misc"
from __future__ import annotations

import triton  # type: ignore[import-not-found, import-untyped, unused-ignore]
import triton.language as tl  # type: ignore[import-not-found, import-untyped, unused-ignore]

from grapheraser.engines.cuda.dense import activate_and_drop, loss_gradient
from grapheraser.engines.cuda.noise import edge_key, kept_scale, row_key
from grapheraser.engines.cuda.sparse import entry_values
from grapheraser.engines.shared import layout
from grapheraser.models import constants

HIDDEN_LAYER = tl.constexpr(layout.HIDDEN_1)
ATTENTION_1 = tl.constexpr(layout.ATTENTION_1)
ATTENTION_2 = tl.constexpr(layout.ATTENTION_2)
LEAK = tl.constexpr(constants.LEAK)


@triton.jit
def raw_scores(sources, target, source, inside, HEADS: tl.constexpr):
    """Return the scores of a few edges into one node ``[edges, HEADS]``, before the leaky ReLU."""
    head = tl.arange(0, HEADS)
    at = source[:, None] * HEADS + head[None, :]
    return tl.load(sources + at, mask=inside[:, None], other=0.0) + target[None, :]


@triton.jit
def leaky(score, inside):
    """Apply the leaky ReLU; minus infinity where there is no edge."""
    return tl.where(inside[:, None], tl.where(score > 0, score, score * LEAK), -float("inf"))


@triton.jit
def softmax_parts(sources, target, indices, start, end, HEADS: tl.constexpr, EDGES: tl.constexpr):
    """Return the largest score and the sum of powers of the edges into one node ``[HEADS]``.

    A share that is computed from these two twice has the same bits both times.
    """
    best = tl.full((HEADS,), -float("inf"), target.dtype)
    for e0 in range(start, end, EDGES):
        e = e0 + tl.arange(0, EDGES)
        inside = e < end
        source = tl.load(indices + e, mask=inside, other=0).to(tl.int64)
        score = leaky(raw_scores(sources, target, source, inside, HEADS), inside)
        best = tl.maximum(best, tl.max(score, axis=0))
    total = tl.zeros((HEADS,), target.dtype)
    for e0 in range(start, end, EDGES):
        e = e0 + tl.arange(0, EDGES)
        inside = e < end
        source = tl.load(indices + e, mask=inside, other=0).to(tl.int64)
        score = leaky(raw_scores(sources, target, source, inside, HEADS), inside)
        total += tl.sum(tl.exp(score - best[None, :]), axis=0)
    return best, total


@triton.jit
def after_dropout(share, key, id_keys, source, inside, HEADS: tl.constexpr, LIMIT: tl.constexpr):
    """Return coefficients after dropout; ``key`` is the target's row key."""
    kept = share
    if LIMIT > 0:
        keys = edge_key(key, tl.load(id_keys + source, mask=inside, other=0))
        head = tl.arange(0, HEADS)
        kept = share * kept_scale(keys[:, None], head[None, :], LIMIT).to(share.dtype)
    return kept


@triton.jit
def project_heads(
    z, own, sources, targets, weights, theta, indptr, columns, values, features, row_shard, seeds,
    id_keys, clock,
    SIZE: tl.constexpr, SOURCE: tl.constexpr, TARGET: tl.constexpr, UNITS: tl.constexpr,
    HEADS: tl.constexpr, IS_PAIR: tl.constexpr, ENTRIES: tl.constexpr, INPUT_LIMIT: tl.constexpr,
):  # fmt: skip
    """``z = X W`` (``own = X R`` with ``IS_PAIR``) and each node's scores; starts an epoch."""
    r = tl.program_id(0)
    epoch = tl.load(clock)
    if r == 0:
        tl.store(clock + 1, epoch)
    width: tl.constexpr = UNITS * HEADS
    stride: tl.constexpr = width * (2 if IS_PAIR else 1)
    shard = tl.load(row_shard + r).to(tl.int64)
    seed, id_key = tl.load(seeds + shard), tl.load(id_keys + r)
    head = tl.arange(0, HEADS)
    unit = tl.arange(0, UNITS)[:, None] * HEADS + head[None, :]
    product = tl.zeros((ENTRIES, UNITS, HEADS), z.dtype.element_ty)
    if IS_PAIR:
        own_product = tl.zeros((ENTRIES, UNITS, HEADS), z.dtype.element_ty)
    start, end = tl.load(indptr + r), tl.load(indptr + r + 1)
    for k0 in range(start, end, ENTRIES):
        k = k0 + tl.arange(0, ENTRIES)
        inside = k < end
        value, column = entry_values(
            values, columns, features, k, inside, seed, id_key, epoch, INPUT_LIMIT
        )
        at = column[:, None, None] * stride + unit[None, :, :]
        rows = tl.load(weights + at, mask=inside[:, None, None], other=0.0)
        product += rows * value[:, None, None]
        if IS_PAIR:
            rows = tl.load(weights + width + at, mask=inside[:, None, None], other=0.0)
            own_product += rows * value[:, None, None]
    total = tl.sum(product, axis=0)
    row = r.to(tl.int64)
    tl.store(z + row * width + unit, total)
    if IS_PAIR:
        tl.store(own + row * width + unit, tl.sum(own_product, axis=0))
    base = theta + shard * SIZE + unit
    tl.store(sources + row * HEADS + head, tl.sum(total * tl.load(base + SOURCE), axis=0))
    tl.store(targets + row * HEADS + head, tl.sum(total * tl.load(base + TARGET), axis=0))


@triton.jit
def attend_heads(
    z, own, sources, targets, out, h, slope, p, own_2, sources_2, targets_2, shares_of, kept_of,
    theta, row_shard, seeds, id_keys, clock, indptr, indices,
    SIZE: tl.constexpr, BIAS: tl.constexpr, WEIGHT: tl.constexpr, SOURCE: tl.constexpr,
    TARGET: tl.constexpr, UNITS: tl.constexpr, HEADS: tl.constexpr, CLASSES: tl.constexpr,
    IS_PAIR: tl.constexpr, ACTIVATION: tl.constexpr, LIMIT: tl.constexpr,
    ATTENTION_LIMIT: tl.constexpr, EDGES: tl.constexpr,
):  # fmt: skip
    """Compute layer 1: out by attention, ``h = drop(act(out + b))``, ``p = h W`` and its scores.

    With ``IS_PAIR`` what h is activated from has the own part too, and ``own_2 = h R``.
    """
    r = tl.program_id(0)
    start, end = tl.load(indptr + r), tl.load(indptr + r + 1)
    shard = tl.load(row_shard + r).to(tl.int64)
    seed, id_key, epoch = tl.load(seeds + shard), tl.load(id_keys + r), tl.load(clock + 1)
    base = theta + shard * SIZE
    width: tl.constexpr = UNITS * HEADS
    head, output = tl.arange(0, HEADS), tl.arange(0, CLASSES)
    unit = tl.arange(0, UNITS)[:, None] * HEADS + head[None, :]
    row = r.to(tl.int64)
    target = tl.load(targets + row * HEADS + head)
    best, power = softmax_parts(sources, target, indices, start, end, HEADS, EDGES)
    key = row_key(seed, id_key, epoch, ATTENTION_1)
    total = tl.zeros((UNITS, HEADS), z.dtype.element_ty)
    for e0 in range(start, end, EDGES):
        e = e0 + tl.arange(0, EDGES)
        inside = e < end
        source = tl.load(indices + e, mask=inside, other=0).to(tl.int64)
        score = leaky(raw_scores(sources, target, source, inside, HEADS), inside)
        share = tl.exp(score - best[None, :]) / power[None, :]
        kept = after_dropout(share, key, id_keys, source, inside, HEADS, ATTENTION_LIMIT)
        at = e[:, None].to(tl.int64) * HEADS + head[None, :]
        tl.store(shares_of + at, share, mask=inside[:, None])
        tl.store(kept_of + at, kept, mask=inside[:, None])
        at = source[:, None, None] * width + unit[None, :, :]
        rows = tl.load(z + at, mask=inside[:, None, None], other=0.0)
        total += tl.sum(rows * kept[:, None, :], axis=0)
    at = row * width + unit
    tl.store(out + at, total)
    if IS_PAIR:
        total += tl.load(own + at)
    value, derivative = activate_and_drop(
        total + tl.load(base + BIAS + unit), unit, seed, id_key, epoch, HIDDEN_LAYER, ACTIVATION,
        LIMIT,
    )  # fmt: skip
    tl.store(h + at, value)
    tl.store(slope + at, derivative)
    stride: tl.constexpr = CLASSES * (2 if IS_PAIR else 1)
    weights = base + WEIGHT + unit[:, :, None] * stride + output[None, None, :]
    result = tl.sum(tl.sum(value[:, :, None] * tl.load(weights), axis=0), axis=0)
    tl.store(p + row * CLASSES + output, result)
    if IS_PAIR:
        skipped = tl.sum(tl.sum(value[:, :, None] * tl.load(weights + CLASSES), axis=0), axis=0)
        tl.store(own_2 + row * CLASSES + output, skipped)
    tl.store(sources_2 + r, tl.sum(result * tl.load(base + SOURCE + output), axis=0))
    tl.store(targets_2 + r, tl.sum(result * tl.load(base + TARGET + output), axis=0))


@triton.jit
def attend_once(
    p, own, sources, targets, g, kept_of, by_score, by_target, theta, row_shard, seeds, id_keys,
    clock, labels, row_shares, indptr, indices,
    SIZE: tl.constexpr, BIAS: tl.constexpr, CLASSES: tl.constexpr, NUM_CLASSES: tl.constexpr,
    IS_PAIR: tl.constexpr, ATTENTION_LIMIT: tl.constexpr, EDGES: tl.constexpr,
):  # fmt: skip
    """Compute layer 2, the loss's gradient g by the logits, and that by the scores."""
    r = tl.program_id(0)
    start, end = tl.load(indptr + r), tl.load(indptr + r + 1)
    shard = tl.load(row_shard + r).to(tl.int64)
    output = tl.arange(0, CLASSES)
    row = r.to(tl.int64)
    key = row_key(tl.load(seeds + shard), tl.load(id_keys + r), tl.load(clock + 1), ATTENTION_2)
    target = tl.load(targets + r + tl.arange(0, 1))
    best, power = softmax_parts(sources, target, indices, start, end, 1, EDGES)
    total = tl.zeros((CLASSES,), p.dtype.element_ty)
    for e0 in range(start, end, EDGES):
        e = e0 + tl.arange(0, EDGES)
        inside = e < end
        source = tl.load(indices + e, mask=inside, other=0).to(tl.int64)
        score = leaky(raw_scores(sources, target, source, inside, 1), inside)
        share = tl.exp(score - best[None, :]) / power[None, :]
        kept = after_dropout(share, key, id_keys, source, inside, 1, ATTENTION_LIMIT)
        tl.store(kept_of + e[:, None], kept, mask=inside[:, None])
        at = source[:, None] * CLASSES + output[None, :]
        total += tl.sum(tl.load(p + at, mask=inside[:, None], other=0.0) * kept, axis=0)
    logits = total + tl.load(theta + shard * SIZE + BIAS + output)
    if IS_PAIR:
        logits += tl.load(own + row * CLASSES + output)
    found = loss_gradient(
        logits, tl.load(labels + r), tl.load(row_shares + r), NUM_CLASSES, CLASSES
    )
    tl.store(g + row * CLASSES + output, found)
    mean = tl.sum(found * total, axis=0)
    by_row = tl.zeros((1,), p.dtype.element_ty)
    for e0 in range(start, end, EDGES):
        e = e0 + tl.arange(0, EDGES)
        inside = e < end
        source = tl.load(indices + e, mask=inside, other=0).to(tl.int64)
        raw = raw_scores(sources, target, source, inside, 1)
        share = tl.exp(leaky(raw, inside) - best[None, :]) / power[None, :]
        kept = after_dropout(share, key, id_keys, source, inside, 1, ATTENTION_LIMIT)
        at = source[:, None] * CLASSES + output[None, :]
        rows = tl.load(p + at, mask=inside[:, None], other=0.0)
        by_share = tl.sum(rows * found[None, :], axis=1)[:, None]
        score = by_share * kept - mean * share
        score = tl.where(raw > 0, score, score * LEAK)
        tl.store(by_score + e[:, None], score, mask=inside[:, None])
        by_row += tl.sum(tl.where(inside[:, None], score, 0.0), axis=0)
    tl.store(by_target + r + tl.arange(0, 1), by_row)


@triton.jit
def product_gradient(
    total, g, g_p, weight, row, unit, CLASSES: tl.constexpr, IS_PAIR: tl.constexpr
):  # fmt: skip
    """Return the gradient by h from ``total`` by ``p = h W``, which goes to ``g_p``.

    With ``IS_PAIR`` the right half of ``g_p`` is the gradient by the node's own part.
    """
    output = tl.arange(0, CLASSES)
    stride: tl.constexpr = CLASSES * (2 if IS_PAIR else 1)
    weights = weight + unit[:, :, None] * stride + output[None, None, :]
    tl.store(g_p + row * stride + output, total)
    by_hidden = tl.sum(tl.load(weights) * total[None, None, :], axis=2)
    if IS_PAIR:
        own = tl.load(g + row * CLASSES + output)
        tl.store(g_p + row * stride + CLASSES + output, own)
        by_hidden += tl.sum(tl.load(weights + CLASSES) * own[None, None, :], axis=2)
    return by_hidden


@triton.jit
def attend_once_gradient(
    g, p, kept_of, by_score, by_target, g_p, source_part, target_part, z, out, sources_1,
    targets_1, shares_1, kept_1, by_score_1, by_target_1, g_hidden, slope, theta, row_shard,
    indptr, indices, reverse,
    SIZE: tl.constexpr, SOURCE: tl.constexpr, TARGET: tl.constexpr, WEIGHT: tl.constexpr,
    UNITS: tl.constexpr, HEADS: tl.constexpr, CLASSES: tl.constexpr, IS_PAIR: tl.constexpr,
    EDGES: tl.constexpr,
):  # fmt: skip
    """Back through the second layer to ``g_p`` by p and ``g_hidden`` by what h is activated from.

    Then on to the gradients by the first layer's scores of the edges into the node.
    """
    r = tl.program_id(0)
    start, end = tl.load(indptr + r), tl.load(indptr + r + 1)
    base = theta + tl.load(row_shard + r).to(tl.int64) * SIZE
    width: tl.constexpr = UNITS * HEADS
    head, output = tl.arange(0, HEADS), tl.arange(0, CLASSES)
    unit = tl.arange(0, UNITS)[:, None] * HEADS + head[None, :]
    row = r.to(tl.int64)
    total = tl.zeros((CLASSES,), p.dtype.element_ty)
    by_source = tl.zeros((1,), p.dtype.element_ty)
    for e0 in range(start, end, EDGES):
        e = e0 + tl.arange(0, EDGES)
        inside = e < end
        other = tl.load(indices + e, mask=inside, other=0).to(tl.int64)
        back = tl.load(reverse + e, mask=inside, other=0)
        kept = tl.load(kept_of + back[:, None], mask=inside[:, None], other=0.0)
        score = tl.load(by_score + back[:, None], mask=inside[:, None], other=0.0)
        by_source += tl.sum(score, axis=0)
        at = other[:, None] * CLASSES + output[None, :]
        total += tl.sum(tl.load(g + at, mask=inside[:, None], other=0.0) * kept, axis=0)
    by_row = tl.load(by_target + r + tl.arange(0, 1))
    total += tl.load(base + SOURCE + output) * by_source + tl.load(base + TARGET + output) * by_row
    at = row * CLASSES + output
    own = tl.load(p + at)
    tl.store(source_part + at, own * by_source)
    tl.store(target_part + at, own * by_row)

    by_hidden = product_gradient(total, g, g_p, base + WEIGHT, row, unit, CLASSES, IS_PAIR)
    at = row * width + unit
    by_hidden *= tl.load(slope + at)
    tl.store(g_hidden + at, by_hidden)
    mean = tl.sum(by_hidden * tl.load(out + at), axis=0)
    target = tl.load(targets_1 + row * HEADS + head)
    into = tl.zeros((HEADS,), p.dtype.element_ty)
    for e0 in range(start, end, EDGES):
        e = e0 + tl.arange(0, EDGES)
        inside = e < end
        source = tl.load(indices + e, mask=inside, other=0).to(tl.int64)
        raw = raw_scores(sources_1, target, source, inside, HEADS)
        edge = e[:, None].to(tl.int64) * HEADS + head[None, :]
        share = tl.load(shares_1 + edge, mask=inside[:, None], other=0.0)
        kept = tl.load(kept_1 + edge, mask=inside[:, None], other=0.0)
        place = source[:, None, None] * width + unit[None, :, :]
        rows = tl.load(z + place, mask=inside[:, None, None], other=0.0)
        by_share = tl.sum(rows * by_hidden[None, :, :], axis=1)
        score = by_share * kept - mean[None, :] * share
        score = tl.where(raw > 0, score, score * LEAK)
        tl.store(by_score_1 + edge, score, mask=inside[:, None])
        into += tl.sum(score, axis=0)
    tl.store(by_target_1 + row * HEADS + head, into)


@triton.jit
def attend_heads_gradient(
    g, z, kept_of, by_score, by_target, g_input, source_part, target_part, theta, row_shard,
    indptr, indices, reverse,
    SIZE: tl.constexpr, SOURCE: tl.constexpr, TARGET: tl.constexpr, UNITS: tl.constexpr,
    HEADS: tl.constexpr, IS_PAIR: tl.constexpr, EDGES: tl.constexpr,
):  # fmt: skip
    """Back through the first layer to ``g_input`` by ``z = X W``, and by the own part beside it."""
    r = tl.program_id(0)
    start, end = tl.load(indptr + r), tl.load(indptr + r + 1)
    width: tl.constexpr = UNITS * HEADS
    head = tl.arange(0, HEADS)
    unit = tl.arange(0, UNITS)[:, None] * HEADS + head[None, :]
    base = theta + tl.load(row_shard + r).to(tl.int64) * SIZE + unit
    total = tl.zeros((UNITS, HEADS), z.dtype.element_ty)
    by_source = tl.zeros((HEADS,), z.dtype.element_ty)
    for e0 in range(start, end, EDGES):
        e = e0 + tl.arange(0, EDGES)
        inside = e < end
        other = tl.load(indices + e, mask=inside, other=0).to(tl.int64)
        back = tl.load(reverse + e, mask=inside, other=0).to(tl.int64)
        at = back[:, None] * HEADS + head[None, :]
        kept = tl.load(kept_of + at, mask=inside[:, None], other=0.0)
        by_source += tl.sum(tl.load(by_score + at, mask=inside[:, None], other=0.0), axis=0)
        at = other[:, None, None] * width + unit[None, :, :]
        rows = tl.load(g + at, mask=inside[:, None, None], other=0.0)
        total += tl.sum(rows * kept[:, None, :], axis=0)
    row = r.to(tl.int64)
    by_row = tl.load(by_target + row * HEADS + head)
    total += tl.load(base + SOURCE) * by_source[None, :] + tl.load(base + TARGET) * by_row[None, :]
    at = row * width + unit
    own = tl.load(z + at)
    place = g_input + row * width * (2 if IS_PAIR else 1) + unit
    tl.store(place, total)
    if IS_PAIR:
        tl.store(place + width, tl.load(g + at))
    tl.store(source_part + at, own * by_source[None, :])
    tl.store(target_part + at, own * by_row[None, :])
