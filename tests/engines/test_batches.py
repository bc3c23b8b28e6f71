"""Batches: which nodes share one, which neighbours are sampled, and what is learned from that."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

import grapheraser as ge
from grapheraser.engines import ShardTask, TrainingConfig, reference
from grapheraser.engines.batches import Batch, SampledShard, batches_of, chosen_edges
from grapheraser.graph import UNLABELLED
from grapheraser.models import PRESETS
from grapheraser.seeding import derive
from tests.strategies import small_graph

M64 = 2**64 - 1


def mixed(z: int) -> int:
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & M64
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & M64
    return z ^ (z >> 31)


def paired(a: int, b: int) -> int:
    return mixed((a + b * 0x9E3779B97F4A7C15) & M64)


def expected_edges(graph: ge.Graph, seeds: set[int], counts: list[int], key: int) -> set[Any]:
    """By the text: ids of the ends of all edges in the batch of these seeds."""
    into: dict[int, list[int]] = {int(node): [] for node in graph.ids}
    for u, v in graph.ids[graph.edge_index].T.tolist():
        into[v].append(u)
    reached, frontier, edges = set(seeds), set(seeds), set()
    for count in counts:
        found = set()
        for v in frontier:
            ranked = sorted(into[v], key=lambda u: paired(paired(key, v), u))
            found |= {(u, v) for u in (ranked if count == -1 else ranked[:count])}
        edges |= found
        frontier = {u for u, _ in found} - reached
        reached |= frontier
    return edges if graph.directed else edges | {(v, u) for u, v in edges}


def shard(
    graph: ge.Graph, neighbours: list[int], batch_size: int, seed: int = 5, **options: Any
) -> SampledShard:
    config = TrainingConfig(
        PRESETS["sage"], neighbours=tuple(neighbours), batch_size=batch_size, **options
    )
    columns = np.arange(graph.num_features, dtype=np.int32)
    carried = {} if graph.edge_weight is None else {"w": torch.from_numpy(graph.edge_weight.copy())}
    made = batches_of(ShardTask(0, graph, seed), config, columns, carried)
    assert isinstance(made, SampledShard)
    return made


def ids_of(graph: ge.Graph, batch: Batch) -> list[int]:
    """The nodes of a batch, found by their features, which are all different."""
    rows = {
        row.tobytes(): int(node) for row, node in zip(graph.x.toarray(), graph.ids, strict=True)
    }
    return [rows[row.numpy().tobytes()] for row in batch.x]


def told_apart(graph: ge.Graph) -> ge.Graph:
    """The same graph with features by which nodes can be told apart."""
    x = np.stack([graph.ids + 1, graph.ids % 7], axis=1).astype(np.float32)
    return ge.Graph.from_arrays(
        x, graph.ids[graph.edge_index], graph.y, ids=graph.ids, num_classes=3
    )


@pytest.fixture
def graph() -> ge.Graph:
    return told_apart(small_graph(n=60)).training_graph


@pytest.mark.parametrize("counts", [[2, 2], [1], [-1, 3], [3, 2, 1]])
def test_a_batch_is_what_the_text_says(graph: ge.Graph, counts: list[int]) -> None:
    batches = list(shard(graph, counts, 8).epoch(3))
    seen: list[int] = []
    key = derive(5, "neighbours", 3)
    for batch in batches:
        ids = ids_of(graph, batch)
        assert ids == sorted(set(ids))
        seeds = {node for node, label in zip(ids, batch.y.tolist(), strict=True) if label >= 0}
        seen += seeds
        ends = np.array(ids)[batch.edge_index.numpy()]
        found = set(map(tuple, ends.T.tolist()))
        assert len(found) == ends.shape[1], "no edge twice"
        assert found == expected_edges(graph, seeds, counts, key)
        assert set(ids) == seeds | {node for edge in found for node in edge}
        labels = [y for y in batch.y.tolist() if y != UNLABELLED]
        assert labels == graph.labels(sorted(seeds)).tolist()
    assert sorted(seen) == graph.ids[graph.y != UNLABELLED].tolist()
    sizes = [int((batch.y != UNLABELLED).sum()) for batch in batches]
    assert max(sizes) <= 8
    assert max(sizes) - min(sizes) <= 1


def test_epochs_and_seeds_choose_anew_and_the_same_again(graph: ge.Graph) -> None:
    def edges(seed: int, epoch: int) -> list[bytes]:
        batches = shard(graph, [2, 2], 8, seed).epoch(epoch)
        return [batch.edge_index.numpy().tobytes() + batch.y.numpy().tobytes() for batch in batches]

    assert edges(5, 0) == edges(5, 0)
    assert len({tuple(edges(seed, epoch)) for seed in (5, 6) for epoch in (0, 1)}) == 4


def test_a_node_chooses_whatever_else_is_there(graph: ge.Graph) -> None:
    """Forgetting a neighbour that was not chosen changes nothing; else the next moves up."""

    def chosen(of: ge.Graph, node: int) -> list[int]:
        order = np.lexsort(of.edge_index)
        ends = np.concatenate(
            [[0], np.cumsum(np.bincount(of.edge_index[1], minlength=len(of.ids)))]
        )
        sources = of.edge_index[0][order]
        at = np.searchsorted(of.ids, [node])
        found = chosen_edges(ends, sources, of.ids, at, 2, np.uint64(77))
        return of.ids[sources[found]].tolist()

    degrees = np.bincount(graph.edge_index[0], minlength=graph.num_nodes)
    node = int(graph.ids[degrees.argmax()])
    around = set(graph.ids[graph.edge_index[0][graph.edge_index[1] == degrees.argmax()]].tolist())
    before = chosen(graph, node)
    assert len(before) == 2 < len(around)
    for gone in around:
        after = chosen(graph.without(ge.Nodes([gone])), node)
        if gone in before:
            assert set(before) - {gone} < set(after)
            assert len(after) == min(2, len(around) - 1)
        else:
            assert after == before


def test_what_edges_carry_goes_with_them_and_directions_hold() -> None:
    pairs = np.array([[0, 1, 2, 3, 0, 4], [1, 2, 0, 1, 3, 1]])
    weights = np.arange(1, 7, dtype=np.float32)
    x = np.stack([np.arange(5) + 1, np.zeros(5)], axis=1).astype(np.float32)
    directed = ge.Graph.from_arrays(
        x, pairs, [0, 1, 2, 0, 1], edge_weight=weights, directed=True, each_edge_once=True
    ).training_graph
    assert directed.edge_weight is not None
    by_ends = {
        (int(u), int(v)): float(w)
        for (u, v), w in zip(directed.edge_index.T, directed.edge_weight, strict=True)
    }
    (batch,) = shard(directed, [2, 1], 10).epoch(0)
    ends = np.array(ids_of(directed, batch))[batch.edge_index.numpy()]
    key = derive(5, "neighbours", 0)
    assert set(map(tuple, ends.T.tolist())) == expected_edges(directed, set(range(5)), [2, 1], key)
    assert batch.carried["w"].tolist() == [by_ends[u, v] for u, v in ends.T.tolist()]


def test_held_out_nodes_are_judged_on_one_sample(graph: ge.Graph) -> None:
    stopping = ge.EarlyStopping(3, share=0.4)
    made = shard(graph, [2, 2], 4, early_stopping=stopping)
    out = {
        n
        for batch in made.held_out()
        for n, y in zip(ids_of(graph, batch), batch.y, strict=True)
        if y >= 0
    }
    learned = {
        n
        for batch in made.epoch(0)
        for n, y in zip(ids_of(graph, batch), batch.y, strict=True)
        if y >= 0
    }
    assert out
    assert not out & learned
    assert out | learned == set(graph.ids[graph.y != UNLABELLED].tolist())
    assert shard(graph, [2, 2], 4).held_out() == []


def test_all_neighbours_in_one_batch_are_full_batch_training() -> None:
    """A sage looks at means over neighbours: what lies beyond two hops has no part in a score."""
    graph = small_graph(n=60).training_graph
    model = replace(PRESETS["sage"], dropout=0.0)
    task = ShardTask(0, graph, 3)
    whole = reference.train_shard(task, TrainingConfig(model, 10))
    sampled = TrainingConfig(model, 10, neighbours=(-1, -1), batch_size=1000)
    found = reference.train_shard(task, sampled)
    assert whole.tensors.keys() == found.tensors.keys()
    for name, tensor in whole.tensors.items():
        assert np.abs(found.tensors[name] - np.asarray(tensor, np.float32)).max() < 1e-4


@pytest.mark.slow
def test_samples_teach_what_the_whole_does() -> None:
    graph = ge.load_dataset("demo")
    training = ge.Training(epochs=5, learning_rate=0.03, neighbours=[4, 4], batch_size=100)
    eraser = ge.GraphEraser("sage", num_shards=1, engine="pyg", training=training).fit(graph)
    chance = np.bincount(graph.labels(graph.test_nodes)).max() / len(graph.test_nodes)
    assert eraser.score(graph.test_nodes) > chance + 0.2
