"""One training of a stack: its weights on the device, and the launches that models share."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from grapheraser.engines.cuda import dense, sparse
from grapheraser.engines.cuda.layout import NARROWEST, Gradient
from grapheraser.engines.cuda.stack import SHORT, Stack, column_tile
from grapheraser.engines.shared.layout import TensorLayout

# Entries of a row that a program sums at a time: of the features, and of the adjacency.
ENTRIES, EDGES = 32, 16
PARAMETER_ROWS, PARAMETER_WARPS = 32, 4
# Elements of a block per warp; sums within a warp need no shared memory.
WARP_ELEMENTS = 2048
COLUMN_ELEMENTS, COLUMN_WARPS = 2048, 2
PROJECT_TILE = 64


def warps_for(elements: int) -> int:
    """Return the warps for a block of this many elements; measured on Physics on an H200.

    A sum within a block is split by warps, so they must follow from the model alone.
    """
    return max(1, min(8, elements // WARP_ELEMENTS))


def _stream(device: torch.device) -> torch.cuda.Stream:
    return torch.cuda.Stream(device)  # type: ignore[no-untyped-call]


def arena_offsets(
    buffers: Mapping[str, tuple[str, int]], counts: Mapping[str, int]
) -> tuple[dict[str, int], int]:
    """Return where each buffer begins, and where the last one ends.

    ``buffers``: by name, one row per what (a key of ``counts``), and how wide.
    """
    offsets, end = {}, 0
    for name, (what, width) in buffers.items():
        offsets[name] = end
        end += -(-counts[what] * width // 64) * 64
    return offsets, end


class Arena:
    """Buffers that an epoch writes, parts of one tensor so that a table can name them by offset."""

    def __init__(
        self, buffers: Mapping[str, tuple[str, int]], counts: Mapping[str, int], like: Tensor
    ) -> None:
        offsets, end = arena_offsets(buffers, counts)
        self.flat = torch.empty(max(end, 64), dtype=like.dtype, device=like.device)
        self._views = {name: self.flat[start:] for name, start in offsets.items()}

    def __getitem__(self, name: str) -> Tensor:
        return self._views[name]


def zeros(shapes: Sequence[tuple[int, ...]], like: Tensor) -> list[Tensor]:
    """Return several tensors of zeros, parts of one."""
    sizes = [-(-math.prod(shape) // 64) * 64 for shape in shapes]
    flat = torch.zeros(sum(sizes), dtype=like.dtype, device=like.device)
    starts = np.cumsum([0, *sizes])[:-1]
    return [
        flat[start : start + math.prod(shape)].view(shape)
        for start, shape in zip(starts.tolist(), shapes, strict=True)
    ]


class Run:
    """The training of one stack.

    Attributes:
        weights: ``[columns, units]``, the first layer's, zero until they are set.
        theta: ``[shards, layout.size]``, all other parameters, likewise.
        moments, theta_moments: Adam's, first and second.
        running: ``[shards, 4, units]``, running mean and variance of each norm.

    Args:
        layout: the model's layout.
        stack: the shards.
        buffers: what the model's epoch writes; see `Arena`.
        rates: Adam's step and correction by epoch.
        jobs: the table of `dense.update_parameters`.
    """

    edges_per_step = EDGES

    def __init__(
        self,
        layout: TensorLayout,
        stack: Stack,
        buffers: Mapping[str, tuple[str, int]],
        rates: tuple[Tensor, Tensor],
        jobs: Tensor,
    ) -> None:
        self.layout, self.stack, self.jobs = layout, stack, jobs
        self.step, self.correction = rates
        self.arena = Arena(buffers, stack.counts, self.step)
        inputs, others = (
            (stack.num_columns, layout.inputs.out.width),
            (stack.num_shards, layout.size),
        )
        norms = (stack.num_shards, 4, layout.hidden.width)
        state = zeros([inputs, inputs, inputs, others, others, others, norms], self.step)
        self.weights, self.moments = state[0], (state[1], state[2])
        self.theta, self.theta_moments = state[3], (state[4], state[5])
        self.running = state[6]
        if layout.norms:
            self.running[:, 1::2] = 1.0
        self.clock = torch.zeros(2, dtype=torch.int32, device=self.step.device)
        self._side: torch.cuda.Stream | None = None

    def train(self, epoch: Callable[[Run], None], epochs: int) -> None:
        """Run the epochs; on a GPU as replays of one captured graph."""
        if not self.theta.is_cuda:
            for _ in range(epochs):
                epoch(self)
            return
        graph = torch.cuda.CUDAGraph()
        stream = _stream(self.theta.device)
        stream.wait_stream(torch.cuda.current_stream(self.theta.device))
        with torch.cuda.stream(stream):
            self._side = _stream(self.theta.device)
            graph.capture_begin(capture_error_mode="thread_local")
            epoch(self)
            stream.wait_stream(self._side)
            graph.capture_end()
            for _ in range(epochs):
                graph.replay()
        stream.synchronize()

    @contextmanager
    def beside(self) -> Iterator[None]:
        """Launch kernels that may run at the same time as what follows in the epoch."""
        if self._side is None:
            yield
            return
        self._side.wait_stream(torch.cuda.current_stream(self.theta.device))
        with torch.cuda.stream(self._side):
            yield

    def project(self, z: Tensor, *, hidden: Tensor | None = None) -> None:
        """``z = X W``; with ``hidden``, the activated units and there their derivatives."""
        layout, s = self.layout, self.stack
        width = layout.inputs.out.width
        tile = min(width, PROJECT_TILE)
        sparse.project[(s.num_rows, width // tile)](
            z, z if hidden is None else hidden, self.weights, self.theta, s.x_indptr, s.x_columns,
            s.x_values, s.features, s.row_shard, s.seeds, s.id_keys, self.clock,
            WIDTH=width, TILE=tile, ENTRIES=ENTRIES, INPUT_LIMIT=layout.limits.features,
            IS_HIDDEN=hidden is not None, SIZE=layout.size, BIAS=layout.offset("bias1"),
            ACTIVATION=layout.activation, LIMIT=layout.limits.hidden,
            num_warps=warps_for(tile * ENTRIES),
        )  # fmt: skip

    def update_columns(self, g: Tensor) -> None:
        """Train the first layer from ``g`` by X W."""
        layout, s = self.layout, self.stack
        width = layout.inputs.out.width
        tile, columns = column_tile(width)
        if s.num_blocks == 0:
            return
        sparse.update_columns[(s.num_blocks, width // tile)](
            self.weights, *self.moments, g, s.c_indptr, s.c_rows, s.c_values, s.features, s.blocks,
            s.num_long, s.row_shard, s.seeds, s.id_keys, self.clock, self.step, self.correction,
            WIDTH=width, TILE=tile, COLUMNS=columns, LONG=COLUMN_ELEMENTS // tile, SHORT=SHORT,
            LIMIT=layout.limits.features, DECAY=layout.spec.weight_decay, num_warps=COLUMN_WARPS,
        )  # fmt: skip

    def update_parameters(self) -> None:
        """Train all other parameters from the buffers; ends an epoch."""
        layout, s = self.layout, self.stack
        dense.update_parameters[(len(self.jobs), s.num_shards)](
            self.theta, *self.theta_moments, self.arena.flat, self.jobs, s.bounds, self.clock,
            self.step, self.correction,
            SIZE=layout.size, DECAY=layout.spec.weight_decay, ROWS=PARAMETER_ROWS, TILE=NARROWEST,
            num_warps=PARAMETER_WARPS,
        )  # fmt: skip


def jobs_of(
    layout: TensorLayout,
    offsets: Mapping[str, int],
    widths: Mapping[str, int],
    gradients: Sequence[Gradient],
) -> NDArray[np.int64]:
    """Make the table of `dense.update_parameters`: one row per tile of a parameter."""
    jobs = []
    for parameter, left, right, by_shard in gradients:
        segment, start = layout[parameter], layout.offset(parameter)
        width = segment.out.width
        height = 1 if segment.inner is None else segment.inner.width
        for i in range(0, height, NARROWEST):
            for j in range(0, width, NARROWEST):
                at = 0 if left is None else offsets[left] + i
                left_width = 0 if left is None else widths[left]
                place = start + i * width + j
                right_at = offsets[right] + j
                jobs.append(
                    [at, left_width, right_at, widths[right], place, width, int(by_shard), 0]
                )
    return np.array(jobs, dtype=np.int64)
