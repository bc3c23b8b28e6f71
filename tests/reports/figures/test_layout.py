from __future__ import annotations

import numpy as np
import pytest

from grapheraser.graph import Graph
from grapheraser.reports.figures.layout import layout


def _graph(n: int, pairs: list[tuple[int, int]]) -> Graph:
    edges = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    return Graph.from_arrays(np.ones((n, 1)), edges, np.zeros(n, dtype=int))


@pytest.mark.parametrize("n", [0, 1, 2, 3, 50])
def test_every_node_has_a_finite_place_in_the_unit_disc(n: int) -> None:
    places = layout(_graph(n, [(i, i + 1) for i in range(0, n - 1, 3)]), seed=1)
    assert places.shape == (n, 2)
    assert np.isfinite(places).all()
    assert (np.hypot(*places.T) <= 1 + 1e-9).all()


def test_the_layout_is_a_function_of_graph_and_seed() -> None:
    rng = np.random.default_rng(0)
    graph = _graph(150, [(int(u), int(v)) for u, v in rng.integers(0, 150, (400, 2))])
    np.testing.assert_array_equal(layout(graph, seed=3), layout(graph, seed=3))
    assert (layout(graph, seed=3) != layout(graph, seed=4)).any()


def test_isolated_nodes_lie_outside_the_largest_component() -> None:
    places = layout(_graph(60, [(i, i + 1) for i in range(39)]), seed=0)
    radius = np.hypot(*places.T)
    assert radius[40:].min() > radius[:40].max()


def test_communities_lie_apart() -> None:
    rng = np.random.default_rng(0)
    group = np.arange(400) % 4
    pairs = rng.integers(0, 400, (6000, 2))
    within = group[pairs[:, 0]] == group[pairs[:, 1]]
    kept = pairs[within | (rng.random(6000) < 0.02)]
    places = layout(_graph(400, [(int(u), int(v)) for u, v in kept if u != v]), seed=0)
    centres = np.stack([places[group == k].mean(axis=0) for k in range(4)])
    nearest = np.linalg.norm(places[:, None] - centres, axis=2).argmin(axis=1)
    assert (nearest == group).mean() > 0.97


def test_neighbours_lie_closer_than_others() -> None:
    places = layout(_graph(300, [(i, (i + 1) % 300) for i in range(300)]), seed=0)
    edges = np.linalg.norm(places - np.roll(places, -1, axis=0), axis=1)
    across = np.linalg.norm(places - np.roll(places, 150, axis=0), axis=1)
    assert np.median(edges) < 0.1 * np.median(across)


def test_edges_from_a_node_to_itself_do_no_harm() -> None:
    loops = [(i, i + 1) for i in range(9)] + [(3, 3), (7, 7)]
    assert np.isfinite(layout(_graph(10, loops), seed=0)).all()
