"""Logarithm and exponential from additions and multiplications alone, in a fixed order.

A mathematics library chooses its code by the processor, and its last bits with it. These have the
same bits everywhere, to within about one unit in the last place.
"""

from __future__ import annotations

import math

import numpy as np

from grapheraser.kernels.compiled import compiled

_LN2_HIGH = 6.93147180369123816490e-01  # the upper bits of log 2; a multiple of it is exact
_LN2_LOW = 1.90821492927058770002e-10
_SMALLEST = -708.0
# Coefficients from the highest power down: of atanh(s) / s - 1 over s^2, and of the exponential.
_ATANH = tuple(1.0 / odd for odd in (19, 17, 15, 13, 11, 9, 7, 5, 3))
_TAYLOR = tuple(1.0 / math.factorial(n) for n in range(14, -1, -1))


@compiled
def logarithm(x: float) -> float:
    """Natural logarithm of a positive, finite number that is not subnormal."""
    mantissa, exponent = math.frexp(x)
    if mantissa < 0.7071067811865476:
        mantissa *= 2.0
        exponent -= 1
    # log m = 2 atanh(s) with s = (m - 1) / (m + 1), at most 0.172.
    s = (mantissa - 1.0) / (mantissa + 1.0)
    z = s * s
    series = 0.0
    for coefficient in _ATANH:
        series = series * z + coefficient
    return exponent * _LN2_HIGH + (2.0 * s + (2.0 * s * z * series + exponent * _LN2_LOW))


@compiled
def exponential(x: float) -> float:
    """E to the power of a number of at most 700; 0 below -708."""
    if x < _SMALLEST:
        return 0.0
    k = math.floor(x * 1.4426950408889634 + 0.5)
    r = (x - k * _LN2_HIGH) - k * _LN2_LOW
    # Taylor's series on [-0.347, 0.347].
    series = 0.0
    for coefficient in _TAYLOR:
        series = series * r + coefficient
    return math.ldexp(series, int(k))


@compiled
def logarithms(values):  # type: ignore[no-untyped-def]
    """Logarithm of every entry of an array of positive numbers, as float64."""
    out = np.empty(values.shape)
    flat, source = out.reshape(-1), values.reshape(-1)
    for i in range(len(flat)):
        flat[i] = logarithm(source[i])
    return out


@compiled
def log_normalise(scores):  # type: ignore[no-untyped-def]
    """Subtract the logarithm of the summed exponentials from a row, in place."""
    top = scores[0]
    for c in range(1, len(scores)):
        top = max(top, scores[c])
    total = 0.0
    for c in range(len(scores)):
        total += exponential(scores[c] - top)
    total = top + logarithm(total)
    for c in range(len(scores)):
        scores[c] -= total
