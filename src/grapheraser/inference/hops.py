"""Sums of the forward pass along edges, compiled, row by row.

Every sum runs over one row's neighbours in the order of node positions, one term after the other,
from zero. A term is a product that is rounded before it is added, in whole vectors as in the units
behind the last one, so that a unit's bits don't depend on which of the two it falls into. A fused
multiply-add, a sum by halves, or neighbours in the order in which they were gathered would change
the bits of a node with the nodes beside it.
"""

from __future__ import annotations

import numpy as np

from grapheraser.arrays import Ints
from grapheraser.inference.rows import Hop, Matrix, matmul
from grapheraser.kernels.compiled import compiled
from grapheraser.kernels.vectors import (
    LANES,
    ONE,
    exponential,
    larger,
    load,
    prefetch,
    store,
    where_below,
    where_positive,
    zeros,
)
from grapheraser.models.constants import LEAK

# So many neighbours of the next row are prefetched while one is summed.
_PREFETCHED = 32


@compiled
def convolve(hop: Hop, self_loops: bool, z: Matrix) -> Matrix:
    """Sum over neighbours as GCN does, by the degrees of both ends and the weight of the edge.

    A factor is ``(1 / root) / root * weight``, rounded in this order; the node itself comes last.
    """
    n, width = len(hop.indptr) - 1, z.shape[1]
    out = np.zeros((n, width), dtype=np.float32)
    loop = np.float32(1.0 if self_loops else 0.0)
    roots = np.empty(len(hop.degree), dtype=np.float32)
    for j in range(len(roots)):
        roots[j] = np.sqrt(hop.degree[j] + loop)
    factors = np.empty(_max_degree(hop) + 1, dtype=np.float32)
    for r in range(n):
        _prefetch_neighbours(hop, r + 1, z)
        if roots[r] == 0:
            continue
        here, start = np.float32(1.0) / roots[r], hop.indptr[r]
        count = hop.indptr[r + 1] - start
        for e in range(count):
            there = roots[hop.indices[start + e]]
            # The weights of a neighbour's own edges may all be 0.
            factors[e] = here / there if there > 0 else np.float32(0.0)
        if len(hop.weights) > 0:
            for e in range(count):
                factors[e] *= hop.weights[start + e]
        factors[count] = here * here * loop
        _add_weighted(hop, r, factors, z, out)
    return out


@compiled(inline=True)
def _prefetch_neighbours(hop: Hop, r: int, z: Matrix) -> None:
    """Prefetch the neighbours of a row that is soon to be summed: they lie anywhere in memory."""
    if r + 1 < len(hop.indptr):
        for e in range(hop.indptr[r], min(hop.indptr[r + 1], hop.indptr[r] + _PREFETCHED)):
            at = np.int64(hop.indices[e]) * z.shape[1]
            for t in range(0, z.shape[1], LANES):
                prefetch(z, at + t)


@compiled
def _max_degree(hop: Hop) -> int:
    """Return the largest number of neighbours of a row."""
    largest = 0
    for r in range(len(hop.indptr) - 1):
        largest = max(largest, hop.indptr[r + 1] - hop.indptr[r])
    return largest


@compiled(inline=True)
def _add_weighted(hop: Hop, r: int, factors: Matrix, z: Matrix, out: Matrix) -> None:
    """Write the weighted sum of a row's neighbours and itself, whose factor comes last."""
    start, count, width = hop.indptr[r], hop.indptr[r + 1] - hop.indptr[r], z.shape[1]
    own, whole = factors[count], width - width % LANES
    for t in range(0, whole, LANES):
        total = zeros(out, ONE)
        for e in range(count):
            at = np.int64(hop.indices[start + e]) * width + t
            total = total + load(z, at, ONE) * factors[e]
        store(out, r * width + t, total + load(z, r * width + t, ONE) * own)
    for u in range(whole, width):
        part = np.float32(0.0)
        for e in range(count):
            part += factors[e] * z[hop.indices[start + e], u]
        out[r, u] = part + own * z[r, u]


@compiled
def _sum(hop: Hop, z: Matrix) -> Matrix:
    """Sum over neighbours."""
    n, width = len(hop.indptr) - 1, z.shape[1]
    out, whole = np.empty((n, width), dtype=np.float32), width - width % LANES
    for r in range(n):
        _prefetch_neighbours(hop, r + 1, z)
        start, end = hop.indptr[r], hop.indptr[r + 1]
        for t in range(0, whole, LANES):
            total = zeros(out, ONE)
            for e in range(start, end):
                total = total + load(z, np.int64(hop.indices[e]) * width + t, ONE)
            store(out, r * width + t, total)
        for u in range(whole, width):
            part = np.float32(0.0)
            for e in range(start, end):
                part += z[hop.indices[e], u]
            out[r, u] = part
    return out


@compiled
def mean(hop: Hop, z: Matrix) -> Matrix:
    """Average the neighbours; zero where there are none.

    The sum is multiplied by the rounded inverse of the degree, not divided by the degree.
    """
    out = _sum(hop, z)
    for r in range(len(out)):
        share = np.float32(1.0) / np.float32(max(1, hop.indptr[r + 1] - hop.indptr[r]))
        for u in range(z.shape[1]):
            out[r, u] *= share
    return out


@compiled
def with_own(hop: Hop, averaged: bool, z: Matrix) -> Matrix:
    """Add the node itself to the sum over its neighbours, or to their mean if ``averaged``."""
    out = mean(hop, z) if averaged else _sum(hop, z)
    for r in range(len(out)):
        for u in range(z.shape[1]):
            out[r, u] += z[r, u]
    return out


@compiled
def attend(
    hop: Hop, self_loops: bool, heads: int, att_source: Matrix, att_target: Matrix, z: Matrix
) -> Matrix:
    """Sum over neighbours by GAT's attention, heads side by side.

    The node itself, where it counts, comes last. The weighted sum is divided by the sum of the
    shares once, at its end: dividing each share would round otherwise.
    """
    n = len(hop.indptr) - 1
    source, target = _scores(z, att_source, heads), _scores(z[:n], att_target, heads)
    strip = source.shape[1]
    shares = np.empty((_max_degree(hop) + 1, strip), dtype=np.float32)
    total, places = np.empty(strip, dtype=np.float32), np.empty(len(shares), dtype=np.int64)
    out = np.zeros(z[:n].shape, dtype=np.float32)
    for r in range(n):
        _prefetch_neighbours(hop, r + 1, z)
        start, count = hop.indptr[r], hop.indptr[r + 1] - hop.indptr[r]
        for e in range(count):
            places[e] = hop.indices[start + e]
        if self_loops:
            places[count] = r
            count += 1
        if count:
            _share(source, target, r, places[:count], shares, total)
            _add_shares(places[:count], shares, total, heads, z, r, out)
    return out


@compiled
def _scores(z: Matrix, weights: Matrix, heads: int) -> Matrix:
    """Multiply each row with each head's weights ``[n, strip]``: whole vectors, zeros at the end.

    The weights lie in blocks along the diagonal of a matrix. The zeros beside them add nothing, so
    a head's score is a sum over its own units in ascending order.
    """
    width = z.shape[1] // heads
    blocks = np.zeros((z.shape[1], heads + -heads % LANES), dtype=np.float32)
    for u in range(z.shape[1]):
        blocks[u, u // width] = weights[u]
    return matmul(z, blocks)


@compiled
def _share(
    source: Matrix, target: Matrix, r: int, places: Ints, shares: Matrix, total: Matrix
) -> None:
    """Write each neighbour's share before it is divided by the total, and the total, by head."""
    strip = source.shape[1]
    for b in range(0, strip, LANES):
        here, best = load(target, r * strip + b, ONE), zeros(total, ONE) - np.inf
        for e in range(len(places)):
            score = load(source, places[e] * strip + b, ONE) + here
            score = where_positive(score, score, score * np.float32(LEAK))
            best = larger(best, score)
            store(shares, e * strip + b, score)
        sum_ = zeros(total, ONE)
        for e in range(len(places)):
            share = exponential(load(shares, e * strip + b, ONE) - best)
            sum_ = sum_ + share
            store(shares, e * strip + b, share)
        store(total, b, sum_)


@compiled
def _add_shares(
    places: Ints, shares: Matrix, total: Matrix, heads: int, z: Matrix, r: int, out: Matrix
) -> None:
    """Write the sum of some rows by each head's shares of them, over each head's total."""
    wide = z.shape[1]
    width = wide // heads
    if width == LANES // 2 and heads % 2 == 0:  # two heads in a vector
        for t in range(0, wide, LANES):
            head, line = t // width, zeros(out, ONE)
            for e in range(len(places)):
                share = where_below(width, zeros(out, ONE) + shares[e, head], shares[e, head + 1])
                line = line + load(z, places[e] * wide + t, ONE) * share
            whole = where_below(width, zeros(out, ONE) + total[head], total[head + 1])
            store(out, r * wide + t, line / whole)
        return
    row = out[r]
    for e in range(len(places)):
        other = z[places[e]]
        for head in range(heads):
            share = shares[e, head]
            for u in range(head * width, (head + 1) * width):
                row[u] += share * other[u]
    for head in range(heads):
        for u in range(head * width, (head + 1) * width):
            row[u] /= total[head]
