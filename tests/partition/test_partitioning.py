"""`partition_graph`: arguments, errors, and what a `Partition` reports."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from grapheraser.errors import ParameterError, PartitionError, UnknownNodeError
from grapheraser.graph import Edges, Graph, Nodes
from grapheraser.partition import (
    PARTITIONERS,
    BekmPartitioner,
    Partition,
    measure,
    partition_graph,
    shard_capacity,
)
from grapheraser.partition.quality import measure_labels
from tests.strategies import small_graph


def _graph() -> Graph:
    pairs = np.array([(0, 1), (1, 2), (2, 0), (3, 4), (4, 5), (5, 3), (2, 3), (6, 0)]).T
    return Graph.from_arrays(np.eye(8), pairs, np.array([0, 0, 0, 1, 1, 1, 0, 1]), test=[6])


def test_the_names_of_the_design_are_registered() -> None:
    names = "random hash lpa blpa ekm bekm blpa-lp bekm-hungarian metis kaminpar"
    assert set(names.split()) <= set(PARTITIONERS)
    for name in names.split():
        assert PARTITIONERS.get(name)().name == name


@pytest.mark.parametrize("k", [0, -1, 8, 2.0, True, "3", None])
def test_a_bad_number_of_shards_is_refused(k: Any) -> None:
    with pytest.raises(ParameterError, match="'num_shards' of partition_graph must be an int"):
        partition_graph(_graph(), "random", num_shards=k)


@pytest.mark.parametrize("method", [BekmPartitioner, int])
def test_a_class_is_no_method_but_its_instance_is(method: Any) -> None:
    with pytest.raises(ParameterError, match="an instance, not a class") as caught:
        partition_graph(_graph(), method, num_shards=2)
    assert f"{method.__name__}(" in str(caught.value.hint)
    assert partition_graph(_graph(), BekmPartitioner(), num_shards=2).num_shards == 2


@pytest.mark.parametrize("seed", ["a", None, 1.5, True])
def test_a_seed_is_an_int(seed: Any) -> None:
    with pytest.raises(ParameterError, match="'seed' of partition_graph"):
        partition_graph(_graph(), "random", num_shards=2, seed=seed)


@pytest.mark.parametrize("graph", [None, "cora", np.zeros((3, 3))])
def test_only_a_graph_can_be_partitioned(graph: Any) -> None:
    with pytest.raises(ParameterError, match="must be a Graph") as caught:
        partition_graph(graph, "random", num_shards=2)
    assert "from_pyg" in str(caught.value.hint)


def test_more_shards_than_nodes_names_the_range() -> None:
    with pytest.raises(ParameterError, match=r"an int in \[1, 7\]\. Got 8\."):
        partition_graph(_graph(), "blpa", num_shards=8)


def test_a_delta_that_can_not_hold_all_nodes_is_refused_with_the_least_that_can() -> None:
    with pytest.raises(PartitionError, match="3 shards of at most 2 nodes can't hold 7 nodes") as e:
        partition_graph(_graph(), "blpa", num_shards=3, delta=2)
    assert e.value.hint == "delta must be at least 3."


@pytest.mark.parametrize(
    "arguments",
    [
        *({"gamma": gamma} for gamma in (-0.1, 1.5, float("nan"), "a", None)),
        *({"delta": delta} for delta in (2.5, "a")),
    ],
)
def test_a_bad_capacity_is_refused(arguments: dict[str, Any]) -> None:
    with pytest.raises(ParameterError):
        partition_graph(_graph(), "blpa", num_shards=2, **arguments)


def test_gamma_and_delta_together_are_refused() -> None:
    with pytest.raises(ParameterError, match="not both"):
        partition_graph(_graph(), "blpa", num_shards=2, gamma=0.1, delta=7)


def test_gamma_runs_from_strict_balance_to_none() -> None:
    assert shard_capacity(2166, 20) == 109
    assert shard_capacity(2166, 20, gamma=1.0) == 2166
    assert shard_capacity(100, 7, gamma=0.5) == 15 + 42
    assert shard_capacity(100, 7, delta=33) == 33


def test_an_unknown_method_lists_the_choices() -> None:
    with pytest.raises(ParameterError, match="Choose from: random, hash"):
        partition_graph(_graph(), "louvain", num_shards=2)


def test_test_nodes_are_in_no_shard() -> None:
    partition = partition_graph(_graph(), "blpa", num_shards=2)
    assert 6 not in partition.nodes
    with pytest.raises(UnknownNodeError):
        partition.shard_of([6])


def test_the_figures_of_a_known_partition() -> None:
    graph = _graph().training_graph
    labels = np.array([0, 0, 0, 1, 1, 1, 1])
    quality = measure_labels(graph, labels, 2)
    assert (quality.edge_cut, quality.edges) == (1, 7)
    assert quality.edges_kept == pytest.approx(6 / 7)
    assert quality.modularity == pytest.approx(6 / 7 - 2 * 0.25)
    np.testing.assert_allclose(quality.kept, [1, 1, 2 / 3, 2 / 3, 1, 1, np.nan])
    assert quality.neighbours_kept == pytest.approx((4 + 4 / 3) / 6)
    np.testing.assert_allclose(quality.label_entropy, [0, 0])


@pytest.mark.parametrize("method", ["random", "hash", "blpa", "bekm", "metis"])
def test_a_report_is_json_and_says_where_the_partition_came_from(method: str) -> None:
    partition = partition_graph(_graph(), method, num_shards=2, seed=3)
    report = json.loads(json.dumps(partition.report(), allow_nan=False))
    assert report["method"] == method
    assert sum(report["sizes"]) == report["nodes"] == 7
    assert report["data_free"] == (method == "hash")
    assert report["iterations"] == len(report["moved"])
    assert report["quality"]["edge_cut"] == partition.edge_cut


def test_removing_nodes_keeps_the_shards_of_the_others() -> None:
    graph = _graph()
    partition = partition_graph(graph, "metis", num_shards=2)
    rest = graph.without(Nodes([1]))
    smaller = partition.restricted_to(rest.train_nodes)
    np.testing.assert_array_equal(smaller.labels, partition.shard_of(rest.train_nodes))
    assert smaller.report()["quality"] is None
    with pytest.raises(PartitionError):
        _ = smaller.edge_cut
    assert measure(rest, smaller).edges == 5


def test_a_partition_of_the_same_nodes_may_have_lost_edges() -> None:
    graph = _graph()
    partition = partition_graph(graph, "hash", num_shards=2)
    edges = graph.training_graph.edges
    labels = partition.shard_of(edges.ravel()).reshape(-1, 2)
    u, v = edges[labels[:, 0] != labels[:, 1]][0].tolist()
    rest = graph.without(Edges([(u, v)]))
    kept = partition.restricted_to(rest.train_nodes)
    np.testing.assert_array_equal(kept.labels, partition.labels)
    assert kept.quality is None
    with pytest.raises(PartitionError, match="has not been measured"):
        _ = kept.edge_cut
    assert measure(rest, kept).edge_cut == partition.edge_cut - 1


def test_the_input_is_not_changed() -> None:
    graph = _graph()
    before = graph.fingerprint
    for method in PARTITIONERS:
        if method != "kaminpar":
            partition_graph(graph, method, num_shards=3)
    assert graph.with_fields().fingerprint == before, "worked out from its arrays"


def test_hash_has_empty_shards_where_nodes_are_few_and_others_refuse_them() -> None:
    graph = small_graph()
    few = graph.subgraph(graph.train_nodes[:3])
    partition = partition_graph(few, "hash", num_shards=20, seed=1)
    assert partition.num_shards == len(partition.sizes) == 20
    assert partition.sizes.sum() == 3
    whole = partition_graph(graph, "hash", num_shards=20, seed=1)
    assert np.array_equal(partition.labels, whole.shard_of(few.ids))
    with pytest.raises(ParameterError, match=r"in \[1, 3\]\. Got 20"):
        partition_graph(few, "random", num_shards=20)


@pytest.mark.parametrize("asked", [False, True])
def test_members_are_the_same_whether_somebody_asked_before_a_change(asked: bool) -> None:
    graph = small_graph()
    part = partition_graph(graph, "hash", num_shards=3)
    held = {shard: part.nodes[part.labels == shard] for shard in range(3)}
    made = Partition(part.nodes, part.labels, 3, "hash", part.capacity, frozenset())
    if asked:
        assert made.members(0).tolist() == held[0].tolist()
    gone = part.nodes[[0, 3]]
    rest = made.without(gone)
    for shard in range(3):
        left = np.setdiff1d(held[shard], gone).tolist()
        assert rest.members(shard).tolist() == left
        assert rest.sizes[shard] == len(left)
        assert made.members(shard).tolist() == held[shard].tolist()
    shards = made.shard_of(gone)
    back = rest.with_nodes(gone, shards, inputs=frozenset())
    assert [back.members(s).tolist() for s in range(3)] == [held[s].tolist() for s in range(3)]
