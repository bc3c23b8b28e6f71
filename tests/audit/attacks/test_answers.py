"""What an informed attack makes of posteriors."""

from __future__ import annotations

import math

import numpy as np
import pytest

from grapheraser.audit.attacks.answers import (
    calibrated,
    fall,
    fall_and_distance,
    log_distance,
    log_odds,
)

BEFORE = np.array([[0.1, 0.6, 0.3], [0.5, 0.25, 0.25]])
AFTER = np.array([[0.2, 0.2, 0.6], [0.5, 0.25, 0.25]])
LABELS = np.array([1, 0])


def test_the_fall_is_that_of_the_log_odds_of_the_true_class() -> None:
    expected = [math.log(0.6 / 0.4) - math.log(0.2 / 0.8), 0.0]
    assert fall(BEFORE, AFTER, LABELS)[:, 0] == pytest.approx(expected)


def test_the_log_distance_is_that_of_logarithms() -> None:
    moved = math.sqrt(math.log(0.5) ** 2 + math.log(3) ** 2 + math.log(0.5) ** 2)
    found = log_distance(BEFORE, AFTER, LABELS)[:, 0]
    assert found[0] == pytest.approx(math.log(moved))
    assert found[1] < -10
    together = fall_and_distance(BEFORE, AFTER, LABELS)
    assert together.shape == (2, 3)
    assert together[:, 0] == pytest.approx([math.log(0.6 / 0.4), 0.0])


def test_log_odds_stay_finite_for_rounded_answers() -> None:
    odds = log_odds(np.array([[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]]), np.array([0, 0, 1]))
    assert np.isfinite(odds).all()
    assert odds[0] > 10
    assert odds[1] < -10
    assert odds[2] == 0


def test_log_odds_of_a_posterior_that_is_nearly_sure_keep_their_digits() -> None:
    posteriors = np.array([[1.0, 2e-6, 3e-6]], dtype=np.float32)
    assert log_odds(posteriors, np.array([0])) == pytest.approx([-math.log(5e-6)], rel=1e-6)


def test_calibration_undoes_the_scale_and_the_offsets_of_a_pool() -> None:
    rng = np.random.default_rng(0)
    evidence, labels = rng.normal(size=80), rng.integers(2, size=80)

    def answers(weight: float, offset: float) -> np.ndarray:
        first = 1 / (1 + np.exp(-(weight * evidence + offset)))
        return np.column_stack([first, 1 - first])

    loud, quiet = answers(2.0, 0.5), answers(0.01, -1.0)
    assert not np.allclose(log_odds(loud, labels), log_odds(quiet, labels), atol=0.1)
    assert np.allclose(calibrated(loud, labels), calibrated(quiet, labels))


def test_calibrated_answers_that_are_all_the_same_say_nothing() -> None:
    same = np.full((6, 3), 1 / 3)
    assert np.array_equal(calibrated(same, np.array([0, 0, 1, 1, 2, 2])), np.zeros(6))
