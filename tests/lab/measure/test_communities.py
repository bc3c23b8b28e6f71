"""Communities of classical label propagation."""

from __future__ import annotations

import numpy as np
import pytest

import grapheraser as ge
from grapheraser.graph import Graph
from grapheraser_lab.measure.inputs import communities


@pytest.fixture(scope="module")
def graph(tiny: str) -> Graph:
    return ge.load_dataset(tiny)


def test_communities_end_where_everyone_agrees_with_most_neighbours(graph: Graph) -> None:
    labels = communities(graph, 0)
    sizes = np.bincount(labels)
    assert (np.diff(sizes) <= 0).all()
    for node in range(graph.num_nodes):
        around = labels[graph.indices[graph.indptr[node] : graph.indptr[node + 1]]]
        if len(around):
            counts = np.bincount(around, minlength=len(sizes))
            assert counts[labels[node]] == counts.max()


def test_isolated_nodes_are_communities_of_their_own() -> None:
    lonely = Graph.from_arrays(np.eye(4), np.array([[0], [1]]), np.zeros(4, dtype=int))
    assert sorted(np.bincount(communities(lonely, 0)).tolist()) == [1, 1, 2]
