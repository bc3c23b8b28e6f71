"""`train_shard`: from a task to trained weights on one CPU core."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from importlib import import_module

import numpy as np
from numpy.typing import DTypeLike, NDArray

from grapheraser.arrays import AnyArray, Ints32
from grapheraser.engines.cpu.dense import Parameters
from grapheraser.engines.cpu.epoch import Shard
from grapheraser.engines.cpu.noise import noise_of
from grapheraser.engines.cpu.sparse import InputWeights, SparseFeatures
from grapheraser.engines.shared.adjacency import adjacency_of
from grapheraser.engines.shared.layout import Axis, Tensors, layout_of, schedule_of
from grapheraser.engines.task import ShardTask, ShardWeights, TrainingConfig, built_in
from grapheraser.graph import Graph
from grapheraser.graph.csr import transposed
from grapheraser.kernels.vectors import LANES, padded
from grapheraser.models import ModelSpec, architecture_of, initial_weights
from grapheraser.models.declaration import running_names


def train_shard(
    task: ShardTask, config: TrainingConfig, *, start: Mapping[str, AnyArray] | None = None
) -> ShardWeights:
    """Train one shard, from ``start`` if given; the result is a function of the arguments."""
    shard = PreparedShard(task, built_in(config, "cpu"), config.epochs, start=start)
    shard.run()
    return ShardWeights(shard.columns, shard.tensors())


def warm_up(spec: ModelSpec) -> None:
    """Compile, or read from numba's cache on disk, what training this model needs."""
    path = np.array([[0, 1], [1, 2]])
    graph = Graph.from_arrays(np.eye(3), path, np.array([0, 1, 1]), num_classes=2)
    train_shard(ShardTask(0, graph, 0), TrainingConfig(spec, epochs=1))


class PreparedShard:
    """A shard made ready for the kernels: its data, and its weights where the kernels expect them.

    Attributes:
        run: trains in place: a call of the kernel ``train`` of the module that has the name of the
            model's kind, with all of its arguments.

    Args:
        task: the shard.
        spec: the model.
        epochs: how many.
        start: initial weights by PyG's names, zero where it has none; by default those that follow
            from the task's seed.
        dtype: float32, or float64 to check gradients.
    """

    def __init__(
        self,
        task: ShardTask,
        spec: ModelSpec,
        epochs: int,
        *,
        start: Mapping[str, AnyArray] | None = None,
        dtype: DTypeLike = np.float32,
    ) -> None:
        graph = task.graph
        self.spec = spec
        self.columns = columns = task.columns(spec)
        self.layout = layout = layout_of(spec, graph.num_classes, padded)
        self.shapes = architecture_of(spec, len(columns), graph.num_classes).parameter_shapes
        if start is None:
            start = initial_weights(spec, graph.num_features, graph.num_classes, columns, task.seed)
        running = aligned(4 * layout.hidden.width, dtype).reshape(4, -1)
        running[1::2] = 1.0  # variances, as torch starts them
        values, gradient, first, second = (aligned(layout.size, dtype) for _ in range(4))
        self.parameters = Parameters(values, gradient, first, second, running)
        for role, segment in layout.segments.items():
            if segment.names[0] in start:
                segment.write(start, values[layout.part(role)])
        shape = (len(columns), layout.inputs.out.width)
        self.weights = InputWeights(
            *(aligned(shape[0] * shape[1], dtype).reshape(shape) for _ in range(3))
        )
        self.inputs = replace(layout.inputs, inner=Axis(np.arange(len(columns)), len(columns)))
        if self.inputs.names[0] in start:
            self.inputs.write(start, self.weights.values.reshape(-1))
        self.shard = Shard(
            x=_features_of(task, columns, shape[1], dtype),
            edges=adjacency_of(spec, graph, dtype),
            labels=_labels_of(task, layout.classes, dtype),
            num_classes=graph.num_classes,
            numbers=graph.label_kind.is_numbers,
            noise=noise_of(task.seed, graph.ids, layout.limits),
            schedule=schedule_of(spec, epochs),
            activation=layout.activation,
        )
        kernels = import_module(f"grapheraser.engines.cpu.{spec.kind}")
        offsets = tuple(layout.offset(role) for role in kernels.ROLES)
        arguments = self.shard, self.weights, self.parameters, offsets, *kernels.options(layout)
        self.run: Callable[[], None] = partial(kernels.train, *arguments)

    def tensors(self) -> Tensors:
        """Return the weights by the names of PyG's state dict, float32."""
        found = self.named(self.weights.values, self.parameters.values)
        running = self.parameters.running[:, : self.spec.hidden]
        for row, norm in enumerate(self.layout.norms):
            mean, variance = running_names(norm)
            found[mean] = running[2 * row].copy()
            found[variance] = running[2 * row + 1].copy()
        return {name: tensor.astype(np.float32, copy=False) for name, tensor in found.items()}

    def named(self, inputs: AnyArray, others: AnyArray) -> Tensors:
        """Return tensors by PyG's names, out of arrays laid out like weights and parameters."""
        named = self.inputs.read(inputs.reshape(-1), self.shapes)
        for role, segment in self.layout.segments.items():
            if segment.trained:
                named |= segment.read(others[self.layout.part(role)], self.shapes)
        return named


def aligned(size: int, dtype: DTypeLike) -> NDArray[np.floating]:
    """Return flat zeros that start at a cache line."""
    kind = np.dtype(dtype)
    flat = np.zeros(size + LANES, dtype=kind)
    start = (-(flat.ctypes.data // kind.itemsize)) % (64 // kind.itemsize)
    return flat[start : start + size]


def places_of(rows: Ints32, num_rows: int, width: int) -> NDArray[np.integer]:
    """Return where each of the rows begins in a matrix ``[num_rows, width]``.

    32 bits do for all but huge matrices, and keep more of a shard in the cache.
    """
    if num_rows * width <= 2**32:
        return rows.astype(np.uint32) * np.uint32(width)
    return rows.astype(np.int64) * np.int64(width)


def _labels_of(task: ShardTask, outputs: Axis, dtype: DTypeLike) -> AnyArray:
    """Return classes, or targets beside what an error of each counts."""
    kind = task.graph.label_kind
    if kind.is_classes:
        return task.graph.y.copy()
    rows = task.targets
    known = ~np.isnan(rows)
    found = np.zeros((len(rows), 2 * outputs.width), dtype=dtype)
    found[:, outputs.places] = np.where(known, rows, 0.0)
    weight = (2.0 if kind.is_numbers else 1.0) / known.sum()
    found[:, outputs.width + outputs.places] = known * weight
    return found


def _features_of(task: ShardTask, columns: Ints32, width: int, dtype: DTypeLike) -> SparseFeatures:
    # Copies throughout: the graph's arrays are read-only, which to numba is another type.
    x = task.graph.x
    x_indptr, x_indices = x.indptr.astype(np.int64), x.indices.astype(np.int32)
    x_values = x.data.astype(np.float32)
    rank = np.zeros(task.graph.num_features, dtype=np.int32)
    rank[columns] = np.arange(len(columns), dtype=np.int32)
    # Rows ascend within a column: its gradient is summed in this order (`sparse.input_step`).
    by_column = transposed(x_indptr, rank[x_indices], x_values, len(columns))
    rows = by_column.indices.astype(np.int32)
    return SparseFeatures(
        row_indptr=x_indptr.astype(np.uint64),
        row_places=places_of(rank[x_indices], len(columns), width),
        row_values=x_values.astype(dtype, copy=False),
        row_columns=x_indices,
        column_indptr=by_column.indptr.astype(np.uint64),
        column_places=places_of(rows, task.graph.num_nodes, width),
        column_values=by_column.data.astype(dtype, copy=False),
        column_rows=rows,
        columns=columns,
    )
