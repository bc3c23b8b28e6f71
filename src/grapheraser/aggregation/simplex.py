"""Weights on the simplex that minimise the cross-entropy of a mixture.

Given ``A[i, w]``, the probability that member i gives to the true class of node w, both solvers
look for alpha >= 0 with sum 1 that minimises

    F(alpha) = - mean over w of log(sum_i alpha_i A[i, w]) + penalty * |alpha|

(the Euclidean norm: on the simplex the sum of the alpha_i, the paper's other reading, is constant).
F is convex. Every sum below runs in a fixed order on one thread, so the same input gives the same
bits.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from grapheraser.kernels.compiled import compiled
from grapheraser.kernels.elementary import exponential, logarithm
from grapheraser.kernels.vectors import (
    LANES,
    ONE,
    fma,
    load,
    padded,
    store,
    zeros,
)

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

# A member may give the true class a probability that rounds to 0 in float32.
TINY = 1e-12
_EM_STEPS = 8
_NEWTON_STEPS = 60
# Pivots of one Newton step; how many in a row may get nowhere before they go one at a time.
_PIVOTS, _PATIENCE = 200, 3
# A weight below the first is 0; one below the second share of the mean may sit out a Newton step.
_SUPPORT, _FAINT = 1e-9, 1e-2


def mixture_weights(A: Matrix, *, penalty: float = 0.0, tolerance: float = 1e-6) -> Vector:
    """Find the minimiser of F ``[k]``, to within ``tolerance`` of its least value.

    A few steps of EM bring the weights to the right size; from there, sequential quadratic
    programming: Newton's model of F is minimised over the simplex by block pivoting. The
    gap ``max over the simplex of grad F . (alpha - y)`` bounds how far F is from its minimum.
    """
    k = A.shape[0]
    if k == 1 or A.shape[1] == 0:
        return np.full(k, 1.0 / k)
    return _solve(_padded(A), A.shape[1], float(penalty), float(tolerance))


def paper_weights(
    A: Matrix, *, penalty: float = 0.0, steps: int = 100, rate: float = 0.1
) -> Vector:
    """The paper's way: gradient steps, negative scores to 0, softmax after each step.

    The softmax of numbers between 0 and 1 is never far from uniform, so this does not reach the
    minimum of F; it is here to be compared with.
    """
    k = A.shape[0]
    alpha = np.full(k, 1.0 / k)
    if A.shape[1] == 0:
        return alpha
    wide, m = _padded(A), A.shape[1]
    for _ in range(steps):
        alpha = np.maximum(alpha - rate * _gradient(wide, alpha, m, penalty), 0.0)
        shares = np.array([exponential(value - alpha.max()) for value in alpha])
        alpha = shares / shares.sum()
    return alpha


def mixture(A: Matrix, alpha: Vector) -> Vector:
    """Mix the members by these weights, ``[m]``."""
    return _mix(_padded(A), alpha)[: A.shape[1]]


def _padded(A: Matrix) -> Matrix:
    """At least `TINY` everywhere, and columns without meaning up to whole vectors."""
    out = np.full((A.shape[0], padded(A.shape[1])), TINY)
    np.maximum(A, TINY, out=out[:, : A.shape[1]])
    return out


@compiled
def _mix(A: Matrix, alpha: Vector) -> Vector:
    out = np.empty(A.shape[1])
    heard = np.flatnonzero(alpha)
    for w in range(0, len(out), LANES):
        total = zeros(out, ONE)
        for i in heard:
            total = fma(load(A, i * len(out) + w, ONE), alpha[i], total)
        store(out, w, total)
    return out


@compiled
def _norm(alpha: Vector) -> float:
    total = 0.0
    for i in range(len(alpha)):
        total += alpha[i] * alpha[i]
    return math.sqrt(total)


@compiled
def _value(mixture: Vector, m: int, alpha: Vector, penalty: float) -> float:
    total = 0.0
    for w in range(m):
        total -= logarithm(mixture[w])
    return total / m + penalty * _norm(alpha)


@compiled
def _inverse(mixture: Vector, m: int) -> Vector:
    """One over the mixture of each node; nothing for those that only fill up a vector."""
    out = np.zeros(len(mixture))
    for w in range(m):
        out[w] = 1.0 / mixture[w]
    return out


@compiled
def _shares(A: Matrix, inverse: Vector, m: int) -> Vector:
    """The mean over nodes of ``A[i] / mixture``: minus the gradient without its penalty."""
    # Lane by lane over the nodes, then over the lanes: another grouping would round differently.
    out, lanes = np.empty(A.shape[0]), np.empty(LANES)
    for i in range(len(out)):
        total = zeros(inverse, ONE)
        for w in range(0, len(inverse), LANES):
            total = fma(load(A, i * len(inverse) + w, ONE), load(inverse, w, ONE), total)
        store(lanes, 0, total)
        out[i] = lanes.sum() / m
    return out


@compiled
def _gradient(A: Matrix, alpha: Vector, m: int, penalty: float) -> Vector:
    return penalty * alpha / _norm(alpha) - _shares(A, _inverse(_mix(A, alpha), m), m)


@compiled
def _hessian(
    A: Matrix, members: NDArray[np.int64], inverse: Vector, m: int, alpha: Vector, penalty: float
) -> Matrix:
    """Return the Hessian of F for some members, plus a whiff of the identity for copies.

    ``alpha`` are the weights of these members; ``A`` and ``inverse`` are of all and everything.
    """
    k = len(members)
    wide = k + -k % LANES
    # A node's members side by side, so that the sums below need no folding.
    columns = np.zeros((len(inverse), wide))
    for start in range(0, m, LANES):
        for i in range(k):
            for w in range(start, start + LANES):
                columns[w, i] = A[members[i], w] * inverse[w]
    sums = np.empty((wide, wide))
    for i in range(0, k, 4):
        for j in range(0, i + 1, LANES):
            a, b, c, d = zeros(sums, ONE), zeros(sums, ONE), zeros(sums, ONE), zeros(sums, ONE)
            for w in range(m):
                other = load(columns, w * wide + j, ONE)
                a = fma(other, columns[w, i], a)
                b = fma(other, columns[w, i + 1], b)
                c = fma(other, columns[w, i + 2], c)
                d = fma(other, columns[w, i + 3], d)
            store(sums, i * wide + j, a)
            store(sums, (i + 1) * wide + j, b)
            store(sums, (i + 2) * wide + j, c)
            store(sums, (i + 3) * wide + j, d)
    H, norm = np.empty((k, k)), _norm(alpha)
    for i in range(k):
        for j in range(i + 1):
            H[i, j] = sums[i, j] / m - penalty * alpha[i] * alpha[j] / norm**3
        H[i, i] += penalty / norm + 1e-9
        for j in range(i):
            H[j, i] = H[i, j]
    return H


@compiled
def _factor(H: Matrix, free: NDArray[np.int64]) -> Matrix:
    """Upper Cholesky factor of the rows and columns in ``free``."""
    n = len(free)
    U = np.zeros((n, n))
    for i in range(n):
        for j in range(i, n):
            U[i, j] = H[free[i], free[j]]
    for j in range(n):
        pivot = U[j]
        pivot[j] = math.sqrt(max(pivot[j], 1e-15))
        for i in range(j + 1, n):
            pivot[i] /= pivot[j]
        for r in range(j + 1, n):
            row, factor = U[r], pivot[r]
            for i in range(r, n):
                row[i] -= factor * pivot[i]
    return U


@compiled
def _back(U: Matrix, b: Vector) -> Vector:
    """Solve ``U'U x = b``."""
    n = len(b)
    x = b.copy()
    for i in range(n):
        x[i] /= U[i, i]
        for r in range(i + 1, n):
            x[r] -= U[i, r] * x[i]
    for i in range(n - 1, -1, -1):
        for r in range(i + 1, n):
            x[i] -= U[i, r] * x[r]
        x[i] /= U[i, i]
    return x


@compiled
def _quadratic_step(H: Matrix, gradient: Vector, alpha: Vector) -> Vector:
    """The point of the simplex that minimises Newton's model around ``alpha``.

    Block pivoting: given which members may have a weight, the best weights follow from a linear
    system. Those with a negative one are shut out, those shut out that would lower the model are
    let in, all at once, or one at a time when that does not get anywhere.
    """
    k = len(alpha)
    linear = gradient - _times(H, alpha)
    free = np.ones(k, dtype=np.bool_)
    y = np.zeros(k)
    least, patience = k + 1, _PATIENCE
    for _ in range(_PIVOTS):
        members = np.flatnonzero(free)
        U = _factor(H, members)
        a, b = _back(U, -linear[members]), _back(U, np.ones(len(members)))
        level = (1.0 - a.sum()) / b.sum()
        y[:] = 0.0
        y[members] = a + level * b
        slack = _times(H, y) + linear - level
        wrong = (free & (y < 0.0)) | (~free & (slack < -1e-12))
        count = wrong.sum()
        if count == 0:
            break
        if count < least:
            least, patience = count, _PATIENCE
        elif patience > 0:
            patience -= 1
        else:
            last = np.flatnonzero(wrong)[-1]
            wrong[:] = False
            wrong[last] = True
        free ^= wrong
        if not free.any():
            free[np.argmin(slack)] = True
    y = np.maximum(y, 0.0)
    return y / y.sum()


@compiled
def _times(H: Matrix, x: Vector) -> Vector:
    """``H x`` for a symmetric H."""
    out = np.zeros(len(x))
    for j in range(len(x)):
        if x[j] != 0.0:
            for i in range(len(x)):
                out[i] += x[j] * H[j, i]
    return out


@compiled
def _solve(A: Matrix, m: int, penalty: float, tolerance: float) -> Vector:
    k = A.shape[0]
    alpha = np.full(k, 1.0 / k)
    for _ in range(_EM_STEPS):
        alpha = alpha * _shares(A, _inverse(_mix(A, alpha), m), m)
        alpha /= alpha.sum()
    for _ in range(_NEWTON_STEPS):
        mixture = _mix(A, alpha)
        inverse = _inverse(mixture, m)
        gradient = penalty * alpha / _norm(alpha) - _shares(A, inverse, m)
        mean = 0.0
        for i in range(k):
            mean += alpha[i] * gradient[i]
        if mean - gradient.min() <= tolerance:
            break
        # Members that carry no weight and would gain none can wait: the Hessian costs most.
        some = np.flatnonzero((alpha > _FAINT / k) | (gradient < mean))
        faint = alpha.sum() - alpha[some].sum()
        start = alpha[some] + faint / len(some)
        H = _hessian(A, some, inverse, m, alpha[some], penalty)
        y = np.zeros(k)
        y[some] = _quadratic_step(H, gradient[some], start)
        descent = 0.0
        for i in range(k):
            descent += gradient[i] * (y[i] - alpha[i])
        here, step = _value(mixture, m, alpha, penalty), 1.0
        for _ in range(40):
            candidate = alpha + step * (y - alpha)
            value = _value(_mix(A, candidate), m, candidate, penalty)
            if value <= here + 1e-4 * step * descent:
                break
            step *= 0.5
        else:
            break
        for i in range(k):
            candidate[i] = candidate[i] if candidate[i] > _SUPPORT else 0.0
        alpha = candidate / candidate.sum()
    return alpha
