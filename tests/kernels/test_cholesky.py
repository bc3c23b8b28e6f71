"""Positive definite systems: numpy's solution, read off the lower half alone."""

from __future__ import annotations

import numpy as np
import pytest

from grapheraser.kernels.cholesky import solve_in_place, solve_positive
from grapheraser.kernels.vectors import padded


@pytest.mark.parametrize("n", [1, 5, 16, 48, 49, 50, 97, 113, 190])
def test_the_solution_is_numpys_and_reads_the_lower_half_alone(n: int) -> None:
    rng = np.random.default_rng(n)
    H = rng.normal(size=(n + 3, n))
    A, B = H.T @ H + np.eye(n), rng.normal(size=(n, 3))
    before = A.copy(), B.copy()
    found = solve_positive(A, B)
    np.testing.assert_allclose(found, np.linalg.solve(A, B), rtol=1e-8, atol=1e-10)
    np.testing.assert_array_equal(A, before[0])
    np.testing.assert_array_equal(B, before[1])
    assert solve_positive(np.tril(A), B).tobytes() == found.tobytes()


@pytest.mark.parametrize("c", [1, 8, 9, 20])
def test_every_right_side_is_solved_by_itself_and_in_place(c: int) -> None:
    n = 61
    rng = np.random.default_rng(c)
    H = rng.normal(size=(n + 3, n))
    A, B = H.T @ H + np.eye(n), rng.normal(size=(n, c))
    found = solve_positive(A, B)
    for k in range(c):
        assert solve_positive(A, B[:, [k]]).tobytes() == found[:, [k]].tobytes()
    L = np.full((n, padded(n)), np.nan)
    L[np.tril_indices(n)] = A[np.tril_indices(n)]
    assert solve_in_place(L, B).tobytes() == found.tobytes()
