"""The regression, against a general minimiser, and its odd cases."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import minimize

from grapheraser.links.counts import NUMBERS
from grapheraser.links.regression import COLUMNS, PULL, columns_of, logistic, scores, solve


def some_pairs(seed: int, m: int = 300) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    rng = np.random.default_rng(seed)
    columns = np.concatenate([np.ones((1, m)), rng.normal(size=(4, m))])
    odds = 1.5 * columns[1] - columns[2] + 0.3
    return columns, (rng.random(m) < 1 / (1 + np.exp(-odds))).astype(float)


@pytest.mark.parametrize("seed", [0, 1])
def test_weights_are_those_of_a_general_minimiser(seed: int) -> None:
    columns, labels = some_pairs(seed)

    def value(w: NDArray[np.float64]) -> float:
        z = w @ columns
        loss = np.logaddexp(0, z) - labels * z
        return float(loss.sum() + PULL / 2 * (w[1:] ** 2).sum())

    expected = minimize(value, np.zeros(len(columns)), tol=1e-10).x
    np.testing.assert_allclose(solve(columns, labels), expected, atol=2e-3)


def test_separable_pairs_keep_finite_weights() -> None:
    columns = np.stack([np.ones(40), np.repeat([-1.0, 1.0], 20)])
    weights = solve(columns, (columns[1] > 0).astype(float))
    assert np.isfinite(weights).all()
    assert weights[1] > 1


@pytest.mark.parametrize("labels", [[], [1.0, 1.0], [0.0]])
def test_one_kind_of_pairs_teaches_nothing(labels: list[float]) -> None:
    columns = np.ones((3, len(labels)))
    assert solve(columns, np.array(labels)).tolist() == [0.0, 0.0, 0.0]


def test_columns_of_a_pair_without_anything_are_finite() -> None:
    columns = columns_of(np.zeros((2, len(NUMBERS))))
    assert columns.shape == (len(COLUMNS), 2)
    assert np.isfinite(columns).all()


def test_probabilities_follow_the_odds() -> None:
    odds = np.array([-800.0, -2.0, 0.0, 2.0, 800.0])
    np.testing.assert_allclose(logistic(odds), [0, 0.119203, 0.5, 0.880797, 1], atol=1e-6)
    columns, labels = some_pairs(3)
    weights = solve(columns, labels)
    np.testing.assert_allclose(scores(columns, weights), weights @ columns)
