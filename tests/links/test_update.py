"""Additions and corrections of a link run: what is allowed, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import grapheraser as ge
from grapheraser.errors import (
    EmptyEnsembleError,
    GraphError,
    InputError,
    NothingToForgetError,
    UnknownNodeError,
)
from tests.links.graphs import bipartite_graph
from tests.strategies import small_graph


def row(count: int = 1, columns: int = 3) -> Any:
    return np.eye(count, columns)


def test_one_batch_adds_corrects_and_forgets() -> None:
    graph = small_graph()
    links = ge.LinkEraser().fit(graph)
    a, b, c = graph.ids[:3].tolist()
    receipt = links.update(
        [
            ge.AddNodes([1000, 1001], row(2, 12), edges=[(1000, a), (1000, 1001)]),
            ge.SetFeatures([b], row(1, 12)),
            ge.Nodes([c]),
        ]
    )
    assert receipt.counts["added_nodes"] == 2
    assert links.graph_.neighbours(1000).tolist() == [a, 1001]
    assert not links.graph_.contains([c])[0]
    fresh = ge.LinkEraser().fit(links.graph_)
    pairs = [(a, 1001), (b, 1000)]
    assert links.predict_proba(pairs).tobytes() == fresh.predict_proba(pairs).tobytes()
    assert links.verify().identical


@pytest.mark.gnn
def test_a_plan_names_the_encoders_that_a_change_retrains() -> None:
    graph = small_graph()
    links = ge.LinkEraser("both", num_shards=3, epochs=1, width=4).fit(graph)
    change = ge.SetFeatures(graph.ids[:1], row(1, 12))
    plan = links.plan(change)
    assert plan.retrain == tuple(links.partition_.shard_of(graph.ids[:1]).tolist())
    assert links.update(change).retrained == plan.retrain
    assert links.verify().identical


def test_the_sides_of_new_nodes_are_told_by_ids_or_labels() -> None:
    graph, second = bipartite_graph()
    by_id = ge.LinkEraser(sides=second).fit(graph)
    by_id.update(ge.AddNodes([second - 1, 9000], row(2), edges=[(second - 1, 9000)]))
    assert by_id.graph_.labels([second - 1, 9000]).tolist() == [0, 1]
    by_label = ge.LinkEraser(sides="labels").fit(graph)
    by_label.update(ge.AddNodes([second - 1, 9000], row(2), [1, 0], [(second - 1, 9000)]))
    assert by_label.graph_.labels([second - 1, 9000]).tolist() == [1, 0]
    assert by_id.verify().identical
    assert by_label.verify().identical


def bad() -> dict[str, tuple[Any, type[Exception], str]]:
    _, second = bipartite_graph()
    return {
        "labels to set": (ge.SetLabels([0], [1]), NothingToForgetError, "keeps no labels"),
        "labels to forget": (ge.Labels([0]), NothingToForgetError, "keeps no labels"),
        "one side": (ge.AddEdges([(0, 1)]), GraphError, "must join both sides"),
        "one side, new": (
            ge.AddNodes([second - 1], row(), edges=[(second - 1, 0)]),
            GraphError,
            "must join both sides",
        ),
        "a label": (ge.AddNodes([second - 1], row(), [0]), GraphError, "has no part in a run"),
        "a weight": (ge.AddEdges([(0, second)], [1.0]), GraphError, "have no 'edge_weight'"),
        "an unknown node": (ge.AddEdges([(0, 10**6)]), UnknownNodeError, "node 1000000"),
    }


@pytest.mark.parametrize("case", bad())
def test_bad_changes_are_refused_and_change_nothing(case: str) -> None:
    graph, second = bipartite_graph()
    links = ge.LinkEraser(sides=second).fit(graph)
    before = links._snapshot
    change, error, message = bad()[case]
    good = ge.SetFeatures([0], row())
    for call in (links.update, links.plan):
        with pytest.raises(error, match=message):
            call([good, change])
    assert links._snapshot is before


def test_where_labels_tell_the_sides_every_new_node_needs_one() -> None:
    graph, second = bipartite_graph()
    links = ge.LinkEraser(sides="labels").fit(graph)
    with pytest.raises(GraphError, match="must tell the side of each new node"):
        links.update(ge.AddNodes([second - 1], row()))


def test_the_last_edges_may_go_where_others_come() -> None:
    graph = small_graph()
    links = ge.LinkEraser().fit(graph)
    with pytest.raises(EmptyEnsembleError, match="the last 72 edges"):
        links.update([ge.Edges(graph.edges), ge.SetFeatures(graph.ids[:1], row(1, 12))])
    links.update([ge.Edges(graph.edges), ge.AddEdges(graph.ids[:6].reshape(-1, 2))])
    assert links.graph_.num_edges == 3


def test_what_is_gone_can_be_skipped() -> None:
    graph = small_graph()
    links = ge.LinkEraser().fit(graph)
    edge, other = graph.edges[:2].tolist()
    links.unlearn(ge.Edges([edge]))
    with pytest.raises(InputError, match="there is no edge"):
        links.unlearn([ge.Edges([edge, other]), ge.Nodes(graph.ids[-1:])])
    receipt = links.unlearn([ge.Edges([edge, other])], missing="skip")
    assert receipt.skipped == (ge.Edges([edge]),)
    assert links.verify().identical
