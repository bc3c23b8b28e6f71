"""From tasks to trained weights on one GPU."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from importlib import import_module
from types import ModuleType
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from grapheraser.engines.cuda import noise
from grapheraser.engines.cuda.layout import keys_of, layout_of, tables_of
from grapheraser.engines.cuda.run import Run, arena_offsets, jobs_of
from grapheraser.engines.cuda.stack import HostStack, Stack, stack_of, upload
from grapheraser.engines.shared.layout import TensorLayout, Tensors, schedule_of
from grapheraser.engines.task import ShardTask, ShardWeights, TrainingConfig, built_in
from grapheraser.graph import Graph
from grapheraser.models import ModelSpec, architecture_of
from grapheraser.models.declaration import running_names

# Models whose kernels are compiled and loaded: neither may happen while a graph is captured.
_warm: set[tuple[ModelSpec, int, str]] = set()
# Share of the free device memory that one stack may take.
_MEMORY_SHARE = 0.5


def train_stack(
    tasks: Sequence[ShardTask], config: TrainingConfig, device: str
) -> list[ShardWeights]:
    """Train checked tasks; see `grapheraser.engines.cuda.train_shards`."""
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
    """Divide tasks into stacks that fit into memory; which ones share a stack changes no bits."""
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


def kernels_of(spec: ModelSpec) -> ModuleType:
    """Return the module with a kind of model's ``buffers``, ``gradients`` and ``epoch``."""
    return import_module(f"grapheraser.engines.cuda.{spec.kind}")


class PreparedStack:
    """A stack of shards made ready to train.

    ``starts`` are initial weights of each shard, by default those that follow from the tasks'
    seeds; ``dtype`` is float64 to check gradients.
    """

    def __init__(
        self,
        layout: TensorLayout,
        tasks: Sequence[ShardTask],
        epochs: int,
        device: torch.device,
        *,
        starts: Sequence[Mapping[str, NDArray[Any]]] | None = None,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        kind = np.float32 if dtype == torch.float32 else np.float64
        self.layout, self.tasks, self.epochs = layout, tasks, epochs
        self.host: HostStack = stack_of(layout, tasks, kind)
        self.model = kernels_of(layout.spec)
        sent = upload(self._arrays(kind), device)
        self.order, self.packed, self.units = sent["order"], sent["packed"], sent["units"]
        own = {name: sent[name] for name in self.host.arrays}
        stack = Stack(**own, num_long=self.host.num_long)
        rates = (sent["step"], sent["correction"])
        self.run = Run(layout, stack, self.model.buffers(layout), rates, sent["jobs"])
        if starts is None:
            self._start(sent)
        else:
            columns, theta = self._given(starts, kind)
            self.run.weights.copy_(torch.from_numpy(columns))
            self.run.theta.copy_(torch.from_numpy(theta))

    def _arrays(self, kind: Any) -> dict[str, NDArray[Any]]:
        """Collect the arrays that the device is sent."""
        layout, tasks, host = self.layout, self.tasks, self.host
        own = host.arrays
        counts = {"rows": len(own["labels"]), "edges": len(own["indices"]), "shards": len(tasks)}
        buffers = self.model.buffers(layout)
        offsets, _ = arena_offsets(buffers, counts)
        widths = {name: width for name, (_, width) in buffers.items()}
        rates = schedule_of(layout.spec, self.epochs)
        firsts = np.repeat(host.column_bounds[:-1], np.diff(host.column_bounds))
        return {
            **own,
            **tables_of(layout.spec, tasks[0].graph.num_features, layout.num_classes),
            "keys": keys_of(layout, tasks),
            "jobs": jobs_of(layout, offsets, widths, self.model.gradients(layout)),
            "step": rates.step.astype(kind),
            "correction": rates.correction.astype(kind),
            "order": np.concatenate(host.places) + firsts,
            "packed": packed_of(layout.spec, layout.num_classes)[0],
            "units": layout.inputs.out.places,
        }

    def _start(self, sent: Mapping[str, torch.Tensor]) -> None:
        """Write the initial weights that follow from the tasks' seeds."""
        run, layout, stack = self.run, self.layout, self.run.stack
        num_names = sent["keys"].shape[1]
        block = 256
        noise.initial_theta[(stack.num_shards, -(-layout.size // block))](
            run.theta, sent["keys"], sent["theta_name"], sent["theta_row"], sent["theta_unit"],
            sent["theta_value"],
            NUM_NAMES=num_names, SIZE=layout.size, BLOCK=block, num_warps=4,
        )  # fmt: skip
        if stack.num_columns:
            noise.initial_columns[(stack.num_columns,)](
                run.weights, stack.features, stack.column_shard, sent["keys"], sent["input_name"],
                sent["input_unit"], sent["input_bound"],
                NUM_NAMES=num_names, WIDTH=layout.inputs.out.width, num_warps=1,
            )  # fmt: skip

    def epoch(self) -> None:
        """Launch one epoch, kernel by kernel."""
        self.model.epoch(self.run)

    def train(self) -> None:
        """Run all epochs."""
        self.run.train(self.model.epoch, self.epochs)

    def weights(self) -> list[ShardWeights]:
        """Return the trained shards, each in memory of its own."""
        found = self.named(self.run.weights, self.run.theta)
        if self.layout.norms:
            running = self.run.running.cpu().numpy()
            for own, norms in zip(found, running, strict=True):
                for row, norm in enumerate(self.layout.norms):
                    mean_name, variance_name = running_names(norm)
                    mean, variance = norms[2 * row : 2 * row + 2, : self.layout.spec.hidden]
                    own[mean_name], own[variance_name] = mean.copy(), variance.copy()
        return [
            ShardWeights(columns, {name: t.astype(np.float32, copy=False) for name, t in w.items()})
            for columns, w in zip(self.host.columns, found, strict=True)
        ]

    def named(self, columns: torch.Tensor, theta: torch.Tensor) -> list[Tensors]:
        """Return each shard's tensors by PyG's names, out of tensors laid out like the weights."""
        _, parts = packed_of(self.layout.spec, self.layout.num_classes)
        others = theta.index_select(1, self.packed).cpu().numpy()
        names, bounds = self.layout.inputs.names, self.host.column_bounds.tolist()
        rows = columns.index_select(0, self.order).index_select(1, self.units)
        height = len(self.units) // len(names)
        found: list[Tensors] = []
        for shard, other in enumerate(others):
            own = rows[bounds[shard] : bounds[shard + 1]].t().contiguous().cpu().numpy()
            tensors: Tensors = {
                name: own[i * height : (i + 1) * height] for i, name in enumerate(names)
            }
            for name, (part, shape) in parts.items():
                tensors[name] = other[part].reshape(shape).copy()
            found.append(tensors)
        return found

    def _given(
        self, starts: Sequence[Mapping[str, NDArray[Any]]], kind: Any
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        """Lay out initial weights that are given by PyG's names."""
        layout, bounds = self.layout, self.host.column_bounds
        columns = np.zeros((bounds[-1], layout.inputs.out.width), dtype=kind)
        theta = np.zeros((len(starts), layout.size), dtype=kind)
        for shard, start in enumerate(starts):
            wide = np.concatenate([start[name] for name in layout.inputs.names])
            rows = bounds[shard] + self.host.places[shard]
            columns[rows[:, None], layout.inputs.out.places[None, :]] = wide.T
            for role, segment in layout.segments.items():
                if segment.names[0] in start:
                    segment.write(start, theta[shard, layout.part(role)])
        return columns, theta


@lru_cache(maxsize=64)
def packed_of(
    spec: ModelSpec, num_classes: int
) -> tuple[NDArray[np.int64], dict[str, tuple[slice, tuple[int, ...]]]]:
    """Return theta's places in PyG's order, and where each tensor lies among them."""
    layout = layout_of(spec, num_classes)
    shapes = architecture_of(spec, 1, num_classes).parameter_shapes
    places, parts, end = [], {}, 0
    for role, segment in layout.segments.items():
        if not segment.trained:
            continue
        at = np.arange(segment.size, dtype=np.float64) + layout.offset(role)
        for name, entries in segment.read(at, shapes).items():
            places.append(entries.astype(np.int64).ravel())
            parts[name] = (slice(end, end + entries.size), shapes[name])
            end += entries.size
    return np.concatenate(places), parts
