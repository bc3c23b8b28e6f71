"""Edges weigh what the declarations say, and too many of them are refused."""

from __future__ import annotations

import numpy as np
import pytest

from grapheraser.engines.shared.adjacency import LARGEST_INDEX, adjacency_of, check_entries
from grapheraser.errors import ParameterError
from grapheraser.graph import Graph
from grapheraser.models import declaration_of
from tests.engines.variants import VARIANTS
from tests.strategies import small_graph, with_edge_values


@pytest.mark.parametrize("name", VARIANTS)
def test_weights_equal_those_of_dense_matrices(name: str) -> None:
    rng = np.random.default_rng(0)
    n, spec, declared = 12, VARIANTS[name], declaration_of(VARIANTS[name].kind)
    edges = rng.integers(0, n - 2, size=(2, 20))
    edges = edges[:, edges[0] != edges[1]]
    graph = Graph.from_arrays(np.eye(n), edges, np.zeros(n, dtype=int), num_classes=2)
    dense = np.zeros((n, n))
    dense[tuple(graph.edge_index)] = 1
    loops = np.eye(n) if declared.self_loops(spec) else np.zeros((n, n))
    neighbours, dense = np.maximum(dense.sum(axis=1), 1), dense + loops
    degree = np.maximum(dense.sum(axis=1), 1)
    weights = {
        "normalised": dense / np.sqrt(degree)[:, None] / np.sqrt(degree),
        "mean": (dense - loops) / neighbours[:, None] + loops,
        "sum": dense,
    }[declared.weighing(spec)]

    found = adjacency_of(spec, graph, np.float64)
    rows = np.repeat(np.arange(n), np.diff(found.indptr))
    np.testing.assert_allclose(found.forward, weights[rows, found.indices], rtol=1e-12)
    np.testing.assert_allclose(found.backward, weights[found.indices, rows], rtol=1e-12)
    assert len(rows) == np.count_nonzero(dense)
    np.testing.assert_array_equal(rows[found.reverse], found.indices)
    np.testing.assert_array_equal(found.indices[found.reverse], rows)


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", [name for name in VARIANTS if name.startswith("gcn")])
def test_weights_and_directions_equal_those_of_dense_matrices(
    name: str, weighted: bool, directed: bool
) -> None:
    spec = VARIANTS[name]
    graph = with_edge_values(small_graph(), weighted=weighted, directed=directed)
    n = graph.num_nodes
    dense = np.zeros((n, n))
    sources, targets = graph.edge_index
    dense[targets, sources] = 1.0 if graph.edge_weight is None else graph.edge_weight
    dense += np.eye(n) if spec.self_loops else 0.0
    degree = dense.sum(axis=1)
    factor = np.array([1 / np.sqrt(d) if d > 0 else 0.0 for d in degree])
    weights = factor[:, None] * dense * factor

    found = adjacency_of(spec, graph, np.float64)
    rows = np.repeat(np.arange(n), np.diff(found.indptr))
    forward, backward = np.zeros((n, n)), np.zeros((n, n))
    forward[rows, found.indices], backward[rows, found.indices] = found.forward, found.backward
    np.testing.assert_allclose(forward, weights, rtol=1e-12)
    np.testing.assert_allclose(backward, weights.T, rtol=1e-12)


def test_more_entries_than_32_bits_can_name_are_refused() -> None:
    check_entries(LARGEST_INDEX)
    with pytest.raises(ParameterError, match=r"at most 2147483647 .* Got 2147483648"):
        check_entries(LARGEST_INDEX + 1)
