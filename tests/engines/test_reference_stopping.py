"""Early stopping: who is held out, when it is over, and which weights are kept."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

import grapheraser as ge
from grapheraser.engines import ShardTask, TrainingConfig, reference
from grapheraser.engines.batches import held_out, shard_tensors
from grapheraser.engines.reference import Stopping
from grapheraser.graph import UNLABELLED
from grapheraser.models import PRESETS
from tests.strategies import small_graph


def test_forgetting_one_node_leaves_the_others_where_they_are() -> None:
    graph = small_graph(n=200).training_graph
    before = graph.ids[held_out(ShardTask(0, graph, 7), 0.3)]
    assert 0.15 * graph.num_nodes < len(before) < 0.45 * graph.num_nodes
    for gone in (before[0], np.setdiff1d(graph.ids, before)[0]):
        rest = graph.without(ge.Nodes([gone]))
        after = rest.ids[held_out(ShardTask(0, rest, 7), 0.3)]
        assert np.array_equal(after, np.setdiff1d(before, [gone]))
    assert not np.array_equal(graph.ids[held_out(ShardTask(0, graph, 8), 0.3)], before)


def test_only_labelled_nodes_are_held_out_and_one_is_always_left() -> None:
    graph = small_graph(n=30, split="few").with_context("all").training_graph
    out = held_out(ShardTask(0, graph, 1), 0.999999)
    labelled = graph.y != UNLABELLED
    assert (out <= labelled).all()
    assert out.sum() == labelled.sum() - 1
    lonely = graph.subgraph(graph.ids[labelled][:1])
    assert not held_out(ShardTask(0, lonely, 1), 0.999999).any()


class Number(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.value = torch.nn.Parameter(torch.tensor(0.0))


def watched(losses: list[float], patience: int) -> tuple[int, float]:
    """The epoch that was the last, and the epoch whose weights are kept."""
    module = Number()
    told = iter(losses)
    stopping = Stopping(ge.EarlyStopping(patience), module, lambda: torch.tensor(next(told)))
    epoch = 0
    while epoch < len(losses):
        module.load_state_dict({"value": torch.tensor(float(epoch))})
        epoch += 1
        if stopping.is_over():
            break
    stopping.restore()
    return epoch, module.value.item()


def test_the_best_weights_come_back_once_patience_is_over() -> None:
    assert watched([3, 2, 2, 2.5, 1], 2) == (4, 1)
    assert watched([3, 2, 2, 1, 2], 3) == (5, 3)
    assert watched([3, 2, 1], 1) == (3, 2)
    assert watched([float("nan")] * 3, 2) == (2, 1)


def trained(graph: ge.Graph, **options: Any) -> Any:
    config = TrainingConfig(PRESETS["mlp"], **options)
    return reference.train_shard(ShardTask(0, graph, 3), config)


def test_it_stops_early_and_equals_training_for_as_many_epochs_as_were_best(
    demo: ge.Graph,
) -> None:
    """An oracle without the watching: a loop over the same targets that keeps every epoch."""
    graph = demo.subgraph(demo.train_nodes[:120]).training_graph
    out = held_out(ShardTask(0, graph, 3), 0.3)
    assert 0 < out.sum() < len(out)
    stopped = trained(graph, epochs=300, early_stopping=ge.EarlyStopping(5, share=0.3))
    hidden = ge.Graph.from_arrays(
        graph.x,
        graph.ids[graph.edge_index],
        np.where(out, UNLABELLED, graph.y),
        ids=graph.ids,
        num_classes=graph.num_classes,
        train=graph.ids[~out],
    ).with_context("all")
    losses = []
    for epochs in range(1, 40):
        weights = trained(hidden, epochs=epochs)
        module = reference.initial_module(
            ShardTask(0, graph, 3), PRESETS["mlp"], weights.columns
        ).eval()
        reference.load_tensors(module, weights.tensors)
        with torch.no_grad():
            scores = module(*shard_tensors(graph, weights.columns))
        rows = torch.from_numpy(np.flatnonzero(out))
        labels = torch.from_numpy(graph.y[out])
        losses.append(float(torch.nn.functional.cross_entropy(scores[rows], labels)))
        if len(losses) - 1 - int(np.argmin(losses)) >= 5:
            break
    best = int(np.argmin(losses)) + 1
    assert len(losses) < 39
    assert stopped.digest == trained(hidden, epochs=best).digest
