"""Both sides of a comparison: the loop that a PyG user writes, and an engine's shard tasks."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray

from grapheraser.engines.reference import reproducible
from grapheraser.engines.task import ShardTask
from grapheraser.graph import TEST, UNLABELLED, Graph
from grapheraser.graph.arrays import fresh
from grapheraser.models import ModelSpec
from grapheraser.models.modules import build_module
from grapheraser.partition import partition_graph
from grapheraser.seeding import derive, generator
from grapheraser_lab.timing import processor_seconds

EPOCHS, HELD_OUT = 100, 0.1


def pyg_loop(graph: Graph, spec: ModelSpec, device: str = "cpu") -> Callable[[int], None]:
    """A function that trains for so many epochs; see `pyg_module`."""
    return pyg_module(graph, spec, device)[1]


def pyg_module(
    graph: Graph, spec: ModelSpec, device: str = "cpu"
) -> tuple[torch.nn.Module, Callable[[int], None]]:
    """Full-batch training on dense features of all columns, with data and module on the device.

    Nodes without a label have no loss. Returns: the module, and what trains it.
    """
    x = torch.from_numpy(graph.x.toarray()).to(device)
    edge_index = torch.from_numpy(graph.edge_index).to(device)
    y = torch.from_numpy(graph.y.copy()).to(device)
    module = build_module(spec, graph.num_features, graph.num_classes).to(device).train()
    optimizer = torch.optim.Adam(module.parameters(), lr=spec.lr, weight_decay=spec.weight_decay)

    def train(epochs: int) -> None:
        for _ in range(epochs):
            optimizer.zero_grad()
            loss = F.cross_entropy(module(x, edge_index), y, ignore_index=UNLABELLED)
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()

    return module, train


def pyg_f1(module: torch.nn.Module, graph: Graph, nodes: NDArray[np.int64]) -> float:
    """Micro F1 of a module on a graph, on some of its nodes."""
    module.eval()
    x, edges = torch.from_numpy(graph.x.toarray()), torch.from_numpy(graph.edge_index)
    with torch.no_grad():
        found = module(x, edges).argmax(dim=1).numpy()
    at = graph.positions(nodes)
    return float((found[at] == graph.y[at]).mean())


def pyg_scratch_seconds(
    graph: Graph, spec: ModelSpec, *, measured: int, repeats: int = 3
) -> list[float]:
    """Processor seconds of ``EPOCHS`` epochs of PyG on the training graph, scaled."""
    with reproducible(0):
        train = pyg_loop(graph.training_graph, spec)
        train(1)  # pays for allocations
        return [processor_seconds(train, measured) * EPOCHS / measured for _ in range(repeats)]


def shard_tasks(graph: Graph, partition: str, num_shards: int, seed: int) -> list[ShardTask]:
    """The tasks of a fit, by shard."""
    part = partition_graph(graph, partition, num_shards=num_shards, seed=seed)
    training = graph.training_graph
    return [
        ShardTask(int(k), training.subgraph(part.members(int(k))), derive(seed, "train", int(k)))
        for k in part.shard_ids
    ]


def geometric_mean(ratios: Iterable[float]) -> float:
    """The mean of speed-ups."""
    return float(np.exp(np.mean(np.log(list(ratios)))))


def validation_graph(graph: Graph, seed: int) -> Graph:
    """The training graph with some of its nodes held out as test nodes."""
    training = graph.training_graph
    role = training.role.copy()
    drawn = generator(seed, "peers", "validation").random(len(role)) < HELD_OUT
    role[drawn] = TEST
    return training.with_fields(**fresh(role=role))
