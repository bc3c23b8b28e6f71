"""Weights of a log-linear pool.

Given evidence ``L[v, i, c]``, what member i holds of class c for node v (a log probability up to a
constant), the pool's posterior is ``softmax_c(sum_i w_i L[v, i, c] + b_c)``. `pool_weights` finds
w >= 0 and b that minimise

    - sum over v of log posterior[v, y_v] + pull / 2 |w - start|^2 + offset_pull / 2 |b|^2

which is strictly convex. Every sum runs in a fixed order on one thread, so the same input gives the
same bits. Nodes are looked at a vector of them at a time.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from grapheraser.kernels.cholesky import solve_few
from grapheraser.kernels.compiled import compiled
from grapheraser.kernels.elementary import exponential, logarithm
from grapheraser.kernels.vectors import (
    LANES,
    ONE,
    fma,
    larger,
    load,
    store,
    where_below,
    zeros,
)

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

# Strength, in nodes, of the pull of the weights to their start, and of the offsets to 0.
PULL, OFFSET_PULL = 10.0, 3.0
_TOLERANCE, _PASSES, _HALVINGS = 1e-5, 30, 20
# Vectors of nodes whose posteriors stay in the cache, while sums over pairs of classes go by.
_VECTORS = 4


class PoolWeights(NamedTuple):
    """The learned weights of a pool.

    Attributes:
        members: float64 ``[num_members]``, non-negative.
        offsets: float64 ``[num_classes]``.
    """

    members: Vector
    offsets: Vector


def pool_weights(
    evidence: NDArray[np.float64], labels: NDArray[np.int64], start: Vector
) -> PoolWeights:
    """Find the minimiser by projected Newton steps from ``start``.

    Args:
        evidence: ``[num_nodes, num_members, num_classes]``.
        labels: the nodes' classes.
        start: the members' weights where nothing is known; without nodes they stay.
    """
    num_members, num_classes = evidence.shape[1:]
    if len(labels) == 0:
        return PoolWeights(start.copy(), np.zeros(num_classes))
    x = _solve(_by_vectors(evidence), labels, start)
    return PoolWeights(x[:num_members].copy(), x[num_members:].copy())


@compiled
def _by_vectors(evidence):  # type: ignore[no-untyped-def]
    """Evidence ``[vectors, num_members, num_classes, LANES]``: what one vector needs lies together.

    Lanes without a node hold 0.
    """
    count, num_members, num_classes = evidence.shape
    out = np.zeros((-(-count // LANES), num_members, num_classes, LANES))
    for v in range(count):
        for i in range(num_members):
            for c in range(num_classes):
                out[v // LANES, i, c, v % LANES] = evidence[v, i, c]
    return out


@compiled
def _solve(L, labels, start):  # type: ignore[no-untyped-def]
    _, num_members, num_classes, _ = L.shape
    x, count = np.zeros(num_members + num_classes), len(labels)
    for i in range(num_members):
        x[i] = start[i]
    held = _held(L, labels)
    value, gradient, hessian = _look(L, count, held, x, start)
    for _ in range(_PASSES):
        step = newton_step(hessian, gradient, x, num_members)
        scale = 1.0
        for _ in range(_HALVINGS):
            new, slope = np.empty(len(x)), 0.0
            for i in range(len(x)):
                new[i] = x[i] + scale * step[i]
                if i < num_members:
                    new[i] = max(new[i], 0.0)
                slope += gradient[i] * (new[i] - x[i])
            if slope > -_TOLERANCE * count:
                return x  # nothing left to gain
            new_value, new_gradient, new_hessian = _look(L, count, held, new, start)
            if new_value <= value + 1e-4 * slope:
                break
            scale *= 0.5
        x, value, gradient, hessian = new, new_value, new_gradient, new_hessian
    return x


@compiled
def _held(L, labels):  # type: ignore[no-untyped-def]
    """Sum each member's evidence for the nodes' own classes, and count the nodes of each class.

    This is all of the labels that the value and the gradient need. It runs node by node.
    """
    _, num_members, num_classes, _ = L.shape
    out = np.zeros(num_members + num_classes)
    for v in range(len(labels)):
        out[num_members + labels[v]] += 1.0
        for i in range(num_members):
            out[i] += L[v // LANES, i, labels[v], v % LANES]
    return out


@compiled
def _look(L, count, held, x, start):  # type: ignore[no-untyped-def]
    """Value, gradient and the lower half of the Hessian at ``x = (w, b)``.

    Sums over nodes run lane by lane: lane l adds up nodes l, l + LANES, ... in this order, and the
    lanes are added up last, from the first on. The grouping is part of the result: another number
    of lanes, or several threads, would round differently.
    """
    vectors, num_members, num_classes, _ = L.shape
    n = num_members + num_classes
    sums = np.zeros((1 + n + n * (n + 1) // 2, LANES))
    p, tilted = np.empty((_VECTORS, num_classes, LANES)), np.empty((num_classes, LANES))
    for first in range(0, vectors, _VECTORS):
        some = min(_VECTORS, vectors - first)
        for at in range(some):
            vector = first + at
            _posteriors(L[vector], x, count - vector * LANES, p[at], tilted, sums)
            _slopes(L[vector], p[at], tilted, sums)
        _between_classes(p, some, num_members, sums)
    totals = np.zeros(len(sums))
    for q in range(len(sums)):
        for lane in range(LANES):
            totals[q] += sums[q, lane]
    return _unpacked(totals, held, x, start)


@compiled
def _posteriors(L, x, count, p, powers, sums):  # type: ignore[no-untyped-def]
    """Posteriors of a vector of nodes, 0 in the lanes from ``count`` on; adds up the value."""
    num_members, num_classes, _ = L.shape
    top = zeros(p, ONE)
    for c in range(num_classes):
        z = zeros(p, ONE) + x[num_members + c]
        for i in range(num_members):
            z = fma(load(L, (i * num_classes + c) * LANES, ONE), x[i], z)
        store(p, c * LANES, z)
        top = z if c == 0 else larger(top, z)
    for c in range(num_classes):
        store(powers, c * LANES, load(p, c * LANES, ONE) - top)
    # Our own exponential and logarithm: a C library's differ in their last bits between processors.
    flat = powers.reshape(-1)
    for k in range(len(flat)):
        flat[k] = exponential(flat[k])
    total = zeros(p, ONE)
    for c in range(num_classes):
        total = total + load(powers, c * LANES, ONE)
    for c in range(num_classes):
        store(p, c * LANES, where_below(count, load(powers, c * LANES, ONE) / total, 0.0))
    store(powers, 0, total)
    for lane in range(LANES):
        flat[lane] = logarithm(flat[lane])
    value = where_below(count, top + load(powers, 0, ONE), 0.0)
    store(sums, 0, load(sums, 0, ONE) + value)


@compiled
def _slopes(L, p, tilted, sums):  # type: ignore[no-untyped-def]
    """Add up the gradient and, row by row, the lower half of the Hessian.

    Every inner sum runs over the classes in order, each step one fused multiplication: `fma` says
    so explicitly, since a compiler that were free to fuse would do it on some processors only.
    """
    num_members, num_classes, _ = L.shape
    n = num_members + num_classes
    hessian = (1 + n) * LANES
    for i in range(num_members):
        mean = zeros(p, ONE)
        for c in range(num_classes):
            own = load(L, (i * num_classes + c) * LANES, ONE)
            mean = fma(load(p, c * LANES, ONE), own, mean)
        _add(sums, (1 + i) * LANES, mean)
        for c in range(num_classes):
            own = load(L, (i * num_classes + c) * LANES, ONE)
            tilt = load(p, c * LANES, ONE) * (own - mean)
            store(tilted, c * LANES, tilt)
            at = num_members + c
            _add(sums, hessian + (at * (at + 1) // 2 + i) * LANES, tilt)
        for j in range(i + 1):
            both = zeros(p, ONE)
            for c in range(num_classes):
                other = load(L, (j * num_classes + c) * LANES, ONE)
                both = fma(load(tilted, c * LANES, ONE), other, both)
            _add(sums, hessian + (i * (i + 1) // 2 + j) * LANES, both)
    for c in range(num_classes):
        _add(sums, (1 + num_members + c) * LANES, load(p, c * LANES, ONE))


@compiled
def _between_classes(p, vectors, num_members, sums):  # type: ignore[no-untyped-def]
    """Add up the Hessian of the offsets over some vectors of nodes, one after the other."""
    num_classes = p.shape[1]
    step, n = num_classes * LANES, num_members + num_classes
    for c in range(num_classes):
        row = num_members + c
        at = (1 + n + row * (row + 1) // 2 + num_members) * LANES
        for d in range(c + 1):
            total = load(sums, at + d * LANES, ONE)
            for vector in range(vectors):
                own = load(p, vector * step + c * LANES, ONE)
                other = load(p, vector * step + d * LANES, ONE)
                total = total + own * (zeros(p, ONE) - other)
            store(sums, at + d * LANES, total)


@compiled(inline=True)
def _add(sums, at, value):  # type: ignore[no-untyped-def]
    store(sums, at, load(sums, at, ONE) + value)


@compiled
def _unpacked(totals, held, x, start):  # type: ignore[no-untyped-def]
    """Value, gradient and Hessian from the sums over all nodes, with the pulls."""
    num_members, n = len(start), len(x)
    gradient, hessian = np.zeros(n), np.zeros((n, n))
    value, q = totals[0], 1 + n
    for i in range(n):
        member = i < num_members
        pull = PULL if member else OFFSET_PULL
        away = x[i] - start[i] if member else x[i]
        gradient[i] = totals[1 + i] - held[i] + pull * away
        value += 0.5 * pull * away * away - held[i] * x[i]
        for j in range(i + 1):
            hessian[i, j] = totals[q + j]
        hessian[i, i] += pull if member else pull + totals[1 + i]
        q += i + 1
    return value, gradient, hessian


@compiled
def newton_step(hessian, gradient, x, num_members):  # type: ignore[no-untyped-def]
    """Take Newton's step on the unknowns that may move: weights at 0 may not fall below it."""
    free = np.empty(len(x), dtype=np.bool_)
    for i in range(len(x)):
        free[i] = i >= num_members or not (x[i] <= 0.0 and gradient[i] > 0.0)
    step = _newton(hessian, gradient, free)
    for _ in range(num_members):
        stuck = False
        for i in range(num_members):
            if free[i] and x[i] <= 0.0 and step[i] < 0.0:
                free[i] = False
                stuck = True
        if not stuck:
            break
        step = _newton(hessian, gradient, free)
    return step


@compiled
def _newton(hessian, gradient, free):  # type: ignore[no-untyped-def]
    """``-H^-1 g`` on the free unknowns, by Cholesky; 0 on the others."""
    at, n = np.empty(len(free), dtype=np.int64), 0
    for i in range(len(free)):
        if free[i]:
            at[n] = i
            n += 1
    A, s = np.empty((n, n)), np.empty(n)
    for i in range(n):
        s[i] = -gradient[at[i]]
        for j in range(i + 1):
            A[i, j] = hessian[at[i], at[j]]
    solve_few(A, s)
    out = np.zeros(len(gradient))
    for i in range(n):
        out[at[i]] = s[i]
    return out
