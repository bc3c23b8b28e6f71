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
from grapheraser.kernels.compiled import compiled
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
    total = int(entries[-1])
    by_row = (
        np.zeros(rows[-1] + 1, dtype=np.int32),
        np.empty(total, dtype=np.int32),
        np.empty(total, dtype=dtype),
    )
    by_column = (
        np.zeros(firsts[-1] + 1, dtype=np.int32),
        np.empty(total, dtype=np.int32),
        np.empty(total, dtype=dtype),
    )
    features = np.empty(firsts[-1], dtype=np.int32)
    places, long = [], []
    for task, own, row, column, entry in zip(
        tasks, columns, rows[:-1], firsts[:-1], entries[:-1], strict=True
    ):
        x, at = task.graph.x, np.empty(len(own), dtype=np.int64)
        # The kernels compile for one type of index each.
        pointers, indices = x.indptr.astype(np.int32), x.indices.astype(np.int32, copy=False)
        arrays = (pointers, indices, x.data, own, task.graph.num_features, row, column, entry)
        long.append(_lay_out(*arrays, by_row, by_column, features, at))
        places.append(at)
    names = ("x_indptr", "x_columns", "x_values", "c_indptr", "c_rows", "c_values")
    found: dict[str, NDArray[Any]] = dict(zip(names, (*by_row, *by_column), strict=True))
    return found | {"features": features}, places, np.array(long, dtype=np.int64)


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


@compiled
def _lay_out(
    indptr: NDArray[np.int32],
    indices: NDArray[np.int32],
    data: NDArray[np.float32],
    columns: NDArray[np.int32],
    num_features: int,
    first_row: int,
    first_column: int,
    first_entry: int,
    by_row: tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.floating]],
    by_column: tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.floating]],
    features: NDArray[np.int32],
    places: NDArray[np.int64],
) -> int:
    """Write one shard's features into the stack's arrays; returns how many columns are long.

    Long columns come first; ``places`` says where each column lies among those of the shard.
    """
    count = np.zeros(num_features, dtype=np.int32)
    for k in range(len(indices)):
        count[indices[k]] += 1
    num_long = 0
    for c in columns:
        if count[c] > SHORT:
            num_long += 1
    long, short = 0, num_long
    place = np.empty(num_features, dtype=np.int32)
    for i in range(len(columns)):
        c = columns[i]
        if count[c] > SHORT:
            places[i] = long
            long += 1
        else:
            places[i] = short
            short += 1
        place[c] = places[i]
        features[first_column + places[i]] = c
    free = np.empty(len(columns), dtype=np.int32)
    end = first_entry
    for i in range(len(columns)):
        free[i] = end
        end += count[features[first_column + i]]
        by_column[0][first_column + i + 1] = end
    for r in range(len(indptr) - 1):
        for k in range(indptr[r], indptr[r + 1]):
            c = place[indices[k]]
            by_row[1][first_entry + k] = first_column + c
            by_row[2][first_entry + k] = data[k]
            by_column[1][free[c]] = first_row + r
            by_column[2][free[c]] = data[k]
            free[c] += 1
        by_row[0][first_row + r + 1] = first_entry + indptr[r + 1]
    return num_long
