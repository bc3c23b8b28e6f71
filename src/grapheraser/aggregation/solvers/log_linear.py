"""Weights of a log-linear pool.

Given evidence ``L[v, i, c]``, what member i holds of class c for node v (a log probability up to a
constant), the pool's posterior is ``softmax_c(sum_i w_i L[v, i, c] + b_c)``. `pool_weights` finds
w >= 0 and b that minimise

    - sum over v of log posterior[v, y_v] + pull / 2 |w - start|^2 + offset_pull / 2 |b|^2

which is strictly convex. Every sum runs in a fixed order on one thread, so the same input gives the
same bits.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from grapheraser.kernels.compiled import compiled
from grapheraser.kernels.elementary import exponential, logarithm

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

# Strength, in nodes, of the pull of the weights to their start, and of the offsets to 0.
PULL, OFFSET_PULL = 10.0, 3.0
_TOLERANCE, _PASSES, _HALVINGS = 1e-5, 30, 20
# Smaller probabilities are left out of the Hessian, which only sets the step.
_FAINT = 1e-4
# Nodes that are looked at side by side.
_ABREAST = 64


class PoolWeights(NamedTuple):
    """What a pool has learned.

    Attributes:
        members: float64 ``[num_members]``, non-negative.
        offsets: float64 ``[num_classes]``.
    """

    members: Vector
    offsets: Vector


def pool_weights(
    evidence: NDArray[np.float64], labels: NDArray[np.int64], start: Vector
) -> PoolWeights:
    """The minimiser, by projected Newton steps from ``start``.

    Args:
        evidence: ``[num_nodes, num_members, num_classes]``.
        labels: the nodes' classes.
        start: the members' weights where nothing is known; without nodes they stay.
    """
    num_members, num_classes = evidence.shape[1:]
    if len(labels) == 0:
        return PoolWeights(start.copy(), np.zeros(num_classes))
    x = _solve(np.ascontiguousarray(evidence.transpose(1, 2, 0)), labels, start)
    return PoolWeights(x[:num_members].copy(), x[num_members:].copy())


@compiled
def _solve(L, labels, start):  # type: ignore[no-untyped-def]
    num_members, num_classes, _ = L.shape
    x = np.zeros(num_members + num_classes)
    for i in range(num_members):
        x[i] = start[i]
    value, gradient, hessian = _look(L, labels, x, start)
    for _ in range(_PASSES):
        step = _step(hessian, gradient, x, num_members)
        scale = 1.0
        for _ in range(_HALVINGS):
            new, slope = np.empty(len(x)), 0.0
            for i in range(len(x)):
                new[i] = x[i] + scale * step[i]
                if i < num_members:
                    new[i] = max(new[i], 0.0)
                slope += gradient[i] * (new[i] - x[i])
            if slope > -_TOLERANCE * len(labels):
                return x  # nothing left to gain
            new_value, new_gradient, new_hessian = _look(L, labels, new, start)
            if new_value <= value + 1e-4 * slope:
                break
            scale *= 0.5
        x, value, gradient, hessian = new, new_value, new_gradient, new_hessian
    return x


@compiled
def _look(L, labels, x, start):  # type: ignore[no-untyped-def]
    """Value, gradient and the lower half of the Hessian at ``x = (w, b)``.

    What nodes add to these numbers is worked out for some nodes side by side, then added up node
    after node.
    """
    num_members, num_classes, m = L.shape
    size = 1 + num_classes + num_members * (1 + num_classes)
    size += num_members * (num_members + 1) // 2 + num_classes * (num_classes + 1) // 2
    terms, totals = np.empty((size, _ABREAST)), np.zeros(size)
    z, p = np.empty((num_classes, _ABREAST)), np.empty((num_classes, _ABREAST))
    for first in range(0, m, _ABREAST):
        count = min(_ABREAST, m - first)
        _posteriors(L, labels, x, first, count, z, p, terms)
        _slopes(L, labels, first, count, p, terms[1 + num_classes :])
        _add_up(terms, count, totals)
    counts = np.zeros(num_classes)
    for label in labels:
        counts[label] += 1.0
    return _unpacked(totals, counts, x, start)


@compiled
def _posteriors(L, labels, x, first, count, z, p, terms):  # type: ignore[no-untyped-def]
    """Posteriors of some nodes; the terms of the value, and of each class's mass."""
    num_members, num_classes = L.shape[:2]
    top, total = np.empty(_ABREAST), np.zeros(_ABREAST)
    for c in range(num_classes):
        z[c] = x[num_members + c]
    for i in range(num_members):
        for c in range(num_classes):
            for v in range(count):
                z[c, v] += x[i] * L[i, c, first + v]
    for v in range(_ABREAST):
        top[v] = z[0, v]
    for c in range(1, num_classes):
        for v in range(count):
            top[v] = max(top[v], z[c, v])
    for c in range(num_classes):
        for v in range(count):
            p[c, v] = exponential(z[c, v] - top[v])
            total[v] += p[c, v]
    for c in range(num_classes):
        for v in range(count):
            p[c, v] /= total[v]
            terms[1 + c, v] = p[c, v]
    for v in range(count):
        terms[0, v] = top[v] + logarithm(total[v])
    for v in range(count):
        terms[0, v] -= z[labels[first + v], v]


@compiled
def _slopes(L, labels, first, count, p, terms):  # type: ignore[no-untyped-def]
    """Terms of the gradient and the Hessian, in the order in which `_unpacked` reads them."""
    num_members, num_classes = L.shape[:2]
    tilted, mean, q = np.empty(p.shape), np.empty(_ABREAST), 0
    for i in range(num_members):
        mean[:] = 0.0
        for c in range(num_classes):
            for v in range(count):
                mean[v] += p[c, v] * L[i, c, first + v]
        for v in range(count):
            terms[q, v] = mean[v] - L[i, labels[first + v], first + v]
        q += 1
        for c in range(num_classes):
            for v in range(count):
                tilted[c, v] = p[c, v] * (L[i, c, first + v] - mean[v])
                terms[q, v] = tilted[c, v]
            q += 1
        for j in range(i + 1):
            terms[q] = 0.0
            for c in range(num_classes):
                for v in range(count):
                    terms[q, v] += tilted[c, v] * L[j, c, first + v]
            q += 1
    for c in range(num_classes):
        for d in range(c + 1):
            for v in range(count):
                terms[q, v] = -p[c, v] * p[d, v] if p[c, v] > _FAINT else 0.0
            q += 1


@compiled
def _add_up(terms, count, totals):  # type: ignore[no-untyped-def]
    """Add the terms of some nodes, in their order; four sums side by side."""
    q = 0
    while q + 4 <= len(terms):
        a, b, c, d = totals[q], totals[q + 1], totals[q + 2], totals[q + 3]
        for v in range(count):
            a += terms[q, v]
            b += terms[q + 1, v]
            c += terms[q + 2, v]
            d += terms[q + 3, v]
        totals[q], totals[q + 1], totals[q + 2], totals[q + 3] = a, b, c, d
        q += 4
    while q < len(terms):
        for v in range(count):
            totals[q] += terms[q, v]
        q += 1


@compiled
def _unpacked(totals, counts, x, start):  # type: ignore[no-untyped-def]
    """Value, gradient and Hessian from the sums over all nodes, with the pulls."""
    num_members, num_classes = len(start), len(counts)
    gradient, hessian = np.zeros(len(x)), np.zeros((len(x), len(x)))
    value, q = totals[0], 1 + num_classes
    for i in range(num_members):
        gradient[i] = totals[q]
        for c in range(num_classes):
            hessian[num_members + c, i] = totals[q + 1 + c]
        for j in range(i + 1):
            hessian[i, j] = totals[q + 1 + num_classes + j]
        q += 2 + num_classes + i
    for c in range(num_classes):
        at, mass = num_members + c, totals[1 + c]
        for d in range(c + 1):
            hessian[at, num_members + d] = totals[q + d]
        q += c + 1
        gradient[at] = -counts[c] + (mass + OFFSET_PULL * x[at])
        hessian[at, at] += mass + OFFSET_PULL
        value += 0.5 * OFFSET_PULL * x[at] * x[at]
    for i in range(num_members):
        away = x[i] - start[i]
        gradient[i] += PULL * away
        hessian[i, i] += PULL
        value += 0.5 * PULL * away * away
    return value, gradient, hessian


@compiled
def _step(hessian, gradient, x, num_members):  # type: ignore[no-untyped-def]
    """Newton's step on the unknowns that are free to move: weights at 0 may not fall below it."""
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
    for j in range(n):
        for i in range(j, n):
            total = A[i, j]
            for k in range(j):
                total -= A[i, k] * A[j, k]
            A[i, j] = math.sqrt(total) if i == j else total / A[j, j]
    for i in range(n):
        for k in range(i):
            s[i] -= A[i, k] * s[k]
        s[i] /= A[i, i]
    for i in range(n - 1, -1, -1):
        for k in range(i + 1, n):
            s[i] -= A[k, i] * s[k]
        s[i] /= A[i, i]
    out = np.zeros(len(gradient))
    for i in range(n):
        out[at[i]] = s[i]
    return out
