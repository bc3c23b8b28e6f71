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
from grapheraser.kernels.vectors import (
    HALF,
    HALF_LANES,
    LANES,
    ONE,
    fma,
    load,
    padded,
    store,
    zeros,
)

Matrix = NDArray[np.float64]

_FOUR = (0, 0, 0, 0)
_BLOCK = 48  # a multiple of 4 and of a vector's length


def solve_positive(A: Matrix, B: Matrix) -> Matrix:
    """Solve ``A X = B`` for a positive definite A, of which the lower half is read."""
    L = np.zeros((len(A), padded(len(A))))
    L[:, : len(A)] = A
    return solve_in_place(L, B)


def solve_in_place(L: Matrix, B: Matrix) -> Matrix:
    """Solve ``A X = B``, where A is not needed any more.

    ``L``, ``[n, padded(n)]``, holds A in the lower half of its first n columns.
    """
    _factor(L)
    solved: Matrix = _solved(L, np.ascontiguousarray(B))
    return solved


@compiled
def solve_column(L: Matrix, b: NDArray[np.float64]) -> NDArray[np.float64]:
    """Do as `solve_in_place` for a single right-hand side, within another kernel."""
    X = np.zeros((len(b), HALF_LANES))
    X[:, 0] = b
    _factor(L)
    _substitute(L, X)
    return X[:, 0].copy()


@compiled
def _factor(L: Matrix) -> None:
    """Overwrite the lower half with its Cholesky factor, block column by block column."""
    n = L.shape[0]
    for start in range(0, n, _BLOCK):
        end = min(start + _BLOCK, n)
        _factor_block(L, start, end)
        if end == n:
            break
        # The panel below, transposed: entry (r, i) is L[i, start + r].
        panel = np.zeros((_BLOCK, L.shape[1] - end))
        for i in range(n - end):
            for r in range(end - start):
                panel[r, i] = L[end + i, start + r]
        at, width = 0, panel.shape[1]
        while at + 4 * LANES <= width:
            _divide(panel, L, start, end, at, _FOUR)
            at += 4 * LANES
        while at < width:
            _divide(panel, L, start, end, at, ONE)
            at += LANES
        for i in range(n - end):
            for r in range(end - start):
                L[end + i, start + r] = panel[r, i]
        _update(L, end, panel)


@compiled
def _factor_block(L: Matrix, start: int, end: int) -> None:
    """Factor one block on the diagonal, column by column from the left."""
    column = np.zeros(_BLOCK)
    for r in range(start, end):
        L[r, r] = math.sqrt(L[r, r])
        column[r - start] = 0.0
        for i in range(r + 1, end):
            L[i, r] /= L[r, r]
            column[i - start] = L[i, r]
        for i in range(r + 1, end):
            # Whole vectors: what lies left of r stays as it is, what lies above the diagonal is
            # not read.
            for j in range((r + 1 - start) // LANES * LANES, i + 1 - start, LANES):
                at = i * L.shape[1] + start + j
                store(L, at, fma(load(column, j, ONE), -column[i - start], load(L, at, ONE)))


@compiled
def _divide(panel, L, start, end, at, tile):  # type: ignore[no-untyped-def]
    """Divide a tile of the panel's columns by the factor of the block above.

    Lanes hold different columns and never meet, so tiles of one vector and of four give a column
    the same bits.
    """
    width = panel.shape[1]
    for j in range(end - start):
        sums = load(panel, j * width + at, tile)
        for r in range(j):
            sums = fma(load(panel, r * width + at, tile), -L[start + j, start + r], sums)
        store(panel, j * width + at, sums / L[start + j, start + j])


@compiled
def _update(L: Matrix, first: int, panel: Matrix) -> None:
    """``L[first:, first:] -= panel' panel`` on the lower half, and on some entries above it.

    In tiles of four rows: the numbers in flight stay in registers. Each entry has its products
    taken away one by one in the order of the columns, fused, in a tile or beside one: the tiles
    are no part of the result, the order is.
    """
    n, stride, width = L.shape[0] - first, L.shape[1], panel.shape[1]
    for i in range(0, n - 3, 4):
        for j in range(0, i + 4, LANES):
            at = (first + i) * stride + first + j
            a, b = load(L, at, ONE), load(L, at + stride, ONE)
            c, d = load(L, at + 2 * stride, ONE), load(L, at + 3 * stride, ONE)
            for r in range(_BLOCK):
                p = load(panel, r * width + j, ONE)
                a = fma(p, -panel[r, i], a)
                b = fma(p, -panel[r, i + 1], b)
                c = fma(p, -panel[r, i + 2], c)
                d = fma(p, -panel[r, i + 3], d)
            store(L, at, a)
            store(L, at + stride, b)
            store(L, at + 2 * stride, c)
            store(L, at + 3 * stride, d)
    for i in range(n - n % 4, n):
        for j in range(0, i + 1, LANES):
            at = (first + i) * stride + first + j
            a = load(L, at, ONE)
            for r in range(_BLOCK):
                a = fma(load(panel, r * width + j, ONE), -panel[r, i], a)
            store(L, at, a)


@compiled
def _solved(L: Matrix, B: Matrix) -> Matrix:
    """Solve for every column of B, a vector of them at a time, which stays in the cache."""
    n, columns = B.shape
    out, X = np.empty((n, columns)), np.zeros((n, HALF_LANES))
    for first in range(0, columns, HALF_LANES):
        some = min(HALF_LANES, columns - first)
        for i in range(n):
            for k in range(some):
                X[i, k] = B[i, first + k]
        _substitute(L, X)
        for i in range(n):
            for k in range(some):
                out[i, first + k] = X[i, k]
    return out


@compiled
def _substitute(L: Matrix, X: Matrix) -> None:
    """Solve for the columns of X ``[n, HALF_LANES]``, in place.

    The sums over a row of L run in eight, side by side: a fixed order that keeps the machine busy.
    It is part of the result: fewer sums, or one folded in pairs, would round differently.
    """
    n = len(L)
    for i in range(n):
        row, whole = L[i], i - i % 8
        x = load(X, i * HALF_LANES, HALF)
        a = b = c = d = e = f = g = h = zeros(X, HALF)
        for r in range(0, whole, 8):
            start = r * HALF_LANES
            a = a + load(X, start, HALF) * row[r]
            b = b + load(X, start + HALF_LANES, HALF) * row[r + 1]
            c = c + load(X, start + 2 * HALF_LANES, HALF) * row[r + 2]
            d = d + load(X, start + 3 * HALF_LANES, HALF) * row[r + 3]
            e = e + load(X, start + 4 * HALF_LANES, HALF) * row[r + 4]
            f = f + load(X, start + 5 * HALF_LANES, HALF) * row[r + 5]
            g = g + load(X, start + 6 * HALF_LANES, HALF) * row[r + 6]
            h = h + load(X, start + 7 * HALF_LANES, HALF) * row[r + 7]
        x = x - a - b - c - d - e - f - g - h
        for r in range(whole, i):
            x = x - load(X, r * HALF_LANES, HALF) * row[r]
        store(X, i * HALF_LANES, x / row[i])
    for i in range(n - 1, 0, -2):  # two at once, each taken away by itself
        row, next_row = L[i], L[i - 1]
        x = load(X, i * HALF_LANES, HALF) / row[i]
        y = (load(X, (i - 1) * HALF_LANES, HALF) - x * row[i - 1]) / next_row[i - 1]
        store(X, i * HALF_LANES, x)
        store(X, (i - 1) * HALF_LANES, y)
        for r in range(i - 1):
            left = load(X, r * HALF_LANES, HALF) - x * row[r]
            store(X, r * HALF_LANES, left - y * next_row[r])
    if n % 2:
        store(X, 0, load(X, 0, HALF) / L[0, 0])


@compiled
def solve_few(A: Matrix, s: NDArray[np.float64]) -> None:
    """Turn ``s`` into ``A^-1 s``, for a handful of unknowns; A's lower half is used up."""
    n = len(s)
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
