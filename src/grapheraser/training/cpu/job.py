"""A shard made ready for the kernels: its data, its weights in their layout, its model's loop."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from grapheraser.kernels.compiled import compiled
from grapheraser.kernels.vectors import tile_for
from grapheraser.models import ModelSpec, initial_weights, parameter_shapes
from grapheraser.models.spec import ACTIVATION_CODES
from grapheraser.training.cpu import gat, gcn, gin, mlp, sage
from grapheraser.training.cpu.adam import Parameters, schedule_of
from grapheraser.training.cpu.edges import edges_of
from grapheraser.training.cpu.epoch import Shard
from grapheraser.training.cpu.layout import Tensors, aligned, offsets_of
from grapheraser.training.cpu.noise import noise_of
from grapheraser.training.cpu.plan import plan_of
from grapheraser.training.cpu.sparse import Features, InputWeights
from grapheraser.training.task import ShardTask


class Job:
    """One shard's training.

    Args:
        task: the shard.
        spec: the model.
        epochs: how many.
        start: initial weights, zero where it has none; default those that the task's seed stands
            for.
        dtype: float32, or float64 to check gradients.
    """

    def __init__(
        self,
        task: ShardTask,
        spec: ModelSpec,
        epochs: int,
        *,
        start: Mapping[str, NDArray[Any]] | None = None,
        dtype: DTypeLike = np.float32,
    ) -> None:
        graph = task.graph
        self.spec = spec
        self.columns = task.columns(spec)
        self.plan = plan_of(spec, len(self.columns), graph.num_classes)
        self.shapes = parameter_shapes(spec, len(self.columns), graph.num_classes)
        if start is None:
            start = initial_weights(
                spec, graph.num_features, graph.num_classes, self.columns, task.seed
            )
        self.offsets = offsets_of(self.plan.segments)
        size = sum(segment.size for segment in self.plan.segments)
        self.parameters = Parameters(*(aligned(size, dtype) for _ in range(4)))
        for segment, at in zip(self.plan.segments, self.offsets, strict=True):
            if segment.names[0] in start:
                segment.write(start, self.parameters.values[at : at + segment.size])
        shape = (len(self.columns), self.plan.inputs.out.width)
        self.weights = InputWeights(
            *(aligned(shape[0] * shape[1], dtype).reshape(shape) for _ in range(3))
        )
        if self.plan.inputs.names[0] in start:
            self.plan.inputs.write(start, self.weights.values.reshape(-1))
        # Rows: running mean and variance of each norm, as torch starts them.
        self.running = aligned(4 * self.plan.hidden.width, dtype).reshape(4, -1)
        self.running[1::2] = 1.0
        values = (spec.dropout, spec.input_dropout, spec.attention_dropout)
        self.shard = Shard(
            x=_features_of(task, self.columns, shape[1], dtype),
            edges=edges_of(spec, graph, dtype),
            labels=graph.y.copy(),
            num_classes=graph.num_classes,
            noise=noise_of(task.seed, graph.ids, *values),
            schedule=schedule_of(spec.lr, spec.weight_decay, epochs),
            activation=ACTIVATION_CODES[spec.activation],
        )

    def run(self) -> None:
        """Train, in place."""
        spec, plan = self.spec, self.plan
        common = (self.shard, self.weights, self.parameters, self.offsets)
        classes, tile = plan.classes.width, tile_for(plan.hidden.width)
        match spec.kind:
            case "gcn":
                gcn.train(*common, classes, spec.bias, tile)
            case "sage":
                sage.train(*common, classes, tile)
            case "gat":
                period = 1 << (spec.heads - 1).bit_length()
                gat.train(*common, period, classes, tile)
            case "gin":
                options = (classes, spec.batch_norm, spec.linear_head, tile)
                gin.train(*common, self.running, plan.last.width, *options)
            case _:
                last = plan.last.width
                mlp.train(*common, last, classes, tile, tile_for(last))

    def tensors(self) -> Tensors:
        """The weights by the names of PyG's state dict, float32."""
        found = self.named(self.weights.values, self.parameters.values)
        for row, norm in enumerate(self.plan.norms):
            mean, variance = self.running[2 * row : 2 * row + 2, : self.spec.hidden]
            found[f"{norm}.running_mean"] = mean.copy()
            found[f"{norm}.running_var"] = variance.copy()
        return {name: tensor.astype(np.float32, copy=False) for name, tensor in found.items()}

    def named(self, inputs: NDArray[Any], others: NDArray[Any]) -> Tensors:
        """Tensors by PyG's names out of arrays laid out like the weights and the parameters."""
        named = self.plan.inputs.read(inputs.reshape(-1), self.shapes)
        for segment, at in zip(self.plan.segments, self.offsets, strict=True):
            if segment.names[0] in self.shapes:
                named |= segment.read(others[at : at + segment.size], self.shapes)
        return named


def _features_of(
    task: ShardTask, columns: NDArray[np.int32], width: int, dtype: DTypeLike
) -> Features:
    # Copies throughout: the graph's arrays are read-only, which to numba is another type.
    x = task.graph.x
    x_indptr, x_indices = x.indptr.astype(np.int64), x.indices.astype(np.int32)
    x_values = x.data.astype(np.float32)
    rank = np.zeros(task.graph.num_features, dtype=np.int32)
    rank[columns] = np.arange(len(columns), dtype=np.int32)
    indptr, rows, values = _transposed(x_indptr, x_indices, x_values, rank, len(columns))
    return Features(
        row_indptr=x_indptr.astype(np.uint64),
        row_places=rank[x_indices].astype(np.uint32) * np.uint32(width),
        row_values=x_values.astype(dtype, copy=False),
        row_columns=x_indices,
        column_indptr=indptr,
        column_places=rows.astype(np.uint32) * np.uint32(width),
        column_values=values.astype(dtype, copy=False),
        column_rows=rows,
        columns=columns,
    )


@compiled
def _transposed(
    indptr: NDArray[np.int64],
    indices: NDArray[np.int32],
    data: NDArray[np.float32],
    place: NDArray[np.int32],
    num_columns: int,
) -> tuple[NDArray[np.uint64], NDArray[np.int32], NDArray[np.float32]]:
    """CSC of a CSR, its columns renumbered by ``place``; rows ascend within a column."""
    starts = np.zeros(num_columns + 1, dtype=np.int64)
    for k in range(len(indices)):
        starts[place[indices[k]] + 1] += 1
    starts = np.cumsum(starts)
    free = starts[:-1].copy()
    rows = np.empty(len(indices), dtype=np.int32)
    values = np.empty(len(indices), dtype=np.float32)
    for r in range(len(indptr) - 1):
        for k in range(indptr[r], indptr[r + 1]):
            at = free[place[indices[k]]]
            free[place[indices[k]]] += 1
            rows[at], values[at] = r, data[k]
    return starts.astype(np.uint64), rows, values
