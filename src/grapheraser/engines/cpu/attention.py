"""GAT's attention over the edges of a shard, forward and backward.

Units of the heads are interleaved (`shared.layout.Axis.of`), so lane i of any vector of a row
belongs to head ``i % period``. What there is one of per head (scores, coefficients) is kept as a
*strip*: one or more vectors that repeat the heads, and that multiply every vector of a row as they
are.

Sums over the edges of a node run in the order of its sorted neighbours, one term at a time. Sums
over the units of a head run lane by lane over the vectors of a row, and then across the lanes by
`fold_sum`, in the order that its halving fixes. Both depend on the shard and the model alone.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from grapheraser.arrays import Ints, Ints32
from grapheraser.engines.cpu.dense import Array
from grapheraser.engines.cpu.noise import Noise, edge_key, row_keys, scale_of
from grapheraser.engines.shared.adjacency import Adjacency
from grapheraser.kernels.compiled import compiled
from grapheraser.kernels.vectors import (
    LANES,
    ONE,
    exponential,
    fma,
    fold_sum,
    kept_lanes,
    larger,
    load,
    store,
    where_positive,
    zeros,
)
from grapheraser.models.constants import LEAK


class Attention(NamedTuple):
    """Room for one layer's attention; n nodes, m entries of the adjacency, strips of width s."""

    # source, target: ``[n, s]``, scores of each node as source and as target of an edge.
    source: Array
    target: Array
    share: Array  # ``[m, s]``, softmax over the edges of a target
    mask: Array  # ``[m, s]``, what dropout multiplies them by; no rows where there is no dropout
    kept: Array  # ``[m, s]``, the product; ``share`` itself where there is no dropout
    by_score: Array  # ``[m, s]``, gradient by the score of the edge
    # by_source, by_target: ``[n, s]``, gradient by the two scores of a node.
    by_source: Array
    by_target: Array
    keys: NDArray[np.uint32]  # uint32 ``[n]``, for dropout
    num_heads: int  # rounded up to a power of two


@compiled
def attend(
    edges: Adjacency,
    noise: Noise,
    epoch: int,
    layer: int,
    a: Attention,
    z: Array,
    theta: Array,
    source_at: int,
    target_at: int,
    out: Array,
) -> None:
    """``out[i] = sum_j kept[i, j] z[j]``, j the neighbours of i."""
    _score(z, theta, source_at, target_at, a.num_heads, a.source, a.target)
    _softmax(edges.indptr, edges.indices, a.source, a.target, a.share)
    row_keys(noise, epoch, layer, a.keys)
    _drop(edges.indptr, edges.indices, noise, a.keys, a.num_heads, a.share, a.mask, a.kept)
    _mix(edges.indptr, edges.indices, a.kept, z, out)


@compiled
def attend_gradient(
    edges: Adjacency,
    a: Attention,
    z: Array,
    theta: Array,
    gradient: Array,
    source_at: int,
    target_at: int,
    g: Array,
    out: Array,
) -> None:
    """From ``g`` by `attend`'s result to ``out`` by ``z``, and the gradients of the scores."""
    _by_share(edges.indptr, edges.indices, a.mask, z, g, a.num_heads, a.by_score)
    _by_score(edges.indptr, edges.indices, a.source, a.target, a.share, a.by_score, a.by_target)
    _collect(edges.indptr, edges.reverse, a.by_score, a.by_source)
    _mix_back(edges.indptr, edges.indices, edges.reverse, a.kept, g, out)
    _score_gradient(z, theta, gradient, source_at, target_at, a.by_source, a.by_target, out)


@compiled
def _score(
    z: Array,
    theta: Array,
    source_at: int,
    target_at: int,
    num_heads: int,
    source: Array,
    target: Array,
) -> None:
    """Score each node as a source and as a target: a product with its units, per head."""
    (n, width), strip, period = z.shape, source.shape[1], min(num_heads, LANES)
    for r in range(n):
        for b in range(0, strip, LANES):
            as_source, as_target = zeros(z, ONE), zeros(z, ONE)
            for v in range(b, width, strip):
                row = load(z, r * width + v, ONE)
                as_source = fma(row, load(theta, source_at + v, ONE), as_source)
                as_target = fma(row, load(theta, target_at + v, ONE), as_target)
            store(source, r * strip + b, fold_sum(as_source, period))
            store(target, r * strip + b, fold_sum(as_target, period))


@compiled
def _softmax(indptr: Ints, indices: Ints32, source: Array, target: Array, share: Array) -> None:
    """Softmax of the leaky scores over the edges into each node."""
    n, strip = target.shape
    for r in range(n):
        start, end = indptr[r], indptr[r + 1]
        for b in range(0, strip, LANES):
            own = load(target, r * strip + b, ONE)
            best = zeros(share, ONE) - np.inf
            for e in range(start, end):
                score = load(source, indices[e] * strip + b, ONE) + own
                score = larger(score, score * LEAK)
                store(share, e * strip + b, score)
                best = larger(best, score)
            total = zeros(share, ONE)
            for e in range(start, end):
                power = exponential(load(share, e * strip + b, ONE) - best)
                store(share, e * strip + b, power)
                total = total + power
            inverse = 1.0 / total
            for e in range(start, end):
                store(share, e * strip + b, load(share, e * strip + b, ONE) * inverse)


@compiled
def _drop(
    indptr: Ints,
    indices: Ints32,
    noise: Noise,
    keys: NDArray[np.uint32],
    num_heads: int,
    share: Array,
    mask: Array,
    kept: Array,
) -> None:
    """Dropout on the coefficients; nothing to do where ``kept`` is ``share`` itself."""
    limit, scale, id_keys = noise.attention, scale_of(noise.attention), noise.id_keys
    if limit == 0:
        return
    strip = share.shape[1]
    for r in range(len(indptr) - 1):
        for e in range(indptr[r], indptr[r + 1]):
            key = edge_key(keys[r], id_keys[indices[e]])
            for at in range(e * strip, (e + 1) * strip, LANES):
                value = load(share, at, ONE)
                factor = kept_lanes(value, key, at - e * strip, num_heads, limit) * scale
                store(mask, at, factor)
                store(kept, at, value * factor)


@compiled
def _mix(indptr: Ints, indices: Ints32, kept: Array, z: Array, out: Array) -> None:
    """``out[i] = sum_j kept[i, j] z[j]``."""
    (n, width), strip = z.shape, kept.shape[1]
    for r in range(n):
        for b in range(0, strip, LANES):
            for v in range(b, width, strip):
                total = zeros(z, ONE)
                for e in range(indptr[r], indptr[r + 1]):
                    row = load(z, indices[e] * width + v, ONE)
                    total = fma(row, load(kept, e * strip + b, ONE), total)
                store(out, r * width + v, total)


@compiled
def _mix_back(
    indptr: Ints, indices: Ints32, reverse: Ints32, kept: Array, g: Array, out: Array
) -> None:
    """``out[j] = sum_i kept[i, j] g[i]``.

    Each node gathers along its own edges, by the coefficients of their reverses. Scattering would
    sum in the order of the targets, and race between threads.
    """
    (n, width), strip = g.shape, kept.shape[1]
    for r in range(n):
        for b in range(0, strip, LANES):
            for v in range(b, width, strip):
                total = zeros(g, ONE)
                for e in range(indptr[r], indptr[r + 1]):
                    row = load(g, indices[e] * width + v, ONE)
                    total = fma(row, load(kept, reverse[e] * strip + b, ONE), total)
                store(out, r * width + v, total)


@compiled
def _by_share(
    indptr: Ints, indices: Ints32, mask: Array, z: Array, g: Array, num_heads: int, out: Array
) -> None:
    """Write the gradient by coefficients before dropout: ``mask[i, j] (g[i] . z[j])``, per head."""
    (n, width), strip, period = z.shape, out.shape[1], min(num_heads, LANES)
    for r in range(n):
        for e in range(indptr[r], indptr[r + 1]):
            for b in range(0, strip, LANES):
                total = zeros(z, ONE)
                for v in range(b, width, strip):
                    row = load(z, indices[e] * width + v, ONE)
                    total = fma(load(g, r * width + v, ONE), row, total)
                total = fold_sum(total, period)
                if len(mask) > 0:
                    total = total * load(mask, e * strip + b, ONE)
                store(out, e * strip + b, total)


@compiled
def _by_score(
    indptr: Ints,
    indices: Ints32,
    source: Array,
    target: Array,
    share: Array,
    by_score: Array,
    by_target: Array,
) -> None:
    """Turn the gradient by the coefficients into that by the scores; sum it up per target."""
    n, strip = target.shape
    for r in range(n):
        start, end = indptr[r], indptr[r + 1]
        for b in range(0, strip, LANES):
            own = load(target, r * strip + b, ONE)
            mean = zeros(share, ONE)
            for at in range(start * strip + b, end * strip + b, strip):
                mean = fma(load(by_score, at, ONE), load(share, at, ONE), mean)
            total = zeros(share, ONE)
            for e in range(start, end):
                at = e * strip + b
                value = (load(by_score, at, ONE) - mean) * load(share, at, ONE)
                score = load(source, indices[e] * strip + b, ONE) + own
                value = where_positive(score, value, value * LEAK)
                store(by_score, at, value)
                total = total + value
            store(by_target, r * strip + b, total)


@compiled
def _collect(indptr: Ints, reverse: Ints32, by_score: Array, by_source: Array) -> None:
    """Sum the gradient by the scores up per source."""
    n, strip = by_source.shape
    for r in range(n):
        for b in range(0, strip, LANES):
            total = zeros(by_score, ONE)
            for e in range(indptr[r], indptr[r + 1]):
                total = total + load(by_score, reverse[e] * strip + b, ONE)
            store(by_source, r * strip + b, total)


@compiled
def _score_gradient(
    z: Array,
    theta: Array,
    gradient: Array,
    source_at: int,
    target_at: int,
    by_source: Array,
    by_target: Array,
    out: Array,
) -> None:
    """Through `_score`: add to ``out`` by ``z``, write the gradients of the score's weights."""
    (n, width), strip = z.shape, by_source.shape[1]
    for b in range(0, strip, LANES):
        for v in range(b, width, strip):
            source, target = load(theta, source_at + v, ONE), load(theta, target_at + v, ONE)
            of_source, of_target = zeros(z, ONE), zeros(z, ONE)
            for r in range(n):
                as_source = load(by_source, r * strip + b, ONE)
                as_target = load(by_target, r * strip + b, ONE)
                at = r * width + v
                total = fma(source, as_source, load(out, at, ONE))
                store(out, at, fma(target, as_target, total))
                row = load(z, at, ONE)
                of_source = fma(row, as_source, of_source)
                of_target = fma(row, as_target, of_target)
            store(gradient, source_at + v, of_source)
            store(gradient, target_at + v, of_target)
