"""The surroundings of nodes: what a module needs to see, and nothing else."""

from __future__ import annotations

import gc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import grapheraser as ge

pytest.importorskip("torch", reason="needs the extra 'gnn'")
from grapheraser.inference import surroundings
from grapheraser.inference.surroundings import surroundings_of, whole_graph
from tests.strategies import small_graph

GRAPHS = st.integers(0, 2**16)
ASKED = st.lists(st.integers(0, 199), min_size=1, max_size=4)


def distances(graph: ge.Graph, positions: NDArray[np.int64]) -> NDArray[np.int64]:
    """Hops from the nearest of the positions, from the adjacency matrix."""
    linked = np.zeros((graph.num_nodes, graph.num_nodes), dtype=bool)
    linked[tuple(graph.edge_index)] = True
    reached = np.isin(np.arange(graph.num_nodes), positions)
    found = np.where(reached, 0, 10**6)
    for hop in range(1, graph.num_nodes):
        reached = reached | linked[reached].any(axis=0)
        found = np.where(reached & (found > hop), hop, found)
    return found


@given(GRAPHS, ASKED, st.integers(0, 3))
def test_inner_nodes_have_their_features_and_all_their_neighbours(
    seed: int, asked: list[int], hops: int
) -> None:
    graph = small_graph(seed, n=200, ties=1)
    positions = np.array(asked)
    seen = surroundings_of(graph, positions, hops)
    x, far = graph.x.toarray(), distances(graph, positions)
    if seen.edge_index.shape == graph.edge_index.shape:
        np.testing.assert_array_equal(seen.x, x)
        np.testing.assert_array_equal(seen.edge_index, graph.edge_index)
        np.testing.assert_array_equal(seen.places, positions)
        return
    nodes = np.flatnonzero(far <= hops + 1)
    assert len(seen.x) == len(nodes)
    np.testing.assert_array_equal(nodes[seen.places], positions)
    np.testing.assert_array_equal(seen.x, np.where(far[nodes, None] <= hops, x[nodes], np.nan))
    sources, targets = graph.edge_index
    kept = (np.minimum(far[sources], far[targets]) <= hops) & (far[sources] <= hops + 1)
    np.testing.assert_array_equal(nodes[seen.edge_index.numpy()], graph.edge_index[:, kept])


@given(GRAPHS, ASKED, st.integers(0, 3))
def test_without_degrees_the_last_node_stands_for_all_that_is_further_away(
    seed: int, asked: list[int], hops: int
) -> None:
    graph = small_graph(seed, n=200, ties=1)
    positions = np.array(asked)
    seen = surroundings_of(graph, positions, hops, degrees=False)
    x, far = graph.x.toarray(), distances(graph, positions)
    if not seen.x.isnan().any():
        np.testing.assert_array_equal(seen.x, x)
        np.testing.assert_array_equal(seen.edge_index, graph.edge_index)
        np.testing.assert_array_equal(seen.places, positions)
        return
    nodes = np.flatnonzero(far <= hops)
    np.testing.assert_array_equal(nodes[seen.places], positions)
    np.testing.assert_array_equal(seen.x[:-1], x[nodes])
    assert seen.x[-1].isnan().all()
    ends = seen.edge_index.numpy()
    outside = (ends == len(nodes)).any(axis=0)
    sources, targets = graph.edge_index
    kept = (np.minimum(far[sources], far[targets]) < hops) & (far[sources] <= hops)
    np.testing.assert_array_equal(nodes[ends[:, ~outside]], graph.edge_index[:, kept])
    rim = np.flatnonzero(far[nodes] == hops)
    assert set(map(tuple, ends[:, outside].T.tolist())) == {
        pair for r in rim.tolist() for pair in ((r, len(nodes)), (len(nodes), r))
    }


def test_many_nodes_see_the_whole_graph(small: ge.Graph) -> None:
    seen = surroundings_of(small, np.arange(small.num_nodes), 1)
    assert len(seen.x) == small.num_nodes
    assert not seen.x.isnan().any()


@pytest.mark.parametrize("limit", [surroundings._KEPT_BYTES, 0])
def test_tensors_of_a_graph_are_made_once_and_go_with_it(
    monkeypatch: pytest.MonkeyPatch, limit: int
) -> None:
    monkeypatch.setattr(surroundings, "_KEPT_BYTES", limit)
    graph, some = small_graph(), np.array([3])
    seen, name = whole_graph(graph, some), id(graph)
    assert (whole_graph(graph, some).x is seen.x) == (limit > 0)
    assert (name in surroundings._KEPT) == (limit > 0)
    del graph
    gc.collect()
    assert name not in surroundings._KEPT
