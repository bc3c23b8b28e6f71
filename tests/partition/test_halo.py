"""Task graphs against dictionaries, and the halo edges that lead to a node."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import grapheraser as ge
from grapheraser.graph import TRAIN, UNLABELLED
from grapheraser.kernels.hashing import paired
from grapheraser.partition import Partition
from grapheraser.partition.halo import (
    MAX_CHOSEN,
    halo_edges,
    halo_edges_to,
    halo_key,
    task_graph,
)
from tests.strategies import small_graphs


def chosen(graph: ge.Graph, partition: Partition, node: int, key: int) -> set[int]:
    """The neighbours in other shards that a member sees, by the letter."""
    home = dict(zip(partition.nodes.tolist(), partition.labels.tolist(), strict=True))
    outside = [v for v in graph.neighbours(node).tolist() if home.get(v, home[node]) != home[node]]
    own = np.uint64(paired(np.uint64(key), np.uint64(node)))
    return set(sorted(outside, key=lambda v: int(paired(own, np.uint64(v))))[:MAX_CHOSEN])


def edges_of(graph: ge.Graph) -> set[frozenset[int]]:
    return {frozenset(edge) for edge in graph.edges.tolist()}


@given(st.data())
def test_a_task_graph_is_the_members_and_what_they_see(data: st.DataObject) -> None:
    graph = data.draw(small_graphs(max_nodes=60))
    partition = ge.partition_graph(graph, "random", num_shards=data.draw(st.integers(1, 4)))
    key = halo_key(data.draw(st.integers(0, 9)))
    for shard in partition.shard_ids.tolist():
        members = partition.members(shard).tolist()
        seen = {member: chosen(graph, partition, member, key) for member in members}
        found = task_graph(graph, partition, shard, key)
        halo = set[int]().union(*seen.values())
        assert found.ids.tolist() == sorted({*members, *halo})
        expected = edges_of(graph.subgraph(members))
        expected |= {frozenset((member, v)) for member in members for v in seen[member]}
        assert edges_of(found) == expected
        rows = graph.positions(found.ids)
        own = np.isin(found.ids, members) & (graph.role[rows] == TRAIN)
        np.testing.assert_array_equal(found.train_nodes, found.ids[own])
        np.testing.assert_array_equal(found.y, np.where(own, graph.y[rows], UNLABELLED))
        np.testing.assert_array_equal(found.x.toarray(), graph.x.toarray()[rows])
        assert (found.indptr.dtype.name, found.indices.dtype.name) == ("int64", "int32")


@given(small_graphs())
def test_without_a_key_it_is_the_members_alone(graph: ge.Graph) -> None:
    partition = ge.partition_graph(graph, "random", num_shards=3)
    for shard in range(3):
        members = graph.subgraph(partition.members(shard))
        y = np.where(members.role == TRAIN, members.y, UNLABELLED)
        assert task_graph(graph, partition, shard) == members.with_fields(y=y)


@given(small_graphs(), st.integers(0, 3))
def test_edges_to_a_node_are_those_that_end_there(graph: ge.Graph, seed: int) -> None:
    partition = ge.partition_graph(graph, "random", num_shards=3)
    key = halo_key(seed)
    every = halo_edges(graph, partition, graph.sharded_nodes, key)
    nodes = graph.ids[::3]
    wanted = np.isin(every[:, 1], nodes)
    np.testing.assert_array_equal(halo_edges_to(graph, partition, nodes, key), every[wanted])


def star(leaves: int) -> tuple[ge.Graph, Partition]:
    """A hub alone in shard 0, and its leaves in shard 1."""
    pairs = np.stack([np.zeros(leaves, dtype=int), np.arange(1, leaves + 1)])
    n = leaves + 1
    graph = ge.Graph.from_arrays(np.eye(n), pairs, np.arange(n) % 2, each_edge_once=True)
    labels = np.minimum(np.arange(n), 1).astype(np.int32)
    return graph, Partition(np.arange(n), labels, 2, "given", n, frozenset())


@pytest.mark.parametrize("leaves", [MAX_CHOSEN - 1, MAX_CHOSEN, MAX_CHOSEN + 1, 100])
def test_a_hub_sees_a_bounded_number_and_is_seen_by_all(leaves: int) -> None:
    graph, partition = star(leaves)
    key = halo_key(0)
    assert task_graph(graph, partition, 0, key).num_nodes == 1 + min(leaves, MAX_CHOSEN)
    assert task_graph(graph, partition, 1, key).num_edges == leaves
    assert len(halo_edges_to(graph, partition, np.array([0]), key)) == leaves


def test_where_a_chosen_neighbour_goes_the_next_moves_up() -> None:
    graph, partition = star(40)
    key = halo_key(0)
    before = task_graph(graph, partition, 0, key)
    for leaf in range(1, 41):
        rest = graph.without(ge.Nodes([leaf]))
        after = task_graph(rest, partition.restricted_to(rest.train_nodes), 0, key)
        assert after.num_nodes == before.num_nodes
        assert (after == before) == (leaf not in before.ids)
