"""`ldg`: a stream of nodes, placed greedily."""

from __future__ import annotations

import numpy as np
import pytest

import grapheraser as ge
from grapheraser.graph.graph import Graph
from grapheraser.kernels.hashing import paired
from grapheraser.partition.streaming import LdgPartitioner
from grapheraser.seeding import derive


def slowly(graph: Graph, k: int, capacity: int, passes: int, starts: list[int]) -> list[int]:
    """The same rule with plain lists."""
    labels = [-1] * graph.num_nodes
    for _ in range(passes):
        before, sizes = list(labels), [0] * k
        for v in range(graph.num_nodes):
            near = [labels[u] for u in graph.indices[graph.indptr[v] : graph.indptr[v + 1]]]
            worth = {s: near.count(s) * (capacity - sizes[s]) for s in near if s >= 0}
            worth = {s: w for s, w in worth.items() if w > 0}
            if worth and graph.num_nodes - v > sizes.count(0):
                chosen = min(worth, key=lambda s: (-worth[s], sizes[s], (s - starts[v]) % k))
            else:
                chosen = min(range(k), key=lambda s: (sizes[s], s))
            labels[v] = chosen
            sizes[chosen] += 1
        if labels == before:
            break
    return labels


@pytest.mark.parametrize("seed", range(4))
def test_it_follows_its_rule(seed: int) -> None:
    graph = ge.generate_graph(160, degree=5, num_features=1, num_classes=2, seed=seed)
    training, k = graph.training_graph, 5
    capacity = -(-training.num_nodes // k)
    key = np.uint64(derive(seed, "partition", "ldg"))
    starts = [int(paired(key, np.uint64(node)) % np.uint64(k)) for node in training.ids]
    found = LdgPartitioner(passes=3)(training, k, capacity=capacity, seed=seed)
    assert found.labels.tolist() == slowly(training, k, capacity, 3, starts)


def test_no_shard_is_empty_where_there_are_as_many_nodes() -> None:
    graph = ge.Graph.from_arrays([[1.0]] * 6, [[0, 1, 2, 3, 4], [1, 2, 3, 4, 5]], [0, 1] * 3)
    for k in range(1, 7):
        assert ge.partition_graph(graph, "ldg", num_shards=k, gamma=0.5).sizes.min() >= 1


def test_blocks_have_no_part_in_the_result(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = ge.generate_graph(500, degree=6, num_features=1, num_classes=3)
    whole = ge.partition_graph(graph, "ldg", num_shards=6)
    blocks = Graph.adjacency_blocks
    monkeypatch.setattr(Graph, "adjacency_blocks", lambda self: blocks(self, 37))
    assert np.array_equal(ge.partition_graph(graph, "ldg", num_shards=6).labels, whole.labels)


def test_it_keeps_far_more_edges_than_chance_and_every_shard_within_its_capacity() -> None:
    graph = ge.generate_graph(4_000, degree=10, num_features=1, communities=40, homophily=0.9)
    parts = {m: ge.partition_graph(graph, m, num_shards=20) for m in ("ldg", "random")}
    kept = {name: part.quality.edges_kept for name, part in parts.items() if part.quality}
    assert kept["ldg"] > 3 * kept["random"]
    assert parts["ldg"].sizes.max() <= parts["ldg"].capacity
    assert parts["ldg"].inputs == {"nodes", "edges"}


def test_more_passes_cut_fewer_edges() -> None:
    graph = ge.generate_graph(3_000, degree=10, num_features=1, communities=30, homophily=0.9)
    cuts = [
        ge.partition_graph(graph, LdgPartitioner(passes=n), num_shards=15).edge_cut for n in (1, 5)
    ]
    assert cuts[1] < cuts[0]


def test_a_request_is_exact_given_the_partition() -> None:
    graph = ge.generate_graph(400, degree=6, num_features=4, num_classes=3)
    eraser = ge.GraphEraser(partition="ldg", num_shards=4, epochs=2).fit(graph)
    receipt = eraser.unlearn(ge.Nodes(graph.train_nodes[:2]))
    assert receipt.statement.startswith("exact given partition")
    assert eraser.verify().identical
