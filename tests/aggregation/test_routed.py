"""Routing: neighbours decide, and explanations add up."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import grapheraser as ge
from grapheraser.aggregation import AGGREGATORS, MEMBERS, Ensemble, RoutedAggregator
from grapheraser.aggregation.routing import hop_shares
from grapheraser.errors import ParameterError, UnknownNodeError
from tests.strategies import small_graph


def fitted(graph: ge.Graph, **options: object) -> tuple[ge.GraphEraser, Ensemble]:
    arguments = {"num_shards": 4, "epochs": 2, "partition": "random", **options}
    eraser = ge.GraphEraser(**arguments).fit(graph)  # type: ignore[arg-type]
    return eraser, eraser._state.ensemble


def test_shares_are_what_dense_matrices_give() -> None:
    graph = small_graph(4)
    _, ensemble = fitted(graph)
    n = graph.num_nodes
    A = sp.csr_array((np.ones(len(graph.indices)), graph.indices, graph.indptr), shape=(n, n))
    S = A.toarray() / np.maximum(graph.degree, 1)[:, None]
    I = np.zeros((n, 4))  # noqa: E741
    I[graph.positions(graph.train_nodes), ensemble.partition.labels] = 1
    back = np.diag(S @ S)[:, None] * I
    for found, walks in zip(
        hop_shares(ensemble, np.arange(n)), (S @ I, S @ S @ I - back), strict=True
    ):
        total = walks.sum(axis=1, keepdims=True)
        expected = np.divide(walks, total, out=np.zeros_like(walks), where=total > 1e-12)
        np.testing.assert_allclose(found, expected, atol=1e-12)


def test_a_node_without_neighbours_asks_all_shards_alike() -> None:
    graph = small_graph()
    _, ensemble = fitted(graph)
    isolated = np.flatnonzero(graph.degree == 0)
    assert len(isolated)
    for floor in (0.0, 0.005):
        weights = RoutedAggregator(floor=floor).weights(ensemble, isolated)
        np.testing.assert_allclose(weights, 0.25)


def test_own_shard_can_be_left_out() -> None:
    graph = small_graph()
    _, ensemble = fitted(graph)
    positions = graph.positions(graph.train_nodes)
    rows, own = np.arange(len(positions)), ensemble.partition.labels
    for shares in hop_shares(ensemble, positions, without_own=True):
        assert (shares[rows, own] == 0).all()


def test_a_negative_floor_is_refused() -> None:
    with pytest.raises(ParameterError, match="'floor' of RoutedAggregator"):
        RoutedAggregator(floor=-0.1)


@pytest.mark.parametrize("name", [*AGGREGATORS, "pooled"])
def test_explanations_add_up_to_the_prediction(name: str) -> None:
    graph, pooled = small_graph(6), name == "pooled"
    aggregation = "routed" if pooled else name
    eraser, _ = fitted(graph, aggregation=aggregation, global_expert=pooled, sample="all")
    for node in graph.ids[:6].tolist():
        explanation = eraser.aggregator_.explain(node)
        weights = [say.weight for say in explanation.members]
        assert explanation.node == node
        assert explanation.label == eraser.predict([node])[0]
        assert sum(weights) == pytest.approx(1)
        assert weights == sorted(weights, reverse=True)
        assert any(say.member in MEMBERS for say in explanation.members) == pooled
    with pytest.raises(UnknownNodeError):
        eraser.explain(10**6)
