from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.sparse import csr_array

from grapheraser.reports.figures.springs import repulsion, settle


def _edges(n: int, pairs: NDArray[np.int64]) -> csr_array:
    """The edges of a simple graph, both directions."""
    dense = np.zeros((n, n))
    dense[pairs[:, 0], pairs[:, 1]] = dense[pairs[:, 1], pairs[:, 0]] = 1
    np.fill_diagonal(dense, 0)
    return csr_array(dense)


def _random_edges(n: int, m: int) -> csr_array:
    path = np.stack([np.arange(n - 1), np.arange(1, n)], axis=1)
    more = np.random.default_rng(n).integers(0, n, (m, 2))
    return _edges(n, np.concatenate([path, more]))


@pytest.mark.parametrize("shape", ["blob", "clusters", "line"])
def test_repulsion_is_that_of_all_pairs_that_are_not_close_together(shape: str) -> None:
    rng = np.random.default_rng(1)
    places = rng.normal(size=(700, 2)) * 10
    if shape == "clusters":
        places += 200 * rng.integers(0, 3, (700, 1))
    if shape == "line":
        places[:, 1] = 0
    masses = rng.uniform(1, 9, 700)
    apart = places[:, None] - places
    squares = (apart**2).sum(axis=2)
    cell = np.ptp(places, axis=0).max() / 62
    # Within a cell or two distances count as those of the grid.
    push = masses[:, None] * masses / np.maximum(squares, cell**2)
    exact = (push[..., None] * apart).sum(axis=1)
    error = np.linalg.norm(repulsion(places, masses) - exact, axis=1)
    assert np.median(error / np.linalg.norm(exact, axis=1)) < 0.1


def test_two_nodes_push_each_other_away_by_their_masses_over_the_distance() -> None:
    places, masses = np.array([[0.0, 0.0], [3.0, 4.0]]), np.array([2.0, 7.0])
    wanted = 14 / 25 * np.array([[-3.0, -4.0], [3.0, 4.0]])
    np.testing.assert_allclose(repulsion(places, masses), wanted, rtol=0.01)


def test_a_star_spreads_around_its_centre() -> None:
    star = np.stack([np.zeros(500, dtype=np.int64), np.arange(1, 501)], axis=1)
    edges = _edges(501, star)
    places = settle(edges, np.arange(501), 7)
    assert np.isfinite(places).all()
    away = np.linalg.norm(places[1:] - places[0], axis=1)
    assert len(np.unique(places.round(6), axis=0)) == 501
    assert np.linalg.norm(places[1:].mean(axis=0) - places[0]) < 0.5 * np.median(away)


def test_springs_come_to_rest_at_the_same_places_every_time() -> None:
    edges = _random_edges(300, 200)
    ids = np.arange(300)
    np.testing.assert_array_equal(settle(edges, ids, 3), settle(edges, ids, 3))
    assert (settle(edges, ids, 3) != settle(edges, ids, 4)).any()
