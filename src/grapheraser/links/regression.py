"""From the numbers of a pair to the probability of an edge: logistic regression.

`columns_of` turns numbers into columns of a like scale, by fixed rules: a scale taken from the data
would be one more thing to forget. `solve` finds the weights w
that minimise

    sum over pairs of log(1 + exp(-s_i (w . c_i))) + PULL / 2 |w|^2     (s_i: 1 for edges, else -1)

by Newton's method from 0; the first weight belongs to a constant and is not pulled. Every sum runs
in a fixed order on one thread, so the same pairs give the same bits.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from grapheraser.kernels.cholesky import solve_few
from grapheraser.kernels.compiled import compiled
from grapheraser.kernels.elementary import exponential, logarithm
from grapheraser.links.counts import DIRECTIONS, NUMBERS
from grapheraser.links.pair_features import Numbers

COLUMNS = (
    "constant",
    "Adamic-Adar",
    "resource allocation",
    "share of common neighbours",
    "paths",
    "paths per degree",
    "root of paths per degree",
    "own features",
    "one step",
    "one step, squared",
    "two steps",
    "two steps, squared",
    "own and one step",
    "larger degree",
    "difference of degrees",
    "product of degrees",
)
# Those that pairs of a directed graph have besides.
DIRECTED = DIRECTIONS
# Strength of the pull of the weights to 0, in pairs.
PULL = 1.0
_TOLERANCE, _PASSES, _HALVINGS = 1e-7, 30, 20

Vector = NDArray[np.float64]


def columns_of(numbers: Numbers) -> NDArray[np.float64]:
    """The columns of pairs ``[num_columns, m]`` from their numbers, each pair by itself."""
    columns: NDArray[np.float64] = _columns(numbers[:, : len(NUMBERS)])
    if numbers.shape[1] == len(NUMBERS):
        return columns
    return np.concatenate([columns, _directed_columns(numbers[:, len(NUMBERS) :])])


def solve(columns: NDArray[np.float64], labels: Vector) -> Vector:
    """The weights ``[len(columns)]``; all 0 without an edge (1), or a pair that is none (0)."""
    if len(labels) == 0 or labels.min() == labels.max():
        return np.zeros(len(columns))
    weights: Vector = _solve(np.ascontiguousarray(columns), labels)
    return weights


def scores(columns: NDArray[np.float64], weights: Vector) -> Vector:
    """The logarithm of the odds of an edge, for each pair by itself."""
    found: Vector = _scores(np.ascontiguousarray(columns), weights)
    return found


@compiled
def _columns(numbers):  # type: ignore[no-untyped-def]
    out = np.empty((len(COLUMNS), len(numbers)))
    for i in range(len(numbers)):
        common, adamic, allocation, paths, low, high, own, one, two, both = numbers[i]
        a, b = logarithm(1.0 + low), logarithm(1.0 + high)
        per_degree = paths / math.sqrt((low + 1.0) * (high + 1.0))
        out[0, i] = 1.0
        out[1, i] = 3.0 * logarithm(1.0 + adamic)
        out[2, i] = 2.0 * logarithm(1.0 + 10.0 * allocation)
        out[3, i] = 10.0 * common / max(1.0, low + high - common)
        out[4, i] = 2.0 * logarithm(1.0 + paths)
        out[5, i] = 20.0 * per_degree
        out[6, i] = 8.0 * math.sqrt(per_degree)
        out[7, i] = 6.0 * own
        out[8, i], out[9, i] = 5.0 * one, 7.0 * one * one
        out[10, i], out[11, i] = 5.0 * two, 6.0 * two * two
        out[12, i] = 3.0 * both
        out[13, i], out[14, i], out[15, i] = b, b - a, 0.4 * a * b
    return out


@compiled
def _directed_columns(numbers):  # type: ignore[no-untyped-def]
    out = np.empty((len(DIRECTED), len(numbers)))
    for i in range(len(numbers)):
        out[0, i] = 3.0 * numbers[i, 0]
        for c in range(1, 5):
            out[c, i] = 2.0 * logarithm(1.0 + 10.0 * numbers[i, c])
        for c in range(5, len(DIRECTED)):
            out[c, i] = logarithm(1.0 + numbers[i, c])
    return out


@compiled
def _scores(columns, weights):  # type: ignore[no-untyped-def]
    out = np.zeros(columns.shape[1])
    for j in range(len(weights)):
        for i in range(len(out)):
            out[i] += weights[j] * columns[j, i]
    return out


@compiled
def _solve(columns, labels):  # type: ignore[no-untyped-def]
    x = np.zeros(len(columns))
    value, gradient, hessian = _look(columns, labels, x)
    for _ in range(_PASSES):
        step = _newton(hessian, gradient)
        slope = 0.0
        for j in range(len(x)):
            slope += gradient[j] * step[j]
        if slope > -_TOLERANCE * len(labels):
            return x  # nothing left to gain
        scale = 1.0
        for _ in range(_HALVINGS):
            new = x + scale * step
            new_value, new_gradient, new_hessian = _look(columns, labels, new)
            if new_value <= value + 1e-4 * scale * slope:
                break
            scale *= 0.5
        x, value, gradient, hessian = new, new_value, new_gradient, new_hessian
    return x


@compiled
def _look(columns, labels, x):  # type: ignore[no-untyped-def]
    """Value, gradient and the lower half of the Hessian."""
    n, m = columns.shape
    value, gradient, hessian = 0.0, np.zeros(n), np.zeros((n, n))
    z = _scores(columns, x)
    slopes, bends = np.empty(m), np.empty(m)
    for i in range(m):
        # Of the two exponentials the one that does not overflow.
        small = exponential(-abs(z[i]))
        odds = small / (1.0 + small)
        p = odds if z[i] < 0.0 else 1.0 - odds
        value += logarithm(1.0 + small) + max(z[i], 0.0) - labels[i] * z[i]
        slopes[i] = p - labels[i]
        bends[i] = odds * (1.0 - odds)
    bent = np.empty(m)
    for j in range(n):
        for i in range(m):
            bent[i] = bends[i] * columns[j, i]
        gradient[j] = _product(slopes, columns[j])
        for k in range(j + 1):
            hessian[j, k] = _product(bent, columns[k])
    for j in range(1, n):
        value += 0.5 * PULL * x[j] * x[j]
        gradient[j] += PULL * x[j]
        hessian[j, j] += PULL
    hessian[0, 0] += 1e-9
    return value, gradient, hessian


@compiled
def _product(a: Vector, b: Vector) -> float:
    """A scalar product, eight sums side by side."""
    sums = np.zeros(8)
    whole = len(a) - len(a) % 8
    for i in range(0, whole, 8):
        for r in range(8):
            sums[r] += a[i + r] * b[i + r]
    for i in range(whole, len(a)):
        sums[0] += a[i] * b[i]
    return ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]))


@compiled
def _newton(A, gradient):  # type: ignore[no-untyped-def]
    """``-A^-1 g`` by Cholesky, in place of A's lower half."""
    s = -gradient
    solve_few(A, s)
    return s


@compiled
def logistic(log_odds: Vector) -> Vector:
    """The probability for each logarithm of odds."""
    out = np.empty(len(log_odds))
    for i in range(len(out)):
        small = exponential(-abs(log_odds[i]))
        odds = small / (1.0 + small)
        out[i] = odds if log_odds[i] < 0.0 else 1.0 - odds
    return out
