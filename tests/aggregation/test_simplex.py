"""The convex solver reaches the optimum that an independent one finds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import LinearConstraint, minimize

from grapheraser.aggregation.simplex import TINY, mixture_weights, paper_weights


def objective(A: NDArray[np.float64], alpha: NDArray[np.float64], penalty: float = 0.0) -> float:
    """What the weights are to minimise."""
    return float(-np.log(np.maximum(A, TINY).T @ alpha).mean() + penalty * np.linalg.norm(alpha))


def oracle(A: NDArray[np.float64], penalty: float) -> float:
    """The least value of the objective, by sequential least squares."""
    A = np.maximum(A, TINY)
    k = len(A)

    def slope(alpha: NDArray[np.float64]) -> NDArray[np.float64]:
        return -(A / (A.T @ alpha)).mean(axis=1) + penalty * alpha / np.linalg.norm(alpha)

    solver: Any = minimize  # its stubs don't know this combination of arguments
    found = solver(
        lambda alpha: objective(A, alpha, penalty),
        np.full(k, 1 / k),
        jac=slope,
        bounds=[(0, 1)] * k,
        constraints=LinearConstraint(np.ones(k), 1, 1),
        method="SLSQP",
        options={"maxiter": 500, "ftol": 1e-12},
    )
    return float(found.fun)


def problem(k: int, m: int, seed: int) -> NDArray[np.float64]:
    return np.random.default_rng(seed).beta(0.5, 0.5, size=(k, m))


@pytest.mark.parametrize("penalty", [0.0, 0.1, 1.0])
@pytest.mark.parametrize(("k", "m"), [(2, 30), (5, 3), (5, 100), (20, 200), (40, 10)])
def test_no_better_weights_are_found_by_an_independent_solver(
    k: int, m: int, penalty: float
) -> None:
    for seed in range(4):
        A = problem(k, m, seed)
        alpha = mixture_weights(A, penalty=penalty)
        assert alpha.min() >= 0
        assert alpha.sum() == pytest.approx(1)
        assert objective(A, alpha, penalty) <= oracle(A, penalty) + 1e-6


def test_a_member_that_is_always_right_gets_all_the_weight() -> None:
    A = problem(6, 50, 0) * 0.9
    A[4] = 1.0
    assert mixture_weights(A)[4] == pytest.approx(1)


def test_copies_zeros_and_single_members_are_no_obstacle() -> None:
    A = problem(3, 40, 0)
    copies = mixture_weights(np.concatenate([A, A]))
    assert objective(np.concatenate([A, A]), copies) == pytest.approx(oracle(A, 0.0), abs=1e-6)
    np.testing.assert_allclose(mixture_weights(np.zeros((4, 9))).sum(), 1)
    assert mixture_weights(A[:1]).tolist() == [1.0]
    assert mixture_weights(A[:, :0]).tolist() == [1 / 3] * 3
    assert paper_weights(A[:, :0]).tolist() == [1 / 3] * 3


def test_a_heavy_penalty_makes_the_weights_equal() -> None:
    np.testing.assert_allclose(mixture_weights(problem(5, 60, 1), penalty=1e4), 0.2, atol=1e-3)


def test_the_papers_steps_stay_on_the_simplex_and_improve_on_equal_weights() -> None:
    A = problem(8, 100, 2)
    alpha = paper_weights(A)
    assert alpha.min() > 0
    assert alpha.sum() == pytest.approx(1)
    assert objective(A, mixture_weights(A)) < objective(A, alpha)
    assert objective(A, alpha) < objective(A, np.full(8, 1 / 8))
