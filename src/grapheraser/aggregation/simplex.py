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
_INNER_STEPS = 25
_SUPPORT = 1e-9
_FAINT = 1e-2


def mixture_weights(A: Matrix, *, penalty: float = 0.0, tolerance: float = 1e-6) -> Vector:
    """The minimiser of F ``[k]``, to within ``tolerance`` of its least value.

    A few steps of EM bring the weights to the right size; from there, sequential quadratic
    programming: Newton's model of F is minimised over the simplex by an active-set method. The
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
    out = np.zeros(A.shape[1])
    for i in range(A.shape[0]):
        if alpha[i] != 0.0:
            for w in range(A.shape[1]):
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
    columns = np.ascontiguousarray(scaled.T)
    H = np.zeros((k, k))
    for w in range(m):
        for i in range(k):
            left = columns[w, i]
            for j in range(i + 1):
                H[i, j] += left * columns[w, j]
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
    """Cholesky factor of the rows and columns in ``free``."""
    n = len(free)
    L = np.zeros((n, n))
    for i in range(n):
        for j in range(i + 1):
            total = H[free[i], free[j]]
            for r in range(j):
                total -= L[i, r] * L[j, r]
            if i == j:
                L[i, i] = math.sqrt(max(total, 1e-15))
            else:
                L[i, j] = total / L[j, j]
    return L


@njit(cache=True, nogil=True)
def _back(L: Matrix, b: Vector) -> Vector:
    n = len(b)
    x = b.copy()
    for i in range(n):
        for r in range(i):
            x[i] -= L[i, r] * x[r]
        x[i] /= L[i, i]
    for i in range(n - 1, -1, -1):
        for r in range(i + 1, n):
            x[i] -= L[r, i] * x[r]
        x[i] /= L[i, i]
    return x


@njit(cache=True, nogil=True)
def _quadratic_step(H: Matrix, gradient: Vector, alpha: Vector) -> Vector:
    """A better point of the simplex for Newton's model around ``alpha``, by active sets."""
    k = len(alpha)
    y = alpha.copy()
    fixed = alpha <= 0.0
    slope = gradient.copy()
    for _ in range(_INNER_STEPS):
        free = np.flatnonzero(~fixed)
        L = _factor(H, free)
        # Minimise over directions that keep the sum: H p = shift - slope, with sum(p) = 0.
        a, b = _back(L, -slope[free]), _back(L, np.ones(len(free)))
        shift = -a.sum() / b.sum()
        p = a + shift * b
        length, blocking = 1.0, -1
        for i in range(len(free)):
            if p[i] < 0.0 and -y[free[i]] / p[i] < length:
                length, blocking = -y[free[i]] / p[i], i
        for i in range(len(free)):
            y[free[i]] += length * p[i]
        if blocking >= 0:
            y[free[blocking]] = 0.0
            fixed[free[blocking]] = True
        for i in range(k):
            slope[i] = gradient[i]
            for j in range(k):
                slope[i] += H[i, j] * (y[j] - alpha[j])
        if blocking < 0:
            # Let the member in that would gain the most; none left means done.
            best, entering = -1e-12, -1
            for i in range(k):
                if fixed[i] and slope[i] + shift < best:
                    best, entering = slope[i] + shift, i
            if entering < 0:
                break
            fixed[entering] = False
    return y


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
