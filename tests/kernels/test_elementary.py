"""Logarithm and exponential to two units in the last place, at any magnitude."""

from __future__ import annotations

import hashlib
import math

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from grapheraser.kernels.elementary import (
    exponential,
    log_normalise,
    log_normalise_rows,
    logarithm,
    logarithms,
    single_exponential,
)

many = settings(max_examples=500)


@many
@given(st.floats(2.3e-308, 1.7e308))
@example(1.0)
@example(math.nextafter(1.0, 0.0))
@example(math.nextafter(1.0, 2.0))
@example(math.sqrt(0.5))
@example(math.nextafter(math.sqrt(0.5), 0.0))
@example(2.2250738585072014e-308)
@example(1.7976931348623157e308)
def test_the_logarithm_is_that_of_the_library(x: float) -> None:
    expected = math.log(x)
    assert abs(logarithm(x) - expected) <= 2 * math.ulp(expected)


@many
@given(st.floats(-40, 40), st.floats(0.5, 1.5))
def test_so_it_is_near_1_and_at_powers_of_2(exponent: float, mantissa: float) -> None:
    for x in (1.0 + 2.0 ** (exponent - 42), 2.0 ** round(exponent), mantissa):
        expected = math.log(x)
        assert abs(logarithm(x) - expected) <= 2 * math.ulp(expected)


@many
@given(st.floats(-708, 700))
@example(0.0)
@example(-0.0)
@example(5e-324)
@example(-708.0)
@example(700.0)
@example(0.5 * math.log(2))
@example(-0.5 * math.log(2))
def test_the_exponential_is_that_of_the_library(x: float) -> None:
    expected = math.exp(x)
    assert abs(exponential(x) - expected) <= 2 * math.ulp(expected)


@many
@given(st.floats(-1, 1))
def test_so_it_is_near_0(x: float) -> None:
    for small in (x, x * 1e-9):
        assert abs(exponential(small) - math.exp(small)) <= 2 * math.ulp(math.exp(small))


@pytest.mark.parametrize("x", [-708.1, -1e6, -math.inf])
def test_what_is_too_small_is_nothing(x: float) -> None:
    assert exponential(x) == 0.0


@many
@given(st.floats(-104, 0, width=32))
@example(-103.9720764160156)  # the last that is not nothing
@example(-63.09946060180664)  # where a library with fused multiplications rounds the other way
@example(-87.5)
@example(-0.0)
def test_the_exponential_of_a_float32_is_the_nearest_or_next_to_it(x: float) -> None:
    found, expected = (np.float32(f(np.float32(x))) for f in (single_exponential, math.exp))
    assert np.nextafter(found, np.float32(0)) <= expected <= np.nextafter(found, np.float32(2))


def test_the_exponential_of_a_float32_has_recorded_bits() -> None:
    values = -np.linspace(0, 104, 100_001, dtype=np.float32)
    found = np.array([single_exponential(x) for x in values], dtype=np.float32)
    assert hashlib.sha256(found.tobytes()).hexdigest()[:16] == "663324ce0bf8b05b"
    assert single_exponential(np.float32(-np.inf)) == 0.0
    assert math.isnan(single_exponential(np.float32(np.nan)))


def test_an_array_is_taken_entry_by_entry() -> None:
    rng = np.random.default_rng(0)
    for values in (
        rng.lognormal(size=(3, 4)),
        rng.integers(1, 9, size=5),
        rng.random((2, 3, 2), dtype=np.float32) + 1,
        np.zeros((0, 3)),
    ):
        found = logarithms(values)
        assert found.dtype == np.float64
        assert found.shape == values.shape
        expected = [logarithm(float(value)) for value in values.ravel()]
        assert found.ravel().tolist() == expected


@given(st.lists(st.floats(-1e5, 1e5), min_size=1, max_size=9))
@example([-30.0])
@example([0.0, -1e5])
@example([700.0, 700.0])
def test_normalised_rows_are_log_probabilities(scores: list[float]) -> None:
    row = np.array(scores)
    log_normalise(row)
    expected = row_by_numpy(np.array(scores))
    np.testing.assert_allclose(row, expected, rtol=1e-12, atol=1e-10)
    assert np.exp(row).sum() == pytest.approx(1)


def row_by_numpy(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    above: NDArray[np.float64] = scores - scores.max()
    found: NDArray[np.float64] = above - np.log(np.exp(above).sum())
    return found


@pytest.mark.parametrize("classes", [1, 2, 5, 17])
def test_rows_are_normalised_as_each_would_be_alone(classes: int) -> None:
    rng = np.random.default_rng(classes)
    rows = rng.normal(size=(50, classes)) * 10.0 ** rng.integers(-3, 4, size=(50, 1))
    rows[3] = rows[3, 0] - 1000.0 * np.arange(classes)  # all but one vanish
    together = rows.copy()
    log_normalise_rows(together)
    for row in rows:
        log_normalise(row)
    assert together.tobytes() == rows.tobytes()
