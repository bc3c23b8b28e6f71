from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from numpy.typing import NDArray

from grapheraser.reports.figures.springs import Level, levels, repel, settle


def _rows(n: int, pairs: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """The rows of a simple graph, both directions."""
    dense = np.zeros((n, n), dtype=bool)
    dense[pairs[:, 0], pairs[:, 1]] = dense[pairs[:, 1], pairs[:, 0]] = True
    np.fill_diagonal(dense, val=False)
    indptr = np.concatenate([[0], np.cumsum(dense.sum(axis=1))])
    return indptr, np.nonzero(dense)[1].astype(np.int32)


def _random_rows(n: int, m: int) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    path = np.stack([np.arange(n - 1), np.arange(1, n)], axis=1)
    more = np.random.default_rng(n).integers(0, n, (m, 2))
    return _rows(n, np.concatenate([path, more]))


def _matrix(level: Level) -> NDArray[np.float64]:
    n = len(level.masses)
    found = np.zeros((n, n))
    found[np.repeat(np.arange(n), np.diff(level.indptr)), level.indices] = level.weights
    return found


@pytest.mark.parametrize("shape", ["blob", "clusters", "line"])
def test_repulsion_is_that_of_all_pairs(shape: str) -> None:
    rng = np.random.default_rng(1)
    places = rng.normal(size=(700, 2)) * 10
    if shape == "clusters":
        places += 200 * rng.integers(0, 3, (700, 1))
    if shape == "line":
        places[:, 1] = 0
    masses = rng.uniform(1, 9, 700)
    forces = np.empty((700, 2))
    repel(places, masses, 5, forces)
    apart = places[:, None] - places
    push = masses[:, None] * masses / ((apart**2).sum(axis=2) + 1e-4)
    exact = (push[..., None] * apart).sum(axis=1)
    error = np.linalg.norm(forces - exact, axis=1)
    assert np.median(error / np.linalg.norm(exact, axis=1)) < 0.02
    assert np.linalg.norm(forces - exact) < 0.05 * np.linalg.norm(exact)


def test_a_coarser_graph_adds_up_what_it_stands_for() -> None:
    indptr, indices = _random_rows(400, 300)
    found = levels(indptr, indices, np.random.default_rng(0).permutation(400), 20)
    assert len(found) > 2
    for fine, coarse in pairwise(found):
        joined = np.eye(len(coarse.masses))[fine.parents]
        wanted = joined.T @ _matrix(fine) @ joined
        np.fill_diagonal(wanted, 0)
        np.testing.assert_allclose(_matrix(coarse), wanted)
        np.testing.assert_allclose(coarse.masses, joined.T @ fine.masses)
        np.testing.assert_allclose(coarse.degrees, joined.T @ fine.degrees)
        assert np.bincount(fine.parents).max() <= 4


def test_a_star_spreads_around_its_centre() -> None:
    star = np.stack([np.zeros(500, dtype=np.int64), np.arange(1, 501)], axis=1)
    indptr, indices = _rows(501, star)
    places = settle(indptr, indices, np.arange(501), 7)
    assert np.isfinite(places).all()
    away = np.linalg.norm(places[1:] - places[0], axis=1)
    assert len(np.unique(places.round(6), axis=0)) == 501
    assert np.linalg.norm(places[1:].mean(axis=0) - places[0]) < 0.5 * np.median(away)


def test_springs_come_to_rest_at_the_same_places_every_time() -> None:
    indptr, indices = _random_rows(300, 200)
    ids = np.arange(300)
    np.testing.assert_array_equal(settle(indptr, indices, ids, 3), settle(indptr, indices, ids, 3))
    assert (settle(indptr, indices, ids, 3) != settle(indptr, indices, ids, 4)).any()
