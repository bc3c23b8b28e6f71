"""Solving symmetric positive definite systems with the same bits on any number of threads.

A LAPACK splits its sums by the number of threads it may use, so its last bits depend on the
machine's load. This factorisation runs in one fixed order on one thread, in blocks that stay in
the cache.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from grapheraser.kernels.compiled import compiled

Matrix = NDArray[np.float64]

_BLOCK = 48  # a multiple of 4


def solve_positive(A: Matrix, B: Matrix) -> Matrix:
    """X with ``A X = B``.

    Args:
        A: float64 ``[n, n]``, symmetric positive definite; only its lower half is read.
        B: float64 ``[n, c]``.
    """
    L = np.array(A, dtype=np.float64, order="C")
    _factor(L)
    X = np.array(np.asarray(B, dtype=np.float64).T, order="C")
    _substitute(L, X)
    return np.ascontiguousarray(X.T)


@compiled(error_model="numpy")
def _factor(L: Matrix) -> None:
    """Overwrite the lower half with its Cholesky factor, block column by block column."""
    n = L.shape[0]
    for start in range(0, n, _BLOCK):
        end = min(start + _BLOCK, n)
        for j in range(start, end):
            for r in range(start, j):
                L[j, j] -= L[j, r] * L[j, r]
            L[j, j] = math.sqrt(L[j, j])
            for i in range(j + 1, end):
                for r in range(start, j):
                    L[i, j] -= L[i, r] * L[j, r]
                L[i, j] /= L[j, j]
        # The panel below, transposed: entry (r, i) is L[i, start + r].
        panel = np.zeros((_BLOCK, n - end))
        panel[: end - start] = L[end:, start:end].T
        for j in range(end - start):
            for r in range(j):
                factor = L[start + j, start + r]
                for i in range(n - end):
                    panel[j, i] -= factor * panel[r, i]
            for i in range(n - end):
                panel[j, i] /= L[start + j, start + j]
        L[end:, start:end] = panel[: end - start].T
        _update(L, end, panel)


@compiled(error_model="numpy")
def _update(L: Matrix, first: int, panel: Matrix) -> None:
    """``L[first:, first:] -= panel' panel`` on the lower half.

    Two rows and four terms at a time: the numbers in flight stay in registers.
    """
    n = L.shape[0] - first
    for i in range(0, n - 1, 2):
        upper = L[first + i, first : first + i + 2]
        lower = L[first + i + 1, first : first + i + 2]
        for r in range(0, _BLOCK, 4):
            p, q, s, t = panel[r], panel[r + 1], panel[r + 2], panel[r + 3]
            a, b, c, d = p[i], q[i], s[i], t[i]
            e, f, g, h = p[i + 1], q[i + 1], s[i + 1], t[i + 1]
            for j in range(i + 2):
                upper[j] -= a * p[j] + b * q[j] + c * s[j] + d * t[j]
                lower[j] -= e * p[j] + f * q[j] + g * s[j] + h * t[j]
    if n % 2:
        last = L[first + n - 1, first:]
        for r in range(_BLOCK):
            factor = panel[r, n - 1]
            for j in range(n):
                last[j] -= factor * panel[r, j]


@compiled(error_model="numpy")
def _substitute(L: Matrix, X: Matrix) -> None:
    """Solve for every row of X ``[c, n]``, in place; each row of L is read once for all of them."""
    lanes = np.zeros(8)  # eight sums side by side: a fixed order that still vectorises
    n = len(L)
    for i in range(n):
        row = L[i]
        whole = i - i % 8
        for x in X:
            lanes[:] = 0.0
            for start in range(0, whole, 8):
                for lane in range(8):
                    lanes[lane] += row[start + lane] * x[start + lane]
            for lane in range(8):
                x[i] -= lanes[lane]
            for r in range(whole, i):
                x[i] -= row[r] * x[r]
            x[i] /= row[i]
    for i in range(n - 1, -1, -1):
        row = L[i]
        for x in X:
            x[i] /= row[i]
            for r in range(i):
                x[r] -= row[r] * x[i]
