"""The paper's guideline, and ``partition="auto"``, which follows it."""

from __future__ import annotations

import numpy as np
import pytest

import grapheraser as ge
from grapheraser.errors import ParameterError, PartitionError
from grapheraser.graph import Graph
from grapheraser.nodes.guideline import CANDIDATES, recommend_partition


def _graph(*, informative: str, n: int = 400) -> Graph:
    """Two classes that show either in the features or in the edges, and only there."""
    rng = np.random.Generator(np.random.PCG64(0))
    y = np.arange(n) % 2
    noise = rng.random((n, 8))
    x = np.concatenate([noise, y[:, None] == np.arange(2)], axis=1) if informative == "x" else noise
    u = rng.integers(0, n, 6 * n)
    v = rng.integers(0, n, 6 * n)
    if informative == "edges":
        # Features are weak signs of the class; neighbours of the same class add up to a clear one.
        x = noise + 0.25 * (y[:, None] == np.arange(8) % 2)
        v = v - (v % 2) + y[u]
    keep = u != v
    ends = np.stack([u[keep], v[keep]])
    return Graph.from_arrays(x, ends, y, test=np.arange(0, n, 5), num_classes=2)


def test_where_features_say_it_all_the_partition_reads_nothing() -> None:
    advice = recommend_partition(_graph(informative="x"), "gcn", epochs=60)
    assert advice.partition == "hash"
    assert advice.mlp_f1 > 0.95
    assert not advice.neighbours_kept
    assert "edges need not be kept" in advice.reasons[0]


def test_where_edges_matter_the_best_partition_is_taken() -> None:
    advice = recommend_partition(_graph(informative="edges"), "gcn", epochs=60)
    assert advice.model_f1 > advice.mlp_f1 + advice.margin
    assert set(advice.neighbours_kept) == set(CANDIDATES)
    assert advice.partition == max(CANDIDATES, key=lambda name: advice.neighbours_kept[name])
    assert advice.partition in advice.reasons[0]


def test_one_shard_needs_no_partition() -> None:
    advice = recommend_partition(_graph(informative="edges"), num_shards=1, epochs=2)
    assert (advice.partition, advice.num_shards) == ("hash", 1)
    assert advice.reasons[0] == "partition 'hash': one shard needs no partition."


def test_advice_is_deterministic() -> None:
    graph = _graph(informative="x")
    first = recommend_partition(graph, "sage", num_shards=7, epochs=5, seed=2)
    assert first == recommend_partition(graph, "sage", num_shards=7, epochs=5, seed=2)
    assert first.num_shards == 7
    assert len(first.reasons) == 2


def test_test_nodes_have_no_part_in_it() -> None:
    graph = _graph(informative="edges")
    alone = graph.training_graph
    assert recommend_partition(graph, epochs=5) == recommend_partition(alone, epochs=5)


def test_a_graph_too_small_to_hold_nodes_out_is_refused() -> None:
    graph = Graph.from_arrays(np.ones((4, 1)), np.zeros((2, 0), int), np.zeros(4, int))
    with pytest.raises(PartitionError, match="found 4"):
        recommend_partition(graph)


@pytest.mark.parametrize("informative", ["x", "edges"])
def test_auto_partitions_as_advised(informative: str) -> None:
    graph = _graph(informative=informative)
    options = {"num_shards": 3, "epochs": 30, "seed": 1}
    advice = recommend_partition(graph, "gcn", num_shards=3, epochs=30, seed=1)
    eraser = ge.GraphEraser(partition="auto", **options).fit(graph)  # type: ignore[arg-type]
    assert eraser.partition_.method == advice.partition
    receipt = eraser.unlearn(ge.Nodes(graph.train_nodes[:1]))
    assert receipt.statement == "exact given partition"
    assert eraser.verify().identical


def test_a_model_without_shards_is_not_partitioned() -> None:
    graph = _graph(informative="edges")
    with pytest.raises(ParameterError, match="has no shards"):
        ge.GraphEraser(model="closed-form", partition="auto").fit(graph)
    with pytest.raises(PartitionError, match="no shards to partition"):
        recommend_partition(graph, "sgc")
