"""From tasks to trained weights on one GPU."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from grapheraser.graph import Graph
from grapheraser.models import ModelSpec, parameter_shapes
from grapheraser.training.cpu.layout import Tensors
from grapheraser.training.cuda import gat, gcn, gin, mlp
from grapheraser.training.cuda.initial import initial_columns, initial_theta
from grapheraser.training.cuda.plan import Plan, plan_of
from grapheraser.training.cuda.run import Run
from grapheraser.training.cuda.stack import HostStack, Stack, stack_of
from grapheraser.training.task import ShardTask, ShardWeights, TrainingConfig

_MODELS: dict[str, ModuleType] = {"gcn": gcn, "sage": gcn, "gat": gat, "gin": gin, "mlp": mlp}
# What has been compiled and loaded: nothing may be while a graph is captured.
_warm: set[tuple[ModelSpec, int, str]] = set()
# Share of the free device memory that one stack may take.
_MEMORY_SHARE = 0.5


def train_stack(
    tasks: Sequence[ShardTask], config: TrainingConfig, device: str
) -> list[ShardWeights]:
    """Train checked tasks; see `grapheraser.training.cuda.train_shards`."""
    spec = config.model
    assert isinstance(spec, ModelSpec)
    plan = plan_of(spec, tasks[0].graph.num_classes)
    place = torch.device(device)
    warm_up(spec, plan.num_classes, device)
    found: list[ShardWeights] = []
    with _on(place):
        for batch in _batches(plan, tasks, place):
            job = Job(plan, batch, config.epochs, place)
            job.train()
            found += job.weights()
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
        job = Job(plan_of(spec, num_classes), [ShardTask(0, graph, 0)], 1, place)
        job.epoch()
        torch.cuda.synchronize()
    _warm.add(key)


class Job:
    """A stack of shards made ready to train.

    Args:
        plan: the model's layout.
        tasks: the shards.
        epochs: how many there will be.
        device: where.
        starts: initial weights of each shard; default those that the tasks' seeds stand for.
        dtype: float32, or float64 to check gradients.
    """

    def __init__(
        self,
        plan: Plan,
        tasks: Sequence[ShardTask],
        epochs: int,
        device: torch.device,
        *,
        starts: Sequence[Mapping[str, NDArray[Any]]] | None = None,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        kind = np.float32 if dtype == torch.float32 else np.float64
        self.plan, self.tasks, self.epochs = plan, tasks, epochs
        self.host: HostStack = stack_of(plan, tasks, kind)
        self.model = _MODELS[plan.spec.kind]
        stack = Stack.upload(self.host, device)
        if starts is None:
            columns = initial_columns(plan, tasks, self.host, stack, dtype)
            theta = initial_theta(plan, tasks, kind)
        else:
            given, theta = self._given(starts, kind)
            columns = torch.from_numpy(given).to(device)
        self.run = Run(
            plan,
            stack,
            self.model.buffers(plan),
            self.model.gradients(plan),
            columns,
            torch.from_numpy(theta).to(device),
            epochs,
        )

    def epoch(self) -> None:
        """One epoch, launched kernel by kernel."""
        self.model.epoch(self.run)

    def train(self) -> None:
        """All epochs."""
        self.run.train(self.model.epoch, self.epochs)

    def weights(self) -> list[ShardWeights]:
        """The trained shards, each in memory of its own."""
        running = self.run.running.cpu().numpy()
        found = self.named(self.run.weights, self.run.theta)
        for tensors, norms in zip(found, running, strict=True):
            for row, name in enumerate(self.plan.norms):
                mean, variance = norms[2 * row : 2 * row + 2, : self.plan.spec.hidden]
                tensors[f"{name}.running_mean"] = mean.copy()
                tensors[f"{name}.running_var"] = variance.copy()
        return [
            ShardWeights(columns, {name: t.astype(np.float32, copy=False) for name, t in w.items()})
            for columns, w in zip(self.host.columns, found, strict=True)
        ]

    def named(self, columns: torch.Tensor, theta: torch.Tensor) -> list[Tensors]:
        """Tensors of each shard by PyG's names, out of tensors laid out like the weights."""
        others = theta.cpu().numpy()
        bounds = self.host.column_bounds
        order = np.concatenate(
            [places + first for places, first in zip(self.host.places, bounds[:-1], strict=True)]
        )
        rows = columns.index_select(0, torch.from_numpy(order).to(columns.device))
        axis, names = self.plan.inputs.out, self.plan.inputs.names
        units = [torch.from_numpy(at).to(rows.device) for at in np.split(axis.places, len(names))]
        found: list[Tensors] = []
        for shard, task in enumerate(self.tasks):
            own = rows[bounds[shard] : bounds[shard + 1]].t()
            tensors: Tensors = {
                name: own.index_select(0, at).cpu().numpy()
                for name, at in zip(names, units, strict=True)
            }
            shapes = parameter_shapes(
                self.plan.spec, len(self.host.columns[shard]), task.graph.num_classes
            )
            for name, segment in self.plan.segments.items():
                if segment.names[0] in shapes:
                    at = self.plan.offset(name)
                    tensors |= segment.read(others[shard, at : at + segment.size], shapes)
            found.append(tensors)
        return found

    def _given(
        self, starts: Sequence[Mapping[str, NDArray[Any]]], kind: Any
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        """Initial weights by PyG's names, laid out."""
        plan, bounds = self.plan, self.host.column_bounds
        columns = np.zeros((bounds[-1], plan.inputs.out.width), dtype=kind)
        theta = np.zeros((len(starts), plan.size), dtype=kind)
        for shard, start in enumerate(starts):
            wide = np.concatenate([start[name] for name in plan.inputs.names])
            rows = bounds[shard] + self.host.places[shard]
            columns[rows[:, None], plan.inputs.out.places[None, :]] = wide.T
            for name, segment in plan.segments.items():
                if segment.names[0] in start:
                    at = plan.offset(name)
                    segment.write(start, theta[shard, at : at + segment.size])
        return columns, theta


def _on(device: torch.device) -> Any:
    return torch.cuda.device(device) if device.type == "cuda" else torch.device(device)


def _batches(plan: Plan, tasks: Sequence[ShardTask], device: torch.device) -> list[list[ShardTask]]:
    """The tasks in stacks that fit into memory; which ones share a stack changes no bits."""
    if device.type != "cuda":
        return [list(tasks)]
    room = torch.cuda.mem_get_info(device)[0] * _MEMORY_SHARE
    buffers = _MODELS[plan.spec.kind].buffers(plan)
    per = {"rows": 0, "edges": 0, "shards": 4 * plan.size}
    for what, width in buffers.values():
        per[what] += width
    batches: list[list[ShardTask]] = [[]]
    taken = 0.0
    for task in tasks:
        graph = task.graph
        columns = graph.num_features if plan.spec.all_columns else graph.x.nnz
        size = graph.num_nodes * per["rows"] + 2 * len(graph.indices) * per["edges"]
        size += per["shards"] + 4 * min(columns, graph.num_features) * plan.inputs.out.width
        size = 4 * (size + 4 * graph.x.nnz)
        if batches[-1] and taken + size > room:
            batches.append([])
            taken = 0.0
        batches[-1].append(task)
        taken += size
    return batches
