"""SciPy's sparse adjacencies in and out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import grapheraser as ge
from grapheraser.errors import GraphError
from tests.strategies import small_graph, with_names


@pytest.mark.parametrize("make", [sp.csr_array, sp.csr_matrix, sp.coo_array, sp.csc_matrix])
def test_an_adjacency_leads_back(make: Any) -> None:
    graph = with_names(small_graph())
    adjacency = make(graph.to_scipy())
    split: Any = {"train": graph.train_nodes, "test": graph.test_nodes}
    again = ge.Graph.from_scipy(
        adjacency, graph.x, graph.y, ids=graph.names, num_classes=graph.num_classes, **split
    )
    assert again == graph


def test_values_are_weights_unless_all_are_1() -> None:
    dense = np.array([[0, 2, 0], [2, 0, 1], [0, 1, 0]])
    graph = ge.Graph.from_scipy(sp.csr_array(dense), np.eye(3), [0, 1, 0])
    assert graph.edge_weight is not None
    assert graph.to_scipy().toarray().tolist() == dense.tolist()
    plain = ge.Graph.from_scipy(sp.csr_array(dense), np.eye(3), [0, 1, 0], weighted=False)
    assert plain.edge_weight is None
    assert plain.to_scipy().toarray().tolist() == (dense > 0).tolist()
    stored = sp.csr_array(([1.0, 0.0], ([0, 1], [1, 2])), shape=(3, 3))
    assert ge.Graph.from_scipy(stored).num_edges == 1  # a stored 0 is no edge


def test_rows_lead_to_columns() -> None:
    one = sp.csr_array(([1.0], ([2], [0])), shape=(3, 3))
    graph = ge.Graph.from_scipy(one, directed=True)
    assert graph.edge_index.tolist() == [[2], [0]]
    assert graph.to_scipy().toarray().tolist() == one.toarray().tolist()


def test_a_saved_adjacency_is_read(tmp_path: Path) -> None:
    graph = small_graph()
    sp.save_npz(tmp_path / "mine.npz", graph.to_scipy())
    again = ge.Graph.from_file(tmp_path / "mine.npz")
    assert (again.num_edges, again.num_features) == (graph.num_edges, 0)


def test_what_is_no_adjacency_is_refused() -> None:
    for matrix, message in (
        (np.eye(3), "a sparse matrix of SciPy"),
        (sp.csr_array((2, 3)), r"square \(found shape \[2, 3\]"),
    ):
        with pytest.raises(GraphError, match=message):
            ge.Graph.from_scipy(matrix)
    with pytest.raises(GraphError, match=r"every row of the adjacency: 3 \(found 2\)"):
        ge.Graph.from_scipy(sp.eye_array(3), ids=[1, 2])
