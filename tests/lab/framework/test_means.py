"""Means over runs, and what counts as a difference."""

from __future__ import annotations

import pytest

from grapheraser.reports.tables import Entry
from grapheraser_lab.framework.means import Mean, beyond, entry, mean_of, pearson
from grapheraser_lab.framework.published import Published


def test_a_mean_of_one_run_has_the_noise_of_its_test_nodes() -> None:
    one = mean_of([0.5], tested=100)
    assert one is not None
    assert one.std is None
    assert one.noise == pytest.approx(0.05)
    assert mean_of([None, None]) is None


@pytest.mark.parametrize(
    ("ours", "theirs", "differs"),
    [
        (Mean(0.80, 0.01, 3), Published(0.70, 0.01), True),
        (Mean(0.80, 0.05, 3), Published(0.70, 0.01), False),
        (Mean(0.709, 0.0, 3), Published(0.70, 0.0), False),
        (Mean(0.70, None, 1, 100), Published(0.75, 0.0), False),
    ],
)
def test_differences_beyond_noise(ours: Mean, theirs: Published, differs: bool) -> None:
    assert beyond(ours, theirs) is differs
    assert bool(entry(ours, theirs).mark) is differs
    assert beyond(ours, theirs) is differs


def test_a_failed_cell_is_a_dash_beside_the_papers_figure() -> None:
    assert entry(None, Published(0.7, 0.1)) == Entry("-", "paper 0.700")


def test_pearson_of_a_constant_is_nothing() -> None:
    assert pearson([1, 2, 3], [5, 5, 5]) is None
    assert pearson([1, 2, 3], [2, 4, 6]) == pytest.approx(1)
