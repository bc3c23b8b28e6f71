"""The embedding that the paper's BEKM partitions by."""

from __future__ import annotations

import numpy as np
import torch

import grapheraser as ge
from grapheraser.engines import ShardTask, TrainingConfig, resolve_engine
from grapheraser.engines.reference import load_tensors
from grapheraser.models import ModelSpec
from grapheraser.models.modules import build_module
from grapheraser.partition.base import LABELS
from grapheraser.partition.kmeans import pretrained_gnn
from grapheraser.seeding import derive


def small() -> ge.Graph:
    graph = ge.load_dataset("demo")
    return graph.subgraph(graph.train_nodes[:150]).training_graph


def test_the_embedding_is_the_hidden_layer_of_the_pyg_module() -> None:
    graph = small()
    spec = ModelSpec("sage", hidden=32)
    task = ShardTask(0, graph, derive(5, "partition", "pretrained"))
    weights = resolve_engine("auto", TrainingConfig(spec), "cpu").train(task, TrainingConfig(spec))
    module = build_module(spec, len(weights.columns), graph.num_classes)
    load_tensors(module, weights.tensors)
    x = torch.from_numpy(graph.x[:, weights.columns].toarray())
    with torch.no_grad():
        hidden = torch.relu(module.conv1(x, torch.from_numpy(graph.edge_index)))  # type: ignore[operator]
    np.testing.assert_allclose(pretrained_gnn(graph, 5), hidden.numpy(), rtol=1e-4, atol=1e-5)


def test_it_makes_purer_shards_than_chance_and_owns_up_to_the_labels() -> None:
    graph = small()
    by_label = ge.partition_graph(graph, "bekm-gnn", num_shards=5, seed=1)
    by_chance = ge.partition_graph(graph, "random", num_shards=5, seed=1)
    assert by_label.quality is not None
    assert by_chance.quality is not None
    assert LABELS in by_label.inputs
    assert by_label.quality.label_entropy.mean() < 0.7 * by_chance.quality.label_entropy.mean()


def test_advice_taken_by_auto_is_data_that_went_into_the_partition() -> None:
    graph = small()
    eraser = ge.GraphEraser(partition="auto", num_shards=3, aggregation="mean", epochs=10)
    part = eraser.fit(graph).partition_
    assert part.inputs == {"nodes", "edges", "features", "labels"}
    receipt = eraser.unlearn(ge.Nodes([int(graph.train_nodes[0])]))
    assert receipt.statement == "exact given partition"
