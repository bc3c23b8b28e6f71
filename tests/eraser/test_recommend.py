from __future__ import annotations

import json

import numpy as np
import pytest

from grapheraser.eraser.recommend import CANDIDATES, recommend
from grapheraser.errors import PartitionError
from grapheraser.graph import Graph


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
    return Graph.from_arrays(x, np.stack([u[keep], v[keep]]), y, test=np.arange(0, n, 5))


def test_where_features_say_it_all_the_partition_reads_nothing() -> None:
    advice = recommend(_graph(informative="x"), "gcn", epochs=60)
    assert advice.partition == "hash"
    assert advice.aggregation == "routed"
    assert advice.global_expert is True
    assert advice.mlp_f1 > 0.95


def test_where_edges_matter_the_best_cut_is_taken() -> None:
    advice = recommend(_graph(informative="edges"), "gcn", epochs=60)
    assert advice.model_f1 > advice.mlp_f1 + advice.margin
    assert advice.partition == max(CANDIDATES, key=lambda name: advice.neighbours_kept[name])


def test_a_wide_expert_is_advised_where_single_words_matter() -> None:
    """Every class has 150 words, a node three of them: through 768 columns they run together."""
    rng = np.random.Generator(np.random.PCG64(0))
    n, classes, words = 3000, 40, 150
    y = np.arange(n) % classes
    x = np.zeros((n, classes * words), dtype=np.float32)
    for node in range(n):
        x[node, y[node] * words + rng.integers(0, words, 3)] = 1.0
        x[node, rng.integers(0, classes * words, 3)] = 1.0
    graph = Graph.from_arrays(x, np.zeros((2, 0), int), y)
    advice = recommend(graph, "mlp", epochs=2)
    assert advice.wide_f1 > advice.expert_f1 + advice.margin
    assert advice.global_expert == "wide"


def test_advice_is_deterministic_and_ready_for_json() -> None:
    graph = _graph(informative="x")
    first = recommend(graph, "sage", num_shards=7, epochs=5, seed=2)
    assert first == recommend(graph, "sage", num_shards=7, epochs=5, seed=2)
    assert first.num_shards == 7
    assert len(json.loads(json.dumps(first.report()))["reasons"]) == 4


def test_test_nodes_have_no_part_in_it() -> None:
    graph = _graph(informative="edges")
    alone = graph.training_graph
    assert recommend(graph, epochs=5) == recommend(alone, epochs=5)


def test_a_graph_too_small_to_hold_nodes_out_is_refused() -> None:
    graph = Graph.from_arrays(np.ones((4, 1)), np.zeros((2, 0), int), np.zeros(4, int))
    with pytest.raises(PartitionError, match="found 4"):
        recommend(graph)


def test_a_closed_form_model_can_be_asked_about_too() -> None:
    advice = recommend(_graph(informative="x"), "sgc", num_shards=1, epochs=2)
    assert advice.model_f1 == advice.expert_f1
