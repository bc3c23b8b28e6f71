"""Routing: neighbours decide, and explanations add up."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.typing import NDArray

import grapheraser as ge
from grapheraser.aggregation import (
    AGGREGATORS,
    MEMBERS,
    Ensemble,
    PooledAggregator,
    RoutedAggregator,
    base,
)
from grapheraser.aggregation.routed import routes
from grapheraser.errors import ParameterError, UnknownNodeError
from grapheraser.seeding import derive
from tests.inference.oracle import keyed
from tests.strategies import small_graph


def fitted(graph: ge.Graph, **options: object) -> tuple[ge.GraphEraser, Ensemble]:
    arguments = {"num_shards": 4, "epochs": 2, "partition": "random", **options}
    eraser = ge.GraphEraser(**arguments).fit(graph)  # type: ignore[arg-type]
    return eraser, eraser._snapshot.state.ensemble


def dense_weights(ensemble: Ensemble, *, without_own: bool = False) -> NDArray[np.float64]:
    """What every shard weighs for every node, from dense matrices; zeros where nobody is near."""
    graph, n, k = ensemble.graph, ensemble.graph.num_nodes, ensemble.partition.num_shards
    A = sp.csr_array((np.ones(len(graph.indices)), graph.indices, graph.indptr), shape=(n, n))
    S = A.toarray() / np.maximum(graph.degree, 1)[:, None]
    I = np.zeros((n, k))  # noqa: E741
    I[graph.positions(graph.train_nodes), ensemble.partition.labels] = 1
    weights = np.zeros((n, k))
    for walks in (S @ I, S @ S @ I - np.diag(S @ S)[:, None] * I):
        kept = walks * (1 - I) if without_own else walks
        kept[kept < 1e-12] = 0.0
        total = kept.sum(axis=1, keepdims=True)
        weights += 0.5 * np.divide(kept, total, out=np.zeros_like(kept), where=total > 0)
    return weights


@pytest.mark.parametrize("without_own", [False, True])
@pytest.mark.parametrize("most", [1, 2, 3, 4, 9])
def test_the_shards_that_weigh_most_are_asked(most: int, without_own: bool) -> None:
    graph = small_graph(4)
    _, ensemble = fitted(graph)
    everything = np.arange(graph.num_nodes)
    asked, weights = routes(ensemble, ensemble.gather(everything), most, without_own=without_own)
    assert asked.shape == weights.shape == (graph.num_nodes, most)
    expected = dense_weights(ensemble, without_own=without_own)
    for node in everything[expected.sum(axis=1) > 0]:
        here = asked[node][asked[node] >= 0]
        assert len(here) == min(most, (expected[node] > 0).sum())
        assert here.tolist() == sorted(set(here.tolist()))
        rest = np.setdiff1d(np.arange(4), here)
        assert expected[node, here].min() >= expected[node, rest].max(initial=0.0) - 1e-12
        share = expected[node, here] / expected[node, here].sum()
        np.testing.assert_allclose(weights[node, : len(here)], share, atol=1e-12)
        assert (weights[node, len(here) :] == 0).all()


def test_equal_weights_go_to_the_smaller_ids() -> None:
    n = 13
    edges = np.stack([np.zeros(n - 1, dtype=int), np.arange(1, n)])
    graph = ge.Graph.from_arrays(np.eye(n), edges, np.arange(n) % 2, test=[0], each_edge_once=True)
    eraser = ge.GraphEraser(
        num_shards=6, epochs=1, aggregation="mean", partition=lambda graph, k, seed: graph.ids % k
    ).fit(graph)
    ensemble = eraser._snapshot.state.ensemble
    for floor in (0.0, 0.5):
        gathered = ensemble.gather(np.array([0]))
        asked, weights = routes(ensemble, gathered, 4, floor=floor)
        assert asked.tolist() == [[0, 1, 2, 3]]
        np.testing.assert_allclose(weights, 0.25)


def test_a_floor_fills_up_with_the_smallest_ids() -> None:
    graph = small_graph(4)
    _, ensemble = fitted(graph)
    everything, floor = np.arange(graph.num_nodes), 0.01
    asked, weights = routes(ensemble, ensemble.gather(everything), 3, floor=floor)
    near = dense_weights(ensemble)
    some = everything[near.sum(axis=1) > 0]
    fewer = [node for node in some if (near[node] > 0).sum() < 3]
    assert fewer
    for node in fewer:
        order = sorted(range(4), key=lambda shard: (-near[node, shard], shard))[:3]
        assert asked[node].tolist() == sorted(order)
        expected = near[node, sorted(order)] + floor
        np.testing.assert_allclose(weights[node], expected / expected.sum(), atol=1e-12)


def test_a_node_without_trained_neighbours_asks_hashed_shards_alike() -> None:
    graph = ge.Graph.from_arrays(np.eye(40), np.zeros((2, 0)), np.arange(40) % 2, test=range(20))
    ensemble = fitted(graph, num_shards=6, partition="hash", aggregation="mean")[1]
    asked, weights = routes(ensemble, ensemble.gather(np.arange(40)), 2)
    np.testing.assert_array_equal(weights, 0.5)
    key = derive(ensemble.seed, "routing")
    for node, shards in zip(graph.ids.tolist(), asked.tolist(), strict=True):
        own = keyed(key, node)
        hashes = {keyed(own, shard): shard for shard in ensemble.shard_ids}
        assert shards == sorted(hashes[value] for value in sorted(hashes)[:2])
    assert len({tuple(row) for row in asked.tolist()}) > 5
    every, _ = routes(ensemble, ensemble.gather(np.arange(40)), 50)
    assert (every[:, : len(ensemble.shards)] == ensemble.shard_ids).all()
    others, _ = routes(ensemble, ensemble.gather(np.arange(20, 40)), 3, without_own=True)
    own_shards = ensemble.partition.labels
    assert (others != own_shards[:, None]).all()
    assert (others >= 0).all()


def test_a_node_hears_the_shards_that_it_asks() -> None:
    graph = small_graph(4)
    _, ensemble = fitted(graph)
    every = np.arange(graph.num_nodes)
    rule = RoutedAggregator(shards_asked=2)
    found, _ = rule.answers(ensemble, every)
    posteriors = ensemble.posteriors(every)
    expected = np.zeros((graph.num_nodes, graph.num_classes))
    for slot in range(2):
        shards = found.asked[:, slot]
        expected += found.weights[:, [slot]] * posteriors[shards, every] * (shards >= 0)[:, None]
    np.testing.assert_allclose(rule.predict_proba(ensemble, every), expected, atol=1e-6)


def test_of_a_hub_few_neighbours_count_unless_there_is_one_shard(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    graph = small_graph(4, ties=12)
    rule, every = RoutedAggregator(), np.arange(graph.num_nodes)
    several, single = fitted(graph)[1], fitted(graph, num_shards=1)[1]
    before = [rule.predict_proba(ensemble, every) for ensemble in (several, single)]
    monkeypatch.setattr(base, "MAX_NEIGHBOURS", 3)
    assert several.gather(every).degree.max() == 3
    after = [rule.predict_proba(ensemble, every) for ensemble in (several, single)]
    assert not np.array_equal(before[0], after[0])
    assert np.array_equal(before[1], after[1])


@pytest.mark.parametrize("asked", [0, -1, 1.5, "8", True])
def test_anything_but_a_positive_number_of_shards_is_refused(asked: Any) -> None:
    for refused in (RoutedAggregator, lambda **given: PooledAggregator(MEMBERS, **given)):
        with pytest.raises(ParameterError, match="'shards_asked' of"):
            refused(shards_asked=asked)
    with pytest.raises(ParameterError, match="'shards_asked' of GraphEraser"):
        fitted(small_graph(), shards_asked=asked)


@pytest.mark.parametrize("options", [{"aggregation": "mean"}, {"model": "closed-form"}])
def test_where_nobody_is_routed_the_number_is_refused(options: dict[str, str]) -> None:
    options = {"partition": "hash", **options}
    with pytest.raises(ParameterError, match="'shards_asked' of GraphEraser"):
        fitted(small_graph(), shards_asked=3, **options)
    with pytest.raises(ParameterError, match="taken as it is"):
        fitted(small_graph(), shards_asked=3, aggregation=RoutedAggregator())


@pytest.mark.parametrize("global_expert", [False, True])
def test_the_number_of_shards_asked_is_part_of_the_configuration(
    global_expert: bool, tmp_path: Path
) -> None:
    graph = small_graph(4)
    eraser, _ = fitted(graph, shards_asked=2, global_expert=global_expert)
    assert len([s for s in eraser.explain(graph.ids[0]).members if "shard" in s.member]) <= 2
    eraser.save(tmp_path / "run")
    back = ge.GraphEraser.load(tmp_path / "run")
    assert back.get_params()["shards_asked"] == 2
    posteriors = eraser.predict_proba(graph.ids)
    assert back.predict_proba(graph.ids).tobytes() == posteriors.tobytes()
    back.unlearn(ge.Nodes(graph.train_nodes[:2]))
    assert back.verify().identical


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
