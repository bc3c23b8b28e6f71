"""Durations, counts and lists read the same everywhere."""

from __future__ import annotations

import doctest

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grapheraser.reports import wording
from grapheraser.reports.wording import duration, listed, plural


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (None, "-"),
        (0.0, "0 s"),
        (4.2e-7, "0.42 us"),
        (4.17e-4, "417 us"),
        (0.9996, "1,000 ms"),
        (0.0243, "24.3 ms"),
        (1.0, "1.00 s"),
        (119.6, "120 s"),
        (150.0, "2.50 min"),
        (948_790.0, "264 h"),
    ],
)
def test_durations_have_three_figures_and_the_unit_that_suits(
    seconds: float | None, words: str
) -> None:
    assert duration(seconds) == words


@given(st.floats(1e-6, 1e7))
def test_a_duration_can_be_read_back_to_within_its_figures(seconds: float) -> None:
    figure, unit = duration(seconds).split()
    scale = {"us": 1e-6, "ms": 1e-3, "s": 1, "min": 60, "h": 3600}[unit]
    assert float(figure.replace(",", "")) * scale == pytest.approx(seconds, rel=0.006)


def test_one_thing_is_not_many() -> None:
    assert [plural(count, "edge") for count in (0, 1, 2)] == ["0 edges", "1 edge", "2 edges"]
    assert [plural(count, "probability") for count in (1, 3)] == [
        "1 probability",
        "3 probabilities",
    ]


def test_lists_end_in_a_word_and_not_a_comma() -> None:
    assert listed([]) == ""
    assert listed(["a"]) == "a"
    assert listed(["a", "b"], "or") == "a or b"
    assert listed(["a", "b", "c"]) == "a, b and c"


def test_the_examples_hold() -> None:
    assert doctest.testmod(wording).failed == 0
