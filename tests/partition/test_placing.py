"""Where an inserted node goes."""

from __future__ import annotations

import numpy as np
import pytest

import grapheraser as ge
from grapheraser.partition import Partition
from grapheraser.partition.placing import place_nodes


def partition_of(labels: list[int], *, num_shards: int = 3, capacity: int = 10) -> Partition:
    return Partition(
        nodes=np.arange(len(labels), dtype=np.int64),
        labels=np.array(labels, dtype=np.int32),
        num_shards=num_shards,
        method="given",
        capacity=capacity,
        inputs=frozenset({"nodes"}),
    )


def joined(neighbours: list[int]) -> ge.Graph:
    """Some nodes, and node 100 next to these."""
    ids = [*range(80), 100]
    edges = [[100] * len(neighbours), neighbours]
    return ge.Graph.from_arrays(np.ones((81, 1)), edges, [0] * 81, ids=ids)


@pytest.mark.parametrize(
    ("labels", "capacity", "neighbours", "shard"),
    [
        ([0, 0, 0, 1, 1, 2], 10, [0, 3, 4], 1),  # most of its neighbours
        ([0, 0, 0, 1, 1, 2], 10, [0, 3], 0),  # a tie: the lower shard
        ([0, 0, 0, 1, 1, 2], 3, [0, 1, 5], 2),  # that shard is full: the smallest
        ([0, 0, 0, 1, 1, 2], 10, [], 2),  # no neighbours: the smallest
        ([0, 0, 0, 1, 1, 2], 10, [77], 2),  # none that is trained on: the smallest
        ([0, 0, 2, 2], 10, [], 1),  # an emptied shard is the smallest
    ],
)
def test_most_neighbours_or_the_smallest(
    labels: list[int], capacity: int, neighbours: list[int], shard: int
) -> None:
    cut, graph = partition_of(labels, capacity=capacity), joined(neighbours)
    found, inputs = place_nodes(cut, graph, np.array([100]))
    assert found.tolist() == [shard]
    assert inputs == {"nodes", "edges"}


def test_a_full_partition_grows_with_its_nodes() -> None:
    """Strictly balanced shards are all full, yet one more node must go somewhere."""
    cut = partition_of([0, 0, 1, 1, 2, 2], capacity=2)
    found, _ = place_nodes(cut, joined([2]), np.array([100]))
    assert found.tolist() == [1]


def test_under_hash_the_id_decides_as_in_a_fresh_fit(small: ge.Graph) -> None:
    partition = ge.partition_graph(small, "hash", num_shards=3, seed=5)
    for node in range(200, 230):
        longer = small.with_node(node, np.ones(small.num_features), 0, small.ids[:3])
        shard, inputs = place_nodes(partition, longer, np.array([node]))
        fresh = ge.partition_graph(longer, "hash", num_shards=3, seed=5)
        assert shard.tolist() == fresh.shard_of([node]).tolist()
        assert inputs == frozenset()


def test_several_nodes_go_where_they_would_one_by_one(small: ge.Graph) -> None:
    """Each sees those with smaller ids."""
    rng = np.random.default_rng(3)
    together = one_by_one = ge.partition_graph(small, "random", num_shards=3, seed=5)
    graph, new = small, np.array([0, 200, 201, 202, 203])
    new = new[~small.contains(new)]
    for node in new.tolist():
        near = rng.choice(graph.ids, size=4, replace=False)
        graph = graph.with_node(node, np.ones(small.num_features), 0, near)
        shards, inputs = place_nodes(one_by_one, graph, np.array([node]))
        one_by_one = one_by_one.with_nodes(np.array([node]), shards, inputs=inputs)
    found, inputs = place_nodes(together, graph, new)
    together = together.with_nodes(new, found, inputs=inputs)
    assert together.nodes.tolist() == one_by_one.nodes.tolist()
    assert together.labels.tolist() == one_by_one.labels.tolist()
    for shard in range(3):
        assert together.members(shard).tolist() == one_by_one.members(shard).tolist()
