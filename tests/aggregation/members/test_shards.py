"""Shards as a member: what routing says, and held out without a node's own shard."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import grapheraser as ge
from grapheraser.aggregation import Ensemble, RoutedAggregator
from grapheraser.aggregation.members.shards import RoutedShards
from grapheraser.aggregation.routed import routes
from grapheraser.aggregation.sample.membership import sampled_nodes
from grapheraser.aggregation.sample.view import thinning
from tests.inference.oracle import bounded_edges
from tests.strategies import TwoHops, small_graph

LEAST = 1e-6


def fitted(num_shards: int = 4, **options: object) -> Ensemble:
    arguments = {"num_shards": num_shards, "epochs": 3, "partition": "random", **options}
    eraser = ge.GraphEraser(aggregation="mean", **arguments).fit(small_graph(4))  # type: ignore[arg-type]
    return eraser._snapshot.state.ensemble


def test_evidence_is_the_logarithm_of_the_routed_posterior() -> None:
    ensemble = fitted()
    every = np.arange(ensemble.graph.num_nodes)
    found = RoutedShards().fit(ensemble, ensemble.graph.train_nodes).evidence(ensemble, every)
    routed = RoutedAggregator(floor=0.0).predict_proba(ensemble, every)
    np.testing.assert_allclose(np.exp(found[:, 0]), np.maximum(routed, LEAST), rtol=1e-12)


def view_of(ensemble: Ensemble) -> Ensemble:
    """The ensemble on a graph in which only the neighbours that count are left."""
    graph = ensemble.graph
    sources, targets = bounded_edges(graph, *thinning(ensemble.seed))
    indptr = np.searchsorted(targets, np.arange(graph.num_nodes + 1)).astype(np.int64)
    return replace(
        ensemble, graph=graph.with_fields(indptr=indptr, indices=sources.astype(np.int32))
    )


@pytest.mark.parametrize("asked", [8, 2, 1])
@pytest.mark.parametrize("model", ["gcn", TwoHops], ids=["gcn", "own module"])
def test_a_sampled_node_is_judged_by_the_other_shards(model: object, asked: int) -> None:
    ensemble = fitted(model=model)
    graph, k = ensemble.graph, 4
    sample = graph.train_nodes
    rule = RoutedShards(RoutedAggregator(floor=0.0, shards_asked=asked))
    found = rule.fit(ensemble, sample).held_out(ensemble, sample)
    view = view_of(ensemble) if model == "gcn" else ensemble
    posteriors = view.posteriors(graph.positions(sample)).astype(np.float64)
    shard = dict(zip(ensemble.partition.nodes.tolist(), ensemble.partition.labels, strict=True))
    for row, node in enumerate(sample.tolist()):
        walks = np.zeros((2, k))
        near = graph.neighbours(node).tolist()
        for other in near:
            if other in shard:
                walks[0, shard[other]] += 1 / len(near)
            ends = graph.neighbours(other).tolist()
            for end in ends:
                if end in shard and end != node:
                    walks[1, shard[end]] += 1 / len(near) / len(ends)
        walks[:, shard[node]] = 0
        weights = sum(walk / walk.sum() for walk in walks if walk.sum() > 0)
        if np.ndim(weights) == 0:  # shards by hash: see tests of routing
            heard = routes(
                ensemble, ensemble.gather(graph.positions([node])), asked, without_own=True
            )
            weights = np.isin(np.arange(k), heard.asked[0]).astype(float)
        weights = np.round(np.asarray(weights), 12)
        heaviest = sorted(range(k), key=lambda s, w=weights: (-w[s], s))[:asked]  # type: ignore[misc]
        weights = np.where(np.isin(np.arange(k), heaviest), weights, 0.0)
        weights = weights / np.sum(weights)
        expected = np.log(np.maximum(weights @ posteriors[:, row], LEAST))
        np.testing.assert_allclose(found[row, 0], expected, rtol=1e-9, atol=1e-9)


def test_a_single_shard_has_nobody_else_to_ask() -> None:
    ensemble = fitted(1)
    sample = ensemble.graph.train_nodes
    member = RoutedShards().fit(ensemble, sample)
    found = member.held_out(ensemble, sample)
    expected = np.log(np.maximum(member.sampled.values[:, 0].astype(np.float64), LEAST))
    assert (member.sampled.routes.asked[:, 0] == 0).all()
    np.testing.assert_allclose(found[:, 0], expected, rtol=1e-9, atol=1e-12)


def test_what_is_kept_comes_back() -> None:
    ensemble = fitted()
    sample = sampled_nodes(ensemble.graph, (0.5, None), 0)
    member = RoutedShards().fit(ensemble, sample)
    back = RoutedShards().restore(member.tensors)
    assert back.names == member.names == ("shards",)
    assert back.held_out(ensemble, sample).tobytes() == member.held_out(ensemble, sample).tobytes()


def test_a_row_has_the_same_bits_whatever_else_is_asked_for() -> None:
    ensemble = fitted()
    member = RoutedShards().fit(ensemble, ensemble.graph.train_nodes)
    every = np.arange(ensemble.graph.num_nodes)
    everything = member.evidence(ensemble, every)
    for row in every:
        assert member.evidence(ensemble, np.array([row])).tobytes() == everything[[row]].tobytes()
