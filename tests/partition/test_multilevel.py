"""METIS, KaMinPar and the repair of what they leave above the capacity."""

from __future__ import annotations

import os
import sys

import numpy as np
import pytest

from grapheraser.errors import MissingExtraError
from grapheraser.graph import Graph
from grapheraser.partition import MetisPartitioner, partition_graph
from grapheraser.partition.multilevel import repaired
from tests.partition.strategies import random_graph


def _communities(seed: int = 0, groups: int = 6, size: int = 30) -> Graph:
    rng = np.random.Generator(np.random.PCG64(seed))
    inside = [rng.integers(g * size, (g + 1) * size, size=(4 * size, 2)) for g in range(groups)]
    pairs = np.concatenate([*inside, rng.integers(0, groups * size, size=(groups * size // 4, 2))])
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    n = groups * size
    return Graph.from_arrays(np.eye(n, 3), pairs.T, np.arange(n) // size, name="communities")


@pytest.mark.parametrize("method", ["metis", "kaminpar"])
def test_communities_are_found_and_the_capacity_is_kept(method: str) -> None:
    if method == "kaminpar":
        pytest.importorskip("kaminpar")
    graph = _communities()
    partition = partition_graph(graph, method, num_shards=6, seed=3)
    assert partition.sizes.max() <= 30
    assert partition.quality is not None
    assert partition.quality.edges_kept > 0.75


def test_kaminpar_reads_the_same_graph_from_memory_and_from_a_file(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pytest.importorskip("kaminpar")
    graph = _communities()
    memory = partition_graph(graph, "kaminpar", num_shards=6, seed=3)
    monkeypatch.delattr(os, "memfd_create", raising=False)
    file = partition_graph(graph, "kaminpar", num_shards=6, seed=3)
    assert file.labels.tobytes() == memory.labels.tobytes()


def test_seeds_0_and_1_of_metis_differ() -> None:
    graph = _communities(seed=2, groups=10, size=20)
    found = {
        partition_graph(graph, "metis", num_shards=12, seed=s).labels.tobytes() for s in range(4)
    }
    assert len(found) > 1


def test_metis_without_repair_says_when_the_capacity_is_not_kept() -> None:
    kway = MetisPartitioner(variant="kway", repair=False)
    assert not kway.strict
    seen = 0
    for seed in range(10):
        partition = partition_graph(_communities(seed, 20, 50), kway, num_shards=9, seed=seed)
        assert (partition.sizes.max() > partition.capacity) == bool(partition.notes)
        seen += bool(partition.notes)
    assert seen


def test_repair_moves_no_more_than_the_surplus_and_leaves_no_shard_empty() -> None:
    for seed in range(150):
        graph = random_graph(seed)
        n = graph.num_nodes
        rng = np.random.Generator(np.random.PCG64(seed))
        k = int(rng.integers(1, n + 1))
        capacity = -(-n // k) + seed % 2
        labels = rng.integers(0, max(1, k // 2), size=n)
        surplus = int(np.maximum(np.bincount(labels, minlength=k) - capacity, 0).sum())
        new, moves = repaired(graph, labels, k, capacity=capacity, seed=seed)
        sizes = np.bincount(new, minlength=k)
        assert sizes.max() <= capacity
        assert sizes.min() >= 1
        assert surplus <= moves <= surplus + k
        assert moves == int((new != labels).sum())


def test_repair_leaves_a_good_partition_alone() -> None:
    graph = random_graph(8)
    labels = np.arange(graph.num_nodes) % 3
    new, moves = repaired(graph, labels, 3, capacity=-(-graph.num_nodes // 3), seed=0)
    assert moves == 0
    np.testing.assert_array_equal(new, labels)


def test_repair_takes_the_node_that_loses_least() -> None:
    # A clique of four and, in the same shard, one node whose only neighbour is elsewhere.
    pairs = np.array([(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3), (4, 5), (5, 6)]).T
    graph = Graph.from_arrays(np.ones((8, 1)), pairs, np.zeros(8, dtype=int))
    new, moves = repaired(graph, np.array([0, 0, 0, 0, 0, 1, 1, 1]), 2, capacity=4, seed=0)
    assert moves == 1
    assert new.tolist() == [0, 0, 0, 0, 1, 1, 1, 1]


def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "kaminpar", None)
    with pytest.raises(MissingExtraError, match=r"\.\[fast-partition\]"):
        partition_graph(random_graph(2), "kaminpar", num_shards=1)
