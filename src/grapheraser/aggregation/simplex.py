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
from numba import njit
from numpy.typing import NDArray

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

# A member may give the true class a probability that rounds to 0 in float32.
TINY = 1e-12
_EM_STEPS = 8
_NEWTON_STEPS = 60
_PIVOTS = 200
_PATIENCE = 3
_SUPPORT = 1e-9
_FAINT = 1e-2


def mixture_weights(A: Matrix, *, penalty: float = 0.0, tolerance: float = 1e-6) -> Vector:
    """The minimiser of F ``[k]``, to within ``tolerance`` of its least value.

    A few steps of EM bring the weights to the right size; from there, sequential quadratic
    programming: Newton's model of F is minimised over the simplex by block pivoting. The
    gap ``max over the simplex of grad F . (alpha - y)`` bounds how far F is from its minimum.
    """
    k = A.shape[0]
    if k == 1 or A.shape[1] == 0:
        return np.full(k, 1.0 / k)
    floored = np.maximum(np.ascontiguousarray(A, dtype=np.float64), TINY)
    return _solve(floored, float(penalty), float(tolerance))


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
    floored = np.maximum(np.ascontiguousarray(A, dtype=np.float64), TINY)
    for _ in range(steps):
        alpha = np.maximum(alpha - rate * _gradient(floored, alpha, penalty), 0.0)
        shares = np.array([math.exp(value - alpha.max()) for value in alpha])
        alpha = shares / shares.sum()
    return alpha


def objective(A: Matrix, alpha: Vector, *, penalty: float = 0.0) -> float:
    """F(alpha)."""
    mixture = np.maximum(np.asarray(A, dtype=np.float64), TINY).T @ alpha
    return float(-np.log(mixture).mean() + penalty * np.linalg.norm(alpha))


@njit(cache=True, nogil=True)
def _mix(A: Matrix, alpha: Vector) -> Vector:
    m = A.shape[1]
    out = np.zeros(m)
    heard = np.flatnonzero(alpha)
    whole = len(heard) - len(heard) % 4
    for h in range(0, whole, 4):  # four at a time: the sum is loaded and stored a fourth as often
        i, j, p, q = heard[h], heard[h + 1], heard[h + 2], heard[h + 3]
        a, b, c, d = alpha[i], alpha[j], alpha[p], alpha[q]
        first, second, third, fourth = A[i], A[j], A[p], A[q]
        for w in range(m):
            out[w] += a * first[w] + b * second[w] + c * third[w] + d * fourth[w]
    for i in heard[whole:]:
        for w in range(m):
            out[w] += alpha[i] * A[i, w]
    return out


@njit(cache=True, nogil=True)
def _norm(alpha: Vector) -> float:
    total = 0.0
    for i in range(len(alpha)):
        total += alpha[i] * alpha[i]
    return math.sqrt(total)


@njit(cache=True, nogil=True)
def _value(mixture: Vector, alpha: Vector, penalty: float) -> float:
    total = 0.0
    for w in range(len(mixture)):
        total -= math.log(mixture[w])
    return total / len(mixture) + penalty * _norm(alpha)


@njit(cache=True, nogil=True)
def _shares(A: Matrix, mixture: Vector) -> Vector:
    """The mean over nodes of ``A[i] / mixture``: minus the gradient without its penalty."""
    m = A.shape[1]
    inverse = np.empty(m)
    for w in range(m):
        inverse[w] = 1.0 / mixture[w]
    out = np.zeros(A.shape[0])
    lanes = np.zeros(8)  # eight sums side by side: strict order within each, and vectorised
    for i in range(A.shape[0]):
        lanes[:] = 0.0
        for start in range(0, m - m % 8, 8):
            for lane in range(8):
                lanes[lane] += A[i, start + lane] * inverse[start + lane]
        total = 0.0
        for lane in range(8):
            total += lanes[lane]
        for w in range(m - m % 8, m):
            total += A[i, w] * inverse[w]
        out[i] = total / m
    return out


@njit(cache=True, nogil=True)
def _gradient(A: Matrix, alpha: Vector, penalty: float) -> Vector:
    gradient = -_shares(A, _mix(A, alpha))
    norm = _norm(alpha)
    for i in range(len(alpha)):
        gradient[i] += penalty * alpha[i] / norm
    return gradient


@njit(cache=True, nogil=True)
def _hessian(A: Matrix, mixture: Vector, alpha: Vector, penalty: float) -> Matrix:
    """Of F, plus a whiff of the identity where members are copies of each other."""
    k, m = A.shape
    scaled = np.empty((k, m))
    for i in range(k):
        for w in range(m):
            scaled[i, w] = A[i, w] / mixture[w]
    # Transposed, the inner loop below runs over members and needs no reduction.
    columns = np.zeros((m + -m % 4, k))
    columns[:m] = scaled.T
    H = np.zeros((k, k))
    for w in range(0, m, 4):  # four nodes at a time, see `_mix`
        first, second, third, fourth = columns[w], columns[w + 1], columns[w + 2], columns[w + 3]
        for i in range(k):
            a, b, c, d = first[i], second[i], third[i], fourth[i]
            row = H[i]
            for j in range(i + 1):
                row[j] += a * first[j] + b * second[j] + c * third[j] + d * fourth[j]
    norm = _norm(alpha)
    for i in range(k):
        for j in range(i + 1):
            H[i, j] = H[i, j] / m - penalty * alpha[i] * alpha[j] / norm**3
        H[i, i] += penalty / norm + 1e-9
    for i in range(k):
        for j in range(i):
            H[j, i] = H[i, j]
    return H


@njit(cache=True, nogil=True)
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


@njit(cache=True, nogil=True)
def _back(U: Matrix, b: Vector) -> Vector:
    """X with ``U'U x = b``."""
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


@njit(cache=True, nogil=True)
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


@njit(cache=True, nogil=True)
def _times(H: Matrix, x: Vector) -> Vector:
    """``H x`` for a symmetric H."""
    out = np.zeros(len(x))
    for j in range(len(x)):
        if x[j] != 0.0:
            for i in range(len(x)):
                out[i] += x[j] * H[j, i]
    return out


@njit(cache=True, nogil=True)
def _solve(A: Matrix, penalty: float, tolerance: float) -> Vector:
    k = A.shape[0]
    alpha = np.full(k, 1.0 / k)
    for _ in range(_EM_STEPS):
        alpha = alpha * _shares(A, _mix(A, alpha))
        alpha /= alpha.sum()
    for _ in range(_NEWTON_STEPS):
        mixture = _mix(A, alpha)
        gradient = -_shares(A, mixture) + penalty * alpha / _norm(alpha)
        mean = 0.0
        for i in range(k):
            mean += alpha[i] * gradient[i]
        if mean - gradient.min() <= tolerance:
            break
        # Members that carry no weight and would gain none can wait: the Hessian costs most.
        some = np.flatnonzero((alpha > _FAINT / k) | (gradient < mean))
        faint = alpha.sum() - alpha[some].sum()
        start = alpha[some] + faint / len(some)
        H = _hessian(A[some], mixture, alpha[some], penalty)
        y = np.zeros(k)
        y[some] = _quadratic_step(H, gradient[some], start)
        descent = 0.0
        for i in range(k):
            descent += gradient[i] * (y[i] - alpha[i])
        here, step = _value(mixture, alpha, penalty), 1.0
        for _ in range(40):
            candidate = alpha + step * (y - alpha)
            if _value(_mix(A, candidate), candidate, penalty) <= here + 1e-4 * step * descent:
                break
            step *= 0.5
        else:
            break
        for i in range(k):
            candidate[i] = candidate[i] if candidate[i] > _SUPPORT else 0.0
        alpha = candidate / candidate.sum()
    return alpha
