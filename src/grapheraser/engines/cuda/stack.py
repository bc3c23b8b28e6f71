"""Several shards as one block-diagonal graph, laid out for the kernels and sent to the device."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import DTypeLike, NDArray
from torch import Tensor

from grapheraser.engines.shared.adjacency import adjacency_of, check_entries
from grapheraser.engines.shared.layout import TensorLayout
from grapheraser.engines.task import ShardTask
from grapheraser.graph import UNLABELLED
from grapheraser.graph.csr import transposed
from grapheraser.seeding import keyed_hash

# Columns with at most this many entries are trained in blocks, the others one by one.
SHORT = 8
COLUMN_TILE, COLUMN_BLOCK = 64, 512
ROW_TILE = 16


def column_tile(width: int) -> tuple[int, int]:
    """Return how many units of a first-layer row, and short columns, one program trains."""
    tile = min(width, COLUMN_TILE)
    return tile, COLUMN_BLOCK // tile


@dataclass(frozen=True)
class HostStack:
    """The arrays of a stack; rows, columns and entries of the shards lie end to end."""

    columns: list[NDArray[np.int32]]  # of each shard, sorted feature columns that have weights
    # Where each of those lies among the rows of the first layer's weights.
    places: list[NDArray[np.int64]]
    column_bounds: NDArray[np.int64]  # ``[shards + 1]``, rows of those weights
    arrays: dict[str, NDArray[Any]]  # what goes to the device; see `Stack`
    num_long: int  # how many blocks are single columns


@dataclass(frozen=True)
class Stack:
    """A stack on the device."""

    bounds: Tensor  # int32 ``[shards + 1]``, rows of each shard
    seeds: Tensor  # int64 ``[shards]``, bits of the task seeds
    # row_shard, labels, id_keys, shares: of each row its shard, class (-1: none), hashed id, and
    # one over the number of rows of its shard.
    row_shard: Tensor
    labels: Tensor
    id_keys: Tensor
    shares: Tensor
    # One over the number of labelled rows of its shard; 0 for a row without a label.
    loss_shares: Tensor
    tiles: Tensor  # int32 ``[tiles, 2]``, first row and end of up to `ROW_TILE` rows of one shard
    # indptr, indices, forward, backward, reverse: adjacency; see `shared.adjacency`.
    indptr: Tensor
    indices: Tensor
    forward: Tensor
    backward: Tensor
    reverse: Tensor
    # x_indptr, x_columns, x_values: features by row.
    x_indptr: Tensor
    x_columns: Tensor
    x_values: Tensor
    # c_indptr, c_rows, c_values: features by column, long columns of a shard first.
    c_indptr: Tensor
    c_rows: Tensor
    c_values: Tensor
    features: Tensor  # int32, number of each column among all features
    column_shard: Tensor  # int32, shard of each column
    blocks: Tensor  # int32 ``[blocks, 2]``, columns that a program trains; long ones first
    num_long: int

    @property
    def counts(self) -> dict[str, int]:
        """Rows, edges and shards, by these names."""
        return {"rows": self.num_rows, "edges": self.num_edges, "shards": self.num_shards}

    @property
    def num_rows(self) -> int:
        return len(self.labels)

    @property
    def num_shards(self) -> int:
        return len(self.seeds)

    @property
    def num_columns(self) -> int:
        return len(self.features)

    @property
    def num_edges(self) -> int:
        return len(self.indices)

    @property
    def num_blocks(self) -> int:
        return len(self.blocks)

    @property
    def num_tiles(self) -> int:
        return len(self.tiles)


def upload(arrays: dict[str, NDArray[Any]], device: torch.device) -> dict[str, Tensor]:
    """Send arrays to the device in one copy; each starts at a multiple of 256 bytes."""
    starts, end = {}, 0
    for name, array in arrays.items():
        starts[name] = end
        end += -(-array.nbytes // 256) * 256
    packed = np.empty(max(end, 256), dtype=np.uint8)
    for name, array in arrays.items():
        view = packed[starts[name] : starts[name] + array.nbytes].view(array.dtype)
        view.reshape(array.shape)[...] = array
    sent = torch.from_numpy(packed).to(device)
    return {
        name: sent[starts[name] : starts[name] + array.nbytes]
        .view(torch.from_numpy(np.empty(0, dtype=array.dtype)).dtype)
        .view(array.shape)
        for name, array in arrays.items()
    }


def stack_of(layout: TensorLayout, tasks: Sequence[ShardTask], dtype: DTypeLike) -> HostStack:
    """Lay out the shards of these tasks."""
    graphs = [task.graph for task in tasks]
    check_entries(sum(len(graph.indices) + graph.num_nodes for graph in graphs))
    check_entries(sum(graph.x.nnz for graph in graphs))
    columns = [task.columns(layout.spec) for task in tasks]
    rows = _ends([task.graph.num_nodes for task in tasks])
    firsts = _ends([len(own) for own in columns])
    features, places, long = _stacked_features(tasks, columns, rows, firsts, dtype)
    _, width = column_tile(layout.inputs.out.width)
    single = np.concatenate(
        [np.arange(at, at + n) for at, n in zip(firsts[:-1], long, strict=True)]
    )
    shorts = _tiles(firsts[:-1] + long, firsts[1:], width)
    numbers = np.arange(len(tasks))
    seeds = np.array([task.seed % 2**64 for task in tasks], dtype=np.uint64)
    arrays: dict[str, NDArray[Any]] = {
        **features,
        **_stacked_edges(layout, tasks, rows, dtype),
        "bounds": rows,
        "seeds": seeds.view(np.int64),
        "row_shard": np.repeat(numbers, np.diff(rows)),
        "column_shard": np.repeat(numbers, np.diff(firsts)),
        "labels": np.concatenate([task.graph.y for task in tasks]),
        "id_keys": keyed_hash(np.concatenate([task.graph.ids for task in tasks]), 0).view(np.int64),
        "shares": np.repeat(1.0 / np.diff(rows), np.diff(rows)).astype(dtype),
        "loss_shares": np.concatenate([_loss_shares(task.graph.y) for task in tasks]).astype(dtype),
        "tiles": _tiles(rows[:-1], rows[1:], ROW_TILE),
        "blocks": np.concatenate([np.stack([single, single + 1], axis=1), shorts]),
    }
    for name, array in arrays.items():
        if array.dtype == np.int64 and name not in ("seeds", "id_keys"):
            arrays[name] = array.astype(np.int32)
    return HostStack(columns, places, firsts, arrays, int(long.sum()))


def _stacked_features(
    tasks: Sequence[ShardTask],
    columns: Sequence[NDArray[np.int32]],
    rows: NDArray[np.int64],
    firsts: NDArray[np.int64],
    dtype: DTypeLike,
) -> tuple[dict[str, NDArray[Any]], list[NDArray[np.int64]], NDArray[np.int64]]:
    """Return features by row and column, where each shard's columns lie, and its long columns."""
    entries = _ends([task.graph.x.nnz for task in tasks])
    parts, places, long = list[dict[str, NDArray[Any]]](), [], []
    for task, own, row, column, entry in zip(
        tasks, columns, rows[:-1], firsts[:-1], entries[:-1], strict=True
    ):
        x, place = task.graph.x, np.zeros(task.graph.num_features, dtype=np.int64)
        is_long = np.bincount(x.indices, minlength=len(place))[own] > SHORT
        order = np.argsort(~is_long, kind="stable")  # long columns first
        place[own[order]] = np.arange(len(own))
        by_column = transposed(x.indptr, place[x.indices], x.data, len(own))
        parts.append(
            {
                "x_indptr": entry + x.indptr[1:],
                "x_columns": column + place[x.indices],
                "x_values": x.data.astype(dtype),
                "c_indptr": entry + by_column.indptr[1:],
                "c_rows": row + by_column.indices,
                "c_values": by_column.data.astype(dtype),
                "features": own[order],
            }
        )
        places.append(place[own])
        long.append(int(is_long.sum()))
    found = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    found |= {name: np.append(0, found[name]) for name in ("x_indptr", "c_indptr")}
    return found, places, np.array(long, dtype=np.int64)


def _stacked_edges(
    layout: TensorLayout, tasks: Sequence[ShardTask], rows: NDArray[np.int64], dtype: DTypeLike
) -> dict[str, NDArray[Any]]:
    """Lay the shards' adjacencies end to end, as the model weighs edges."""
    parts = [adjacency_of(layout.spec, task.graph, dtype) for task in tasks]
    firsts = _ends([len(part.indices) for part in parts])
    counts = np.diff(firsts)
    pointers = [part.indptr[:-1] + at for part, at in zip(parts, firsts[:-1], strict=True)]
    indices = np.concatenate([part.indices for part in parts])
    reverse = np.concatenate([part.reverse for part in parts])
    return {
        "indptr": np.concatenate([*pointers, firsts[-1:]]),
        "indices": indices + np.repeat(rows[:-1], counts),
        "forward": np.concatenate([part.forward for part in parts]),
        "backward": np.concatenate([part.backward for part in parts]),
        "reverse": reverse + np.repeat(firsts[:-1], counts),
    }


def _loss_shares(labels: NDArray[np.int64]) -> NDArray[np.float64]:
    labelled = labels != UNLABELLED
    return np.where(labelled, 1.0 / labelled.sum(), 0.0)


def _ends(sizes: Sequence[int]) -> NDArray[np.int64]:
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


def _tiles(starts: NDArray[Any], ends: NDArray[Any], size: int) -> NDArray[np.int64]:
    """Split every range into pieces of at most ``size``: ``[pieces, 2]``."""
    counts = -(-(ends - starts) // size)
    within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    first = np.repeat(starts, counts) + within * size
    return np.stack([first, np.minimum(first + size, np.repeat(ends, counts))], axis=1)
