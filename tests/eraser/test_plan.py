"""From a request to a plan, on a graph small enough to see."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import grapheraser as ge
from grapheraser.eraser.plan import Plan, plan_removal
from grapheraser.errors import EmptyEnsembleError
from grapheraser.graph import Request, coalesce
from grapheraser.nodes.task import NodeTask
from grapheraser.partition import Partition
from grapheraser.partition.halo import halo_key, task_graph
from tests.strategies import requests_for, small_graphs

#   0 - 1 - 2 | 3 - 4 - 5      shard 0: 0 1 2   shard 1: 3 4 5   test node: 6
#               6 hangs on 5 and on 0
PAIRS = [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (5, 6), (0, 6)]
GRAPH = ge.Graph.from_arrays(
    np.eye(7), np.array(PAIRS).T, np.array([0, 1, 0, 1, 0, 1, 0]), test=[6], each_edge_once=True
)
CUT = Partition(
    nodes=np.arange(6),
    labels=np.array([0, 0, 0, 1, 1, 1], dtype=np.int32),
    num_shards=2,
    method="given",
    capacity=3,
    inputs=frozenset({"nodes"}),
)


def plan(*requests: ge.Nodes | ge.Edges | ge.Features, halo: int | None = None) -> Plan:
    removal = coalesce(GRAPH, requests)
    NodeTask().check_removal(GRAPH, removal)
    return plan_removal(GRAPH, CUT, removal, halo)


def test_a_node_touches_its_shard_and_its_neighbours() -> None:
    found = plan(ge.Nodes([2]))
    assert found.retrain == (0,)
    assert found.emptied == ()
    assert found.touched.tolist() == [1, 3]
    (shard,) = found.shards
    assert shard.why == "1 node goes; 2 of 3 nodes stay"
    assert (shard.size_before, shard.size_after) == (3, 2)


def test_an_edge_inside_a_shard_retrains_it() -> None:
    found = plan(ge.Edges([(3, 4)]))
    assert found.retrain == (1,)
    assert found.cut_edges == 0
    assert found.touched.tolist() == [3, 4]


def test_an_edge_between_shards_retrains_nothing() -> None:
    found = plan(ge.Edges([(2, 3)]))
    assert found.retrain == ()
    assert found.cut_edges == 1
    assert found.touched.tolist() == [2, 3]


def test_an_edge_to_a_test_node_retrains_nothing() -> None:
    found = plan(ge.Edges([(5, 6)]))
    assert found.retrain == ()
    assert found.cut_edges == 1


def test_features_retrain_the_shard_of_their_node() -> None:
    found = plan(ge.Features([4]))
    assert found.retrain == (1,)
    assert found.touched.tolist() == [4]


def test_a_test_node_retrains_nothing() -> None:
    for request in (ge.Nodes([6]), ge.Features([6])):
        found = plan(request)
        assert found.retrain == ()
        assert found.untrained_nodes == 1
    assert plan(ge.Nodes([6])).touched.tolist() == [0, 5]


def test_a_batch_touches_each_shard_once() -> None:
    found = plan(ge.Nodes([0, 2]), ge.Edges([(0, 1), (3, 4)]), ge.Features([1]))
    assert found.retrain == (0, 1)
    first, second = found.shards
    assert first.why == "2 nodes and 1 feature row go; 1 of 3 nodes stay"
    assert (first.nodes, first.edges, first.features) == (2, 0, 1)
    assert (second.nodes, second.edges, second.features) == (0, 1, 0)


def test_an_emptied_shard_is_not_retrained() -> None:
    found = plan(ge.Nodes([0, 1, 2]))
    assert found.retrain == ()
    assert found.emptied == (0,)


def test_the_last_training_nodes_are_not_taken_silently() -> None:
    with pytest.raises(EmptyEnsembleError, match="last 6 training nodes") as caught:
        plan(ge.Nodes(range(6)))
    assert caught.value.hint


def test_a_plan_is_plain_json() -> None:
    text = json.dumps(plan(ge.Nodes([0]), ge.Edges([(2, 3)])).to_dict())
    assert json.loads(text)["retrain"] == [0]
    assert json.loads(text)["cut_edges"] == 1


def test_with_a_halo_a_node_touches_the_shards_that_see_it() -> None:
    found = plan(ge.Nodes([2]), halo=halo_key(0))
    assert found.retrain == (0, 1)
    first, second = found.shards
    assert first.why == "1 node goes; 2 of 3 nodes stay"
    assert second.why == "1 halo node goes; 3 of 3 nodes stay"
    assert (second.nodes, second.halo) == (0, 1)
    assert plan(ge.Nodes([1]), halo=halo_key(0)).retrain == (0,)


def test_with_a_halo_edges_and_features_touch_both_shards() -> None:
    for request in (ge.Edges([(2, 3)]), ge.Features([3])):
        found = plan(request, halo=halo_key(0))
        assert found.retrain == (0, 1)
        assert found.cut_edges == 0
    assert plan(ge.Edges([(0, 6)]), halo=halo_key(0)).cut_edges == 1


def test_an_emptied_shard_is_still_seen_by_others() -> None:
    found = plan(ge.Nodes([0, 1, 2]), halo=halo_key(0))
    assert (found.retrain, found.emptied) == ((1,), (0,))


@pytest.mark.parametrize("halo", [None, halo_key(0)], ids=["alone", "halo"])
@given(st.data())
def test_exactly_the_shards_whose_training_graph_changes_are_retrained(
    halo: int | None, data: st.DataObject
) -> None:
    context = data.draw(st.sampled_from(["none", "unlabelled", "all"]))
    graph = data.draw(small_graphs()).with_context(context)
    partition = ge.partition_graph(graph, "random", num_shards=3)
    request = data.draw(requests_for(graph))
    rest = graph.without(request)
    left = partition.restricted_to(rest.sharded_nodes)
    changed, emptied = set[int](), set[int]()
    for shard in range(3):
        now = task_graph(rest, left, shard, halo)
        if len(left.members(shard)) == 0:
            emptied.add(shard)
        elif now != task_graph(graph, partition, shard, halo):
            (changed if (now.y >= 0).any() else emptied).add(shard)
    if len(rest.train_nodes):
        found = plan_removal(graph, partition, coalesce(graph, request), halo)
        assert set(found.retrain) == changed
        assert set(found.emptied) == emptied


@given(st.data())
def test_touched_are_the_nodes_left_whose_own_data_changes(data: st.DataObject) -> None:
    graph = data.draw(small_graphs())
    partition = ge.partition_graph(graph, "random", num_shards=2)
    request = data.draw(requests_for(graph))
    rest = graph.without(request)
    rows, rows_left = graph.x.toarray(), rest.x.toarray()
    changed = [
        int(node)
        for node in rest.ids
        if not np.array_equal(graph.neighbours(node), rest.neighbours(node))
        or (rows[graph.positions([node])] != rows_left[rest.positions([node])]).any()
        or graph.labels([node])[0] != rest.labels([node])[0]
    ]
    if len(rest.train_nodes):
        found = plan_removal(graph, partition, coalesce(graph, request))
        assert found.touched.tolist() == changed


#   0 - 1 - 2 | 3 - 4 - 5      training nodes: 0 3   context: 1 2 4   validation: 5   test: 6
FEW = ge.Graph.from_arrays(
    np.eye(7),
    np.array(PAIRS).T,
    np.array([0, 1, 0, 1, 0, 1, 0]),
    train=[0, 3],
    validation=[5],
    test=[6],
    each_edge_once=True,
)


def few_plan(context: str, *requests: Request) -> Plan:
    graph = FEW.with_context(context)
    cut = Partition(
        nodes=graph.sharded_nodes,
        labels=(graph.sharded_nodes > 2).astype(np.int32),
        num_shards=2,
        method="given",
        capacity=7,
        inputs=frozenset({"nodes"}),
    )
    removal = coalesce(graph, requests)
    NodeTask().check_removal(graph, removal)
    return plan_removal(graph, cut, removal)


def test_a_context_node_touches_its_shard_like_any_other() -> None:
    found = few_plan("unlabelled", ge.Nodes([1]))
    assert (found.retrain, found.trained.tolist()) == ((0,), [1])
    assert (found.counts["context"], found.counts["untrained"]) == (1, 0)
    assert few_plan("unlabelled", ge.Edges([(3, 4)])).retrain == (1,)
    assert few_plan("unlabelled", ge.Features([4])).retrain == (1,)


@pytest.mark.parametrize(("context", "retrain"), [("none", ()), ("unlabelled", ()), ("all", (1,))])
def test_a_validation_node_is_in_a_shard_under_all_alone(
    context: str, retrain: tuple[int, ...]
) -> None:
    found = few_plan(context, ge.Nodes([5]))
    assert found.retrain == retrain
    assert found.counts["untrained"] == (0 if retrain else 1)


def test_a_shard_that_loses_its_last_label_is_left_without_a_model() -> None:
    for request in (ge.Nodes([0]), ge.Labels([0])):
        found = few_plan("unlabelled", request)
        assert (found.retrain, found.emptied, found.stale) == ((), (0,), (0,))
        assert found.shards[0].why.endswith("nodes stay, none of them with a label")
    found = few_plan("none", ge.Labels([0]))
    assert (found.retrain, found.emptied, found.stale) == ((), (0,), ())
    assert found.trained.tolist() == [0]


def test_a_label_touches_its_node() -> None:
    found = few_plan("unlabelled", ge.Labels([3]))
    assert found.touched.tolist() == [3]
    assert few_plan("none", ge.Labels([3])).touched.tolist() == [2, 3, 4]  # it leaves its shard
    assert found.counts["labels"] == 1
    assert found.to_dict()["shards"][0]["labels"] == 1
    assert few_plan("all", ge.Labels([5])).counts["untrained"] == 1  # it was never learned from


def test_the_last_label_can_not_be_forgotten() -> None:
    for requests in ([ge.Labels([0, 3])], [ge.Nodes([0]), ge.Labels([3])]):
        with pytest.raises(EmptyEnsembleError, match="the last 2 training nodes"):
            few_plan("all", *requests)
