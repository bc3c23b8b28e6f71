"""One rule of noise: paired differences over runs."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from grapheraser_lab.framework.means import Mean, mean_of
from grapheraser_lab.framework.noise import Difference, all_of, any_of, paired, spread_of


def _mean(*values: float, tested: int = 500) -> Mean:
    found = mean_of(values, tested)
    assert found is not None
    return found


def test_the_interval_is_students_on_paired_differences() -> None:
    one, other = [0.81, 0.84, 0.80, 0.86], [0.80, 0.80, 0.79, 0.81]
    gap = paired(_mean(*one), _mean(*other))
    oracle = stats.ttest_rel(one, other).confidence_interval(0.95)
    assert (gap.low, gap.high) == pytest.approx((oracle.low, oracle.high))


def test_what_runs_share_is_no_noise() -> None:
    """Splits differ much, the two methods little, and always in the same direction."""
    splits = np.array([0.5, 0.6, 0.7, 0.8])
    better = splits + np.array([0.020, 0.021, 0.019, 0.020])
    assert paired(_mean(*better), _mean(*splits)).above() is True


def test_only_runs_that_both_have_are_compared() -> None:
    one, other = mean_of({0: 0.5, 1: 0.6, 2: 0.9}), mean_of({1: 0.5, 2: 0.8})
    assert one is not None
    assert other is not None
    assert paired(one, other).mean == pytest.approx(0.1)


def test_a_single_run_has_the_error_of_its_test_nodes() -> None:
    gap = paired(_mean(0.5, tested=100), _mean(0.4, tested=100))
    assert gap.error == pytest.approx(math.hypot(0.05, math.sqrt(0.24) / 10))
    assert gap.above() is None


def test_a_single_figure_of_another_kind_tells_nothing() -> None:
    one, other = _mean(1.0, tested=0), _mean(9.0, tested=0)
    assert paired(one, other).above() is None
    assert paired(one, other).at_most(0.5) is None
    assert spread_of([0.9]).above() is None
    assert "one run" in str(spread_of([0.9]))


@pytest.mark.parametrize(
    ("mean", "error", "answer"),
    [(0.05, 0.01, True), (0.05, 0.04, None), (0.002, 0.0001, False), (-0.1, 0.01, False)],
)
def test_above_wants_a_hundredth_beyond_noise(
    mean: float, error: float, answer: bool | None
) -> None:
    assert Difference(mean, error).above() is answer


@pytest.mark.parametrize(
    ("mean", "error", "at_most", "within"),
    [
        (0.0, 0.001, True, True),
        (0.05, 0.01, False, False),
        (0.02, 0.02, None, None),
        (-0.1, 0.01, True, False),
    ],
)
def test_the_whole_interval_must_keep_to_a_limit(
    mean: float, error: float, at_most: bool | None, within: bool | None
) -> None:
    gap = Difference(mean, error)
    assert (gap.at_most(0.02), gap.within(0.02)) == (at_most, within)


def test_answers_are_joined() -> None:
    assert [all_of(x) for x in ([True, True], [True, None], [None, False])] == [True, None, False]
    assert [any_of(x) for x in ([False, True], [False, None], [False])] == [True, None, False]
