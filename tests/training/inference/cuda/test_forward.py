"""Posteriors computed on a GPU have the bits of those computed on the processor."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from grapheraser.graph import Graph
from grapheraser.models import PRESETS
from grapheraser.training.inference import posteriors as asked
from grapheraser.training.inference.gather import Bound, gather_field
from grapheraser.training.reference import train_shard
from grapheraser.training.task import ShardTask, ShardWeights, TrainingConfig
from tests.strategies import with_edge_values

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")


def a_graph(seed: int, *, dense: bool) -> Graph:
    """Three hundred nodes, some of them without a tie, with a hub."""
    rng = np.random.default_rng(seed)
    n, features = 300, 90
    x = rng.normal(size=(n, features)).astype(np.float32)
    if not dense:
        x *= rng.random((n, features)) < 0.05
    ends = rng.integers(0, n - 20, size=(2, 900))
    hub = np.stack([np.zeros(n - 40, dtype=np.int64), np.arange(20, n - 20)])
    return Graph.from_arrays(x=x, y=rng.integers(0, 5, n), edge_index=np.hstack([ends, hub]))


# Beside the presets: widths that don't split into whole vectors.
SPECS = {
    **PRESETS,
    "gcn, 21": replace(PRESETS["gcn"], hidden=21, activation="elu"),
    "gat, 3 x 5": replace(PRESETS["gat"], hidden=5, heads=3, self_loops=False),
    "gin, 40": replace(PRESETS["gin"], hidden=40, batch_norm=True, linear_head=True),
}


def shards_of(graph: Graph, name: str, count: int) -> list[ShardWeights]:
    config = TrainingConfig(SPECS[name], epochs=2)
    return [train_shard(ShardTask(i, graph, seed=i), config) for i in range(count)]


@pytest.mark.parametrize("name", SPECS)
@pytest.mark.parametrize("dense", [False, True])
def test_all_shards_same_bits(name: str, dense: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = a_graph(1, dense=dense)
    shards, positions = shards_of(graph, name, 2), np.arange(graph.num_nodes)
    here = asked.posteriors(SPECS[name], shards, graph, positions)
    monkeypatch.setattr(asked, "_WORTH_SENDING", 1)
    there = asked.posteriors(SPECS[name], shards, graph, positions, device="cuda")
    assert here.tobytes() == there.tobytes()


@pytest.mark.parametrize("name", ["gcn", "sage", "gat", "gin", "mlp"])
def test_few_shards_same_bits(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = a_graph(2, dense=False)
    shards = dict(enumerate(shards_of(graph, name, 4)))
    rng = np.random.default_rng(0)
    gathered = gather_field(graph, rng.permutation(graph.num_nodes)[:200], Bound(16, 7))
    wanted = np.argsort(rng.random((200, 4)), axis=1)[:, :2].astype(np.int32)
    wanted[::5, 1] = -1
    answer = SPECS[name], shards, gathered, wanted, graph.num_classes
    here = asked.asked_posteriors(*answer)
    monkeypatch.setattr(asked, "_WORTH_SENDING", 1)
    assert here.tobytes() == asked.asked_posteriors(*answer, "cuda").tobytes()


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("name", ["gcn", "gcn:paper", "gcn, 21"])
def test_weighted_and_directed_edges_same_bits(
    name: str, directed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = with_edge_values(a_graph(3, dense=False), directed=directed)
    shards, positions = shards_of(graph, name, 2), np.arange(graph.num_nodes)
    here = asked.posteriors(SPECS[name], shards, graph, positions)
    gathered = gather_field(graph, positions[:200], Bound(16, 7))
    wanted = np.tile(np.arange(2, dtype=np.int32), (200, 1))
    wanted[::3, 0] = -1
    answer = SPECS[name], dict(enumerate(shards)), gathered, wanted, graph.num_classes
    few = asked.asked_posteriors(*answer)
    monkeypatch.setattr(asked, "_WORTH_SENDING", 1)
    there = asked.posteriors(SPECS[name], shards, graph, positions, device="cuda")
    assert here.tobytes() == there.tobytes()
    assert few.tobytes() == asked.asked_posteriors(*answer, "cuda").tobytes()
