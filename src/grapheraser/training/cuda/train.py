"""From tasks to trained weights on one GPU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from grapheraser.graph import Graph
from grapheraser.models import ModelSpec
from grapheraser.training.cuda.layout import layout_of
from grapheraser.training.cuda.prepared import PreparedStack, kernels_of
from grapheraser.training.layout.tensors import TensorLayout
from grapheraser.training.task import ShardTask, ShardWeights, TrainingConfig, built_in

# What has been compiled and loaded: nothing may be while a graph is captured.
_warm: set[tuple[ModelSpec, int, str]] = set()
# Share of the free device memory that one stack may take.
_MEMORY_SHARE = 0.5


def train_stack(
    tasks: Sequence[ShardTask], config: TrainingConfig, device: str
) -> list[ShardWeights]:
    """Train checked tasks; see `grapheraser.training.cuda.train_shards`."""
    spec = built_in(config, "cuda")
    layout = layout_of(spec, tasks[0].graph.num_classes)
    place = torch.device(device)
    warm_up(spec, layout.num_classes, device)
    found: list[ShardWeights] = []
    with _on(place):
        for batch in _batches(layout, tasks, place):
            stack = PreparedStack(layout, batch, config.epochs, place)
            stack.train()
            found += stack.weights()
    return found


def warm_up(spec: ModelSpec, num_classes: int, device: str) -> None:
    """Train a tiny shard, unless that has been done: this compiles and loads every kernel."""
    key, place = (spec, num_classes, device), torch.device(device)
    if key in _warm or place.type != "cuda":
        return
    path = np.array([[0, 1], [1, 2]])
    labels = np.array([0, 1, 1]) % num_classes
    graph = Graph.from_arrays(np.eye(3), path, labels, num_classes=num_classes)
    with _on(place):
        stack = PreparedStack(layout_of(spec, num_classes), [ShardTask(0, graph, 0)], 1, place)
        stack.epoch()
        torch.cuda.synchronize()
    _warm.add(key)


def _on(device: torch.device) -> Any:
    return torch.cuda.device(device) if device.type == "cuda" else torch.device(device)


def _batches(
    layout: TensorLayout, tasks: Sequence[ShardTask], device: torch.device
) -> list[list[ShardTask]]:
    """The tasks in stacks that fit into memory; which ones share a stack changes no bits."""
    if device.type != "cuda":
        return [list(tasks)]
    room = torch.cuda.mem_get_info(device)[0] * _MEMORY_SHARE
    buffers = kernels_of(layout.spec).buffers(layout)
    per = {"rows": 0, "edges": 0, "shards": 4 * layout.size}
    for what, width in buffers.values():
        per[what] += width
    batches: list[list[ShardTask]] = [[]]
    taken = 0.0
    for task in tasks:
        graph = task.graph
        columns = graph.num_features if layout.spec.all_columns else graph.x.nnz
        size = graph.num_nodes * per["rows"] + 2 * len(graph.indices) * per["edges"]
        size += per["shards"] + 4 * min(columns, graph.num_features) * layout.inputs.out.width
        size = 4 * (size + 4 * graph.x.nnz)
        if batches[-1] and taken + size > room:
            batches.append([])
            taken = 0.0
        batches[-1].append(task)
        taken += size
    return batches
