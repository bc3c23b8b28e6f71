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
    x = _solve(np.ascontiguousarray(evidence), labels, start)
    return PoolWeights(x[:num_members].copy(), x[num_members:].copy())


@compiled(error_model="numpy")
def _solve(L, labels, start):  # type: ignore[no-untyped-def]
    num_members = L.shape[1]
    x = np.zeros(num_members + L.shape[2])
    x[:num_members] = start
    value, gradient, hessian = _look(L, labels, x, start)
    for _ in range(_PASSES):
        step = _step(hessian, gradient, x, num_members)
        scale = 1.0
        for _ in range(_HALVINGS):
            new = x + scale * step
            slope = 0.0
            for i in range(len(x)):
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


@compiled(error_model="numpy")
def _look(L, labels, x, start):  # type: ignore[no-untyped-def]
    """Value, gradient and the lower half of the Hessian at ``x = (w, b)``."""
    m, num_members, num_classes = L.shape
    gradient = np.zeros(len(x))
    hessian = np.zeros((len(x), len(x)))
    mass, p = np.zeros(num_classes), np.empty(num_classes)
    z, tilted = np.empty(num_classes), np.empty(num_classes)
    value = 0.0
    for v in range(m):
        label = labels[v]
        for c in range(num_classes):
            z[c] = x[num_members + c]
        for i in range(num_members):
            for c in range(num_classes):
                z[c] += x[i] * L[v, i, c]
        value += _softmax(z, p) - z[label]
        for c in range(num_classes):
            mass[c] += p[c]
        for i in range(num_members):
            row = L[v, i]
            mean = 0.0
            for c in range(num_classes):
                mean += p[c] * row[c]
            gradient[i] += mean - row[label]
            for c in range(num_classes):
                tilted[c] = p[c] * (row[c] - mean)
                hessian[i, num_members + c] += tilted[c]  # above the diagonal until the end
            for j in range(i + 1):
                total = 0.0
                for c in range(num_classes):
                    total += tilted[c] * L[v, j, c]
                hessian[i, j] += total
        gradient[num_members + label] -= 1.0
        for c in range(num_classes):
            if p[c] > _FAINT:
                line = hessian[num_members + c]
                for d in range(c + 1):
                    line[num_members + d] -= p[c] * p[d]
    for c in range(num_classes):
        at = num_members + c
        for i in range(num_members):
            hessian[at, i] = hessian[i, at]
        gradient[at] += mass[c] + OFFSET_PULL * x[at]
        hessian[at, at] += mass[c] + OFFSET_PULL
        value += 0.5 * OFFSET_PULL * x[at] * x[at]
    for i in range(num_members):
        away = x[i] - start[i]
        gradient[i] += PULL * away
        hessian[i, i] += PULL
        value += 0.5 * PULL * away * away
    return value, gradient, hessian


@compiled(error_model="numpy")
def _softmax(z, p):  # type: ignore[no-untyped-def]
    """Write the softmax of z into p; returns the logarithm of the summed exponentials."""
    top = z[0]
    for c in range(1, len(z)):
        top = max(top, z[c])
    total = 0.0
    for c in range(len(z)):
        p[c] = exponential(z[c] - top)
        total += p[c]
    for c in range(len(z)):
        p[c] /= total
    return top + logarithm(total)


@compiled(error_model="numpy")
def _step(hessian, gradient, x, num_members):  # type: ignore[no-untyped-def]
    """Newton's step on the unknowns that are free to move: weights at 0 may not fall below it."""
    free = np.ones(len(x), dtype=np.bool_)
    for i in range(num_members):
        free[i] = not (x[i] <= 0.0 and gradient[i] > 0.0)
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


@compiled(error_model="numpy")
def _newton(hessian, gradient, free):  # type: ignore[no-untyped-def]
    """``-H^-1 g`` on the free unknowns, by Cholesky; 0 on the others."""
    at = np.flatnonzero(free)
    n = len(at)
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
