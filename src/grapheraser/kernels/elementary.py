"""Logarithm and exponential from additions and multiplications alone, in a fixed order.

A mathematics library chooses its code by the processor, and its last bits with it. These have the
same bits everywhere, to within about one unit in the last place.
"""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import numpy as np
from numba import types
from numba.extending import intrinsic

from grapheraser.kernels.compiled import compiled

_LN2_HIGH = 6.93147180369123816490e-01  # the upper bits of log 2; a multiple of it is exact
_LN2_LOW = 1.90821492927058770002e-10
_SMALLEST = -708.0
_FRACTION, _HALF = 0x000FFFFFFFFFFFFF, 0x3FE0000000000000  # bits of a float64

# Of the factorials.
_INVERSE_3, _INVERSE_4, _INVERSE_5, _INVERSE_6 = (1.0 / math.factorial(n) for n in range(3, 7))
_INVERSE_7, _INVERSE_8, _INVERSE_9, _INVERSE_10 = (1.0 / math.factorial(n) for n in range(7, 11))
_INVERSE_11, _INVERSE_12, _INVERSE_13, _INVERSE_14 = (
    1.0 / math.factorial(n) for n in range(11, 15)
)

# Of `single_exponential`: the bits of 2^(i/32) without i as an exponent, and a polynomial in 1/32.
_STEPS = 32
_ROOTS = np.array([float(Decimal(2) ** (Decimal(i) / _STEPS)) for i in range(_STEPS)])
_ROOT_BITS = _ROOTS.view(np.int64) - (np.arange(_STEPS) << 47)
_PER_STEP = float.fromhex("0x1.71547652b82fep+0") * _STEPS
_SHIFT = float.fromhex("0x1.8p+52")  # adding it rounds to a whole number
_CUBIC = float.fromhex("0x1.c6af84b912394p-5") / _STEPS**3
_QUADRATIC = float.fromhex("0x1.ebfce50fac4f3p-3") / _STEPS**2
_LINEAR = float.fromhex("0x1.62e42ff0c52d6p-1") / _STEPS


def _bitcast(source: Any, target: Any) -> Any:
    """A function of compiled code that reads the bits of one type as another."""

    def cast(typing_context: Any, value: Any) -> Any:
        del typing_context, value

        def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return builder.bitcast(arguments[0], context.get_value_type(target))

        return target(source), build

    return intrinsic(cast)


_bits = _bitcast(types.float64, types.int64)
_number = _bitcast(types.int64, types.float64)


@compiled
def logarithm(x: float) -> float:
    """Natural logarithm of a positive, finite number that is not subnormal."""
    bits = _bits(np.float64(x))
    mantissa = _number((bits & _FRACTION) | _HALF)
    exponent = np.int32(bits >> 52) - np.int32(1022)
    small = mantissa < 0.7071067811865476
    mantissa = mantissa * 2.0 if small else mantissa
    power = np.float64(np.int32(exponent - 1 if small else exponent))
    # log m = 2 atanh(s) with s = (m - 1) / (m + 1), at most 0.172.
    s = (mantissa - 1.0) / (mantissa + 1.0)
    z = s * s
    # atanh(s) / s - 1 over s^2, from the highest power down.
    series = z * (1.0 / 19.0) + 1.0 / 17.0
    series = series * z + 1.0 / 15.0
    series = series * z + 1.0 / 13.0
    series = series * z + 1.0 / 11.0
    series = series * z + 1.0 / 9.0
    series = series * z + 1.0 / 7.0
    series = series * z + 1.0 / 5.0
    series = series * z + 1.0 / 3.0
    return power * _LN2_HIGH + (2.0 * s + (2.0 * s * z * series + power * _LN2_LOW))


@compiled
def exponential(x: float) -> float:
    """E to the power of a number of at most 700; 0 below -708."""
    inside = max(np.float64(x), _SMALLEST)
    k = math.floor(inside * 1.4426950408889634 + 0.5)
    r = (inside - k * _LN2_HIGH) - k * _LN2_LOW
    # Taylor's series on [-0.347, 0.347].
    series = r * _INVERSE_14 + _INVERSE_13
    series = series * r + _INVERSE_12
    series = series * r + _INVERSE_11
    series = series * r + _INVERSE_10
    series = series * r + _INVERSE_9
    series = series * r + _INVERSE_8
    series = series * r + _INVERSE_7
    series = series * r + _INVERSE_6
    series = series * r + _INVERSE_5
    series = series * r + _INVERSE_4
    series = series * r + _INVERSE_3
    series = series * r + 0.5
    series = series * r + 1.0
    series = series * r + 1.0
    power = _number((np.int64(k) + np.int64(1023)) << 52)
    return series * power if x >= _SMALLEST else 0.0


@compiled
def single_exponential(x: np.float32) -> np.float32:
    """E to the power of a float32 of at most 0, as a float32; 0 below -104.

    The method of Arm's optimized routines, which C libraries use too, there with or without fused
    multiplications: here always without.
    """
    if x < np.float32(-104.0):
        return np.float32(0.0)
    z = np.float64(x) * _PER_STEP
    shifted = z + _SHIFT
    k, r = _bits(shifted), z - (shifted - _SHIFT)
    power = _number(_ROOT_BITS[k & (_STEPS - 1)] + (k << 47))
    return np.float32(((_CUBIC * r + _QUADRATIC) * (r * r) + (_LINEAR * r + 1.0)) * power)


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


@compiled
def log_normalise_rows(scores):  # type: ignore[no-untyped-def]
    """`log_normalise` of every row, in place; what doesn't depend on order runs side by side."""
    m, c = scores.shape
    tops, totals, shifted = np.empty(m), np.empty(m), np.empty((m, c))
    for r in range(m):
        top = scores[r, 0]
        for k in range(1, c):
            top = max(top, scores[r, k])
        tops[r] = top
        for k in range(c):
            shifted[r, k] = scores[r, k] - top
    flat = shifted.reshape(-1)
    for i in range(len(flat)):
        flat[i] = exponential(flat[i])
    for r in range(m):
        total = 0.0
        for k in range(c):
            total += shifted[r, k]
        totals[r] = total
    for r in range(m):
        totals[r] = tops[r] + logarithm(totals[r])
    for r in range(m):
        for k in range(c):
            scores[r, k] -= totals[r]
