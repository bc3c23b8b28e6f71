"""Additions and corrections: where nodes go, what is retrained, and what a receipt says."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import grapheraser as ge
from grapheraser.errors import EmptyEnsembleError, GraphError, InputError, UnknownNodeError
from grapheraser.graph import GraphChange, Request
from tests.property.test_refusals import same_objects
from tests.strategies import small_graph, with_edge_values, with_names

MIXED = small_graph(4, split="mixed")


def fitted(graph: ge.Graph, **changes: Any) -> ge.GraphEraser:
    return ge.GraphEraser(**{"num_shards": 3, "epochs": 2, **changes}).fit(graph)


def rows(count: int, columns: int = 12) -> Any:
    return np.random.default_rng(count).integers(0, 3, size=(count, columns))


def test_one_batch_retrains_each_touched_shard_once(small: ge.Graph) -> None:
    eraser = fitted(small, partition="random")
    first, second = (eraser.partition_.members(shard) for shard in (0, 1))
    changes: list[GraphChange] = [
        ge.Nodes(first[:1]),
        ge.SetFeatures(first[1:2], rows(1)),
        ge.SetLabels(second[:2], [0, 1]),
    ]
    plan = eraser.plan(changes)
    assert not eraser.receipts_, "a plan does nothing"
    receipt = eraser.update(changes)
    assert receipt.retrained == plan.retrain == (0, 1)
    assert [shard.why for shard in plan.shards] == [
        f"1 node goes, 1 feature row is set; {len(first) - 1} nodes instead of {len(first)}",
        f"2 labels are set; {len(second)} nodes instead of {len(second)}",
    ]
    assert len(eraser.receipts_) == 1
    assert receipt.action == "update"
    assert receipt.counts == {
        **{"nodes": 1, "edges": 0, "features": 1, "labels": 2},
        **{"added_nodes": 0, "added_edges": 0, "set_features": 1, "set_labels": 2},
    }


def test_an_edge_between_shards_retrains_nothing(small: ge.Graph) -> None:
    eraser = fitted(small, partition="random")
    pair = [int(eraser.partition_.members(shard)[0]) for shard in (0, 1)]
    graph = eraser.graph_
    if graph.has_edges(np.array([pair]))[0]:
        eraser.unlearn(ge.Edges([pair]))
    receipt = eraser.update(ge.AddEdges([pair]))
    assert receipt.retrained == ()
    assert receipt.details.untrained == 1
    assert eraser.verify().identical


def test_labels_make_training_nodes_and_their_lack_context_nodes() -> None:
    eraser = fitted(MIXED)
    eraser.update(ge.AddNodes([1000, 1001], rows(2), [2, -1], [(1000, 1001)]))
    graph = eraser.graph_
    assert 1000 in graph.train_nodes
    assert 1001 in graph.context_nodes
    assert eraser.partition_.contains([1000, 1001]).all()
    named = int(MIXED.context_nodes[0])
    tested, checked = int(MIXED.test_nodes[0]), int(MIXED.validation_nodes[0])
    receipt = eraser.update(ge.SetLabels([named, tested, checked], [1, 1, 1]))
    assert named in eraser.graph_.train_nodes
    assert tested in eraser.graph_.test_nodes
    assert checked in eraser.graph_.validation_nodes
    assert eraser.graph_.labels([named, tested, checked]).tolist() == [1, 1, 1]
    assert receipt.details.untrained == 2
    eraser.update(ge.Labels([named]))
    assert named in eraser.graph_.context_nodes
    assert eraser.verify().identical


def test_without_context_an_unlabelled_node_joins_a_shard_with_its_label() -> None:
    eraser = fitted(MIXED, context="none")
    with pytest.warns(UserWarning, match="1 of 2 new nodes have no label: under context='none'"):
        receipt = eraser.update(ge.AddNodes([1000, 1001], rows(2), [2, -1]))
    assert eraser.partition_.contains([1000, 1001]).tolist() == [True, False]
    assert receipt.details.untrained == 1
    receipt = eraser.update(ge.SetLabels([1001], [0]))
    assert eraser.partition_.contains([1001]).all()
    assert receipt.retrained == tuple(eraser.partition_.shard_of([1001]).tolist())
    assert eraser.verify().identical
    eraser.update([ge.Labels([1001])])
    assert not eraser.partition_.contains([1001]).any()
    assert eraser.verify().identical


def test_insert_is_the_short_form(small: ge.Graph) -> None:
    near = small.ids[:3].tolist()
    short, long = fitted(small), fitted(small)
    one = short.insert(1000, rows(1)[0], 1, near)
    other = long.update(ge.AddNodes([1000], rows(1), [1], [(1000, node) for node in near]))
    assert short.graph_ == long.graph_
    assert (one.shards, one.counts) == (other.shards, other.counts)
    asked = [sorted((dict(p.about) for p in r.parts), key=str) for r in (one, other)]
    assert asked[0] == asked[1]
    assert (one.action, other.action) == ("insert", "update")


def test_insert_connects_both_ways_where_edges_have_directions() -> None:
    graph = with_edge_values(small_graph(), directed=True)
    eraser = fitted(graph)
    a, b = graph.ids[:2].tolist()
    eraser.insert(1000, rows(1)[0], 1, [a], edge_weight=[0.5])
    eraser.update(ge.AddNodes([1001], rows(1), [1], [(b, 1001)], edge_weight=[0.25]))
    ends = eraser.graph_.ids[eraser.graph_.edge_index].T.tolist()
    assert [a, 1000] in ends
    assert [1000, a] in ends
    assert [b, 1001] in ends
    assert [1001, b] not in ends
    assert eraser.verify().identical


def test_nodes_go_by_names_and_masks(small: ge.Graph) -> None:
    graph = with_names(small)
    names = graph.names_of(graph.ids)
    eraser = fitted(graph)
    a, b, c = names[:3]
    mask = np.arange(graph.num_nodes) == graph.num_nodes - 1
    eraser.update(
        [
            ge.AddNodes(["eve", "bob"], rows(2), [0, -1], [("eve", "bob"), ("eve", a)]),
            ge.SetLabels([b], [2]),
            ge.SetFeatures([c], rows(1)),
            ge.Nodes(mask),
        ]
    )
    after = eraser.graph_
    assert sorted(after.names_of(after.neighbours("eve"))) == sorted([a, "bob"])
    assert after.labels([b, "eve", "bob"]).tolist() == [2, 0, -1]
    assert not after.contains([names[-1]])[0]
    assert eraser.verify().identical
    assert eraser.predict_new(rows(1), [["eve", a]]).shape == (1,)
    with pytest.raises(GraphError, match=r"'eve'.* in the graph already"):
        eraser.update(ge.AddNodes(["eve", "bob"], rows(2)))


def test_a_receipt_after_many_additions_says_how_nodes_were_placed(small: ge.Graph) -> None:
    by_id, by_edges = fitted(small), fitted(small, partition="random")
    new = ge.AddNodes([1000, 1001], rows(2), [0, 1], [(1000, 1001), (1000, int(small.ids[0]))])
    assert by_id.update(new).statement == "exact"
    assert by_edges.update(new).exactness["partition_inputs"] == ["edges", "nodes"]


BAD: dict[str, Any] = {
    "unknown node": lambda g: [ge.SetFeatures([999], rows(1))],
    "class": lambda g: [ge.SetLabels(g.ids[:1], [3])],
    "taken": lambda g: [ge.AddNodes(g.ids[:1], rows(1))],
    "gone": lambda g: [ge.Nodes(g.ids[:1]), ge.SetLabels(g.ids[:1], [0])],
    "columns": lambda g: [ge.AddNodes([1000], rows(1, 3))],
    "weight": lambda g: [ge.AddEdges([g.ids[:2]], [1.0])],
    "deletion": lambda g: [ge.Nodes([999])],
    "no change": lambda g: ["nodes"],
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_change_fails_the_whole_batch(small: ge.Graph, case: str) -> None:
    eraser = fitted(small, num_shards=2, epochs=1)
    before = same_objects(eraser)
    good: list[GraphChange] = [ge.SetFeatures(small.ids[5:6], rows(1)), ge.Nodes(small.ids[-1:])]
    for batch in ([*BAD[case](small), *good], [*good, *BAD[case](small)]):
        with pytest.raises(InputError):
            eraser.update(batch)
        with pytest.raises(InputError):
            eraser.plan(batch)
    assert same_objects(eraser) == before


def test_negative_weights_are_refused_where_the_model_divides_by_their_sum() -> None:
    graph = with_edge_values(small_graph())
    eraser = fitted(graph)
    before = same_objects(eraser)
    with pytest.raises(GraphError, match="must not be negative"):
        eraser.update(ge.AddEdges([graph.ids[:2]], [-1.0]))
    assert same_objects(eraser) == before


def test_the_last_labels_may_go_where_others_come(small: ge.Graph) -> None:
    eraser = fitted(small, num_shards=1)
    before = same_objects(eraser)
    with pytest.raises(EmptyEnsembleError, match="the last 30 training nodes"):
        eraser.update([ge.Nodes(small.train_nodes), ge.AddNodes([1000], rows(1))])
    assert same_objects(eraser) == before
    eraser.update([ge.Nodes(small.train_nodes), ge.AddNodes([1000, 1001], rows(2), [0, 1])])
    assert eraser.graph_.train_nodes.tolist() == [1000, 1001]
    assert eraser.verify().identical


# -- what is not there ----------------------------------------------------------------------------


def test_skipped_ids_reach_the_caller_alone(small: ge.Graph) -> None:
    eraser = fitted(small)
    there = small.train_nodes[:4]
    request: list[Request] = [ge.Nodes([*there, 998, 999]), ge.Labels([997])]
    with pytest.raises(UnknownNodeError) as caught:
        eraser.unlearn(request)
    assert caught.value.ids == (997, 998, 999)
    plan = eraser.plan(request, missing="skip")
    receipt = eraser.unlearn(request, missing="skip")
    assert receipt.skipped == plan.removal.skipped == (ge.Nodes([998, 999]), ge.Labels([997]))
    (stored,) = eraser.receipts_
    assert stored == receipt
    assert stored.skipped == ()
    assert stored.counts["skipped"] == 3
    assert stored.counts["nodes"] == 4
    assert eraser.graph_ == small.without(ge.Nodes(there))
    assert eraser.verify().identical
    assert "skipped" not in eraser.unlearn(ge.Nodes(small.train_nodes[5:6])).counts


def test_changes_are_never_skipped(small: ge.Graph) -> None:
    eraser = fitted(small)
    with pytest.raises(InputError, match="'missing' of plan of changes"):
        eraser.plan([ge.SetLabels(small.ids[:1], [0]), ge.Nodes([999])], missing="skip")
