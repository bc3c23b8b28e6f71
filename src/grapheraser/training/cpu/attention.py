"""GAT's attention over the edges of a shard, forward and backward.

Units of the heads are interleaved (`layout.Axis.heads`), so lane i of any vector of a row belongs
to head ``i % period``. What there is one of per head (scores, coefficients) is kept as a *strip*:
one or more vectors that repeat the heads, and that multiply every vector of a row as they are.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from grapheraser.training.cpu.dense import Array
from grapheraser.training.cpu.noise import Noise, edge_key, row_keys, scale_of
from grapheraser.training.cpu.simd import (
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
from grapheraser.training.cpu.sparse import Edges

LEAK = 0.2


class Attention(NamedTuple):
    """Room for one layer's attention; n nodes, m entries of the adjacency, strips of width s.

    Attributes:
        source, target: ``[n, s]``, scores of each node as source and as target of an edge.
        share: ``[m, s]``, softmax over the edges of a target.
        kept: ``[m, s]``, the same after dropout.
        by_score: ``[m, s]``, gradient by the score of the edge.
        by_target: ``[n, s]``, gradient by the target's score.
        keys: uint32 ``[n]``, for dropout.
        num_heads: rounded up to a power of two.
    """

    source: Array
    target: Array
    share: Array
    kept: Array
    by_score: Array
    by_target: Array
    keys: NDArray[np.uint32]
    num_heads: int


@njit(cache=True, nogil=True)
def attend(
    edges: Edges,
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
    n, width = z.shape
    strip, period = a.source.shape[1], min(a.num_heads, LANES)
    for r in range(n):
        for b in range(0, strip, LANES):
            source, target = zeros(z, ONE), zeros(z, ONE)
            for v in range(b, width, strip):
                row = load(z, r * width + v, ONE)
                source = fma(row, load(theta, source_at + v, ONE), source)
                target = fma(row, load(theta, target_at + v, ONE), target)
            store(a.source, r * strip + b, fold_sum(source, period))
            store(a.target, r * strip + b, fold_sum(target, period))
    row_keys(noise, epoch, layer, a.keys)
    for r in range(n):
        start, end = edges.indptr[r], edges.indptr[r + 1]
        for b in range(0, strip, LANES):
            _softmax(edges, noise, a, r, b)
        for v in range(0, width, LANES):
            total = zeros(z, ONE)
            for e in range(start, end):
                share = load(a.kept, e * strip + v % strip, ONE)
                total = fma(load(z, edges.indices[e] * width + v, ONE), share, total)
            store(out, r * width + v, total)


@njit(cache=True, nogil=True)
def _softmax(edges: Edges, noise: Noise, a: Attention, r: int, b: int) -> None:
    """Coefficients of the edges into one node, for the heads of one vector."""
    strip = a.source.shape[1]
    start, end = edges.indptr[r], edges.indptr[r + 1]
    target = load(a.target, r * strip + b, ONE)
    best = zeros(a.share, ONE) - np.inf
    for e in range(start, end):
        score = load(a.source, edges.indices[e] * strip + b, ONE) + target
        score = larger(score, score * LEAK)
        store(a.share, e * strip + b, score)
        best = larger(best, score)
    total = zeros(a.share, ONE)
    for e in range(start, end):
        power = exponential(load(a.share, e * strip + b, ONE) - best)
        store(a.share, e * strip + b, power)
        total = total + power
    inverse = 1.0 / total
    for e in range(start, end):
        share = load(a.share, e * strip + b, ONE) * inverse
        store(a.share, e * strip + b, share)
        store(a.kept, e * strip + b, share * _mask(edges, noise, a, r, e, b))


@njit(cache=True, nogil=True)
def _mask(edges: Edges, noise: Noise, a: Attention, r: int, e: int, b: int) -> Any:
    """What dropout multiplies the coefficients of one edge by."""
    mask = zeros(a.share, ONE) + 1.0
    if noise.attention > 0:
        key = edge_key(a.keys[r], noise.id_keys[edges.indices[e]])
        mask = kept_lanes(mask, key, b, a.num_heads, noise.attention) * scale_of(noise.attention)
    return mask


@njit(cache=True, nogil=True)
def attend_gradient(
    edges: Edges,
    noise: Noise,
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
    n, width = z.shape
    strip = a.source.shape[1]
    for r in range(n):
        for b in range(0, strip, LANES):
            _softmax_gradient(edges, noise, a, z, g, r, b)
    for at in range(0, width, LANES):
        store(gradient, source_at + at, zeros(z, ONE))
        store(gradient, target_at + at, zeros(z, ONE))
    for r in range(n):
        start, end = edges.indptr[r], edges.indptr[r + 1]
        for b in range(0, strip, LANES):
            by_source = zeros(z, ONE)
            for e in range(start, end):
                by_source = by_source + load(a.by_score, edges.reverse[e] * strip + b, ONE)
            by_target = load(a.by_target, r * strip + b, ONE)
            for v in range(b, width, strip):
                total = load(theta, source_at + v, ONE) * by_source
                total = fma(load(theta, target_at + v, ONE), by_target, total)
                for e in range(start, end):
                    share = load(a.kept, edges.reverse[e] * strip + b, ONE)
                    total = fma(load(g, edges.indices[e] * width + v, ONE), share, total)
                store(out, r * width + v, total)
                row = load(z, r * width + v, ONE)
                at = source_at + v
                store(gradient, at, fma(row, by_source, load(gradient, at, ONE)))
                at = target_at + v
                store(gradient, at, fma(row, by_target, load(gradient, at, ONE)))


@njit(cache=True, nogil=True)
def _softmax_gradient(
    edges: Edges, noise: Noise, a: Attention, z: Array, g: Array, r: int, b: int
) -> None:
    """Gradients by the scores of the edges into one node, for the heads of one vector."""
    width, strip, period = z.shape[1], a.source.shape[1], min(a.num_heads, LANES)
    start, end = edges.indptr[r], edges.indptr[r + 1]
    target = load(a.target, r * strip + b, ONE)
    mean = zeros(z, ONE)
    for e in range(start, end):
        by_share = zeros(z, ONE)
        for v in range(b, width, strip):
            source_row = load(z, edges.indices[e] * width + v, ONE)
            by_share = fma(load(g, r * width + v, ONE), source_row, by_share)
        by_share = fold_sum(by_share, period) * _mask(edges, noise, a, r, e, b)
        store(a.by_score, e * strip + b, by_share)
        mean = fma(by_share, load(a.share, e * strip + b, ONE), mean)
    total = zeros(z, ONE)
    for e in range(start, end):
        by_score = load(a.by_score, e * strip + b, ONE) - mean
        by_score = by_score * load(a.share, e * strip + b, ONE)
        score = load(a.source, edges.indices[e] * strip + b, ONE) + target
        by_score = where_positive(score, by_score, by_score * LEAK)
        store(a.by_score, e * strip + b, by_score)
        total = total + by_score
    store(a.by_target, r * strip + b, total)
