"""Several shards as one block-diagonal graph, laid out for the kernels and sent to the device."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import torch
from numba import njit
from numpy.typing import DTypeLike, NDArray
from torch import Tensor

from grapheraser.seeding import keyed_hash
from grapheraser.training.cpu.edges import edges_of
from grapheraser.training.cuda.plan import Plan
from grapheraser.training.task import ShardTask

# Columns with at most so many entries are trained in blocks, the others one by one.
SHORT = 8
ROW_TILE = 16


def column_tile(width: int) -> tuple[int, int]:
    """Units of a first-layer row, and short columns, that one program trains."""
    tile = min(width, 64)
    return tile, 256 // tile


@dataclass(frozen=True)
class HostStack:
    """The arrays of a stack; rows, columns and entries of the shards lie end to end.

    Attributes:
        columns: of each shard, sorted feature columns that have weights.
        places: where each of those lies among the rows of the first layer's weights.
        column_bounds: ``[shards + 1]``, rows of those weights.
        arrays: what goes to the device; see `Stack`.
        num_long: how many blocks are single columns.
    """

    columns: list[NDArray[np.int32]]
    places: list[NDArray[np.int64]]
    column_bounds: NDArray[np.int64]
    arrays: dict[str, NDArray[Any]]
    num_long: int


@dataclass(frozen=True)
class Stack:
    """A stack on the device.

    Attributes:
        bounds: int32 ``[shards + 1]``, rows of each shard.
        seeds: int64 ``[shards]``, bits of the task seeds.
        row_shard, labels, id_keys, shares: of each row its shard, class, hashed id, and one over
            the number of rows of its shard.
        tiles: int32 ``[tiles, 2]``, first row and end of up to `ROW_TILE` rows of one shard.
        indptr, indices, forward, backward, reverse: adjacency; see `cpu.sparse.Edges`.
        x_indptr, x_columns, x_values: features by row.
        c_indptr, c_rows, c_values: features by column, long columns of a shard first.
        features: int32, number of each column among all features.
        column_shard: int32, shard of each column.
        blocks: int32 ``[blocks, 2]``, columns that a program trains; long ones first.
    """

    bounds: Tensor
    seeds: Tensor
    row_shard: Tensor
    labels: Tensor
    id_keys: Tensor
    shares: Tensor
    tiles: Tensor
    indptr: Tensor
    indices: Tensor
    forward: Tensor
    backward: Tensor
    reverse: Tensor
    x_indptr: Tensor
    x_columns: Tensor
    x_values: Tensor
    c_indptr: Tensor
    c_rows: Tensor
    c_values: Tensor
    features: Tensor
    column_shard: Tensor
    blocks: Tensor
    num_long: int

    @classmethod
    def upload(cls, host: HostStack, device: torch.device) -> Stack:
        """One copy for all arrays."""
        return cls(**upload(host.arrays, device), num_long=host.num_long)

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
    """The arrays on the device, in one copy; each starts at a multiple of 256 bytes."""
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


def stack_of(plan: Plan, tasks: Sequence[ShardTask], dtype: DTypeLike) -> HostStack:
    """Lay out the shards of these tasks."""
    shards = [_shard_arrays(plan, task, dtype) for task in tasks]
    parts = [arrays for arrays, _, _ in shards]
    joined = {
        name: np.concatenate([part[name] for part in parts])
        for name in parts[0]
        if not name.endswith("indptr")
    }
    rows = _ends([len(part["labels"]) for part in parts])
    edges = _ends([len(part["indices"]) for part in parts])
    columns = _ends([len(part["features"]) for part in parts])
    entries = _ends([len(part["x_values"]) for part in parts])
    for name, first in (("indices", rows), ("reverse", edges), ("x_columns", columns)):
        joined[name] += np.repeat(first[:-1], [len(part[name]) for part in parts])
    joined["c_rows"] += np.repeat(rows[:-1], np.diff(entries))
    for name, first in (("indptr", edges), ("x_indptr", entries), ("c_indptr", entries)):
        shifted = [part[name][:-1] + at for part, at in zip(parts, first[:-1], strict=True)]
        joined[name] = np.concatenate([*shifted, first[-1:]])
    long = np.array([int(part["is_long"].sum()) for part in parts])
    del joined["is_long"]
    _, width = column_tile(plan.inputs.out.width)
    singles = [np.arange(at, at + n) for at, n in zip(columns[:-1], long, strict=True)]
    single = np.concatenate(singles)
    shorts = _tiles(columns[:-1] + long, columns[1:], width)
    joined["blocks"] = np.concatenate([np.stack([single, single + 1], axis=1), shorts])
    joined["tiles"] = _tiles(rows[:-1], rows[1:], ROW_TILE)
    joined["bounds"] = rows
    numbers = np.arange(len(tasks))
    joined["row_shard"] = np.repeat(numbers, np.diff(rows))
    joined["column_shard"] = np.repeat(numbers, np.diff(columns))
    seeds = np.array([task.seed % 2**64 for task in tasks], dtype=np.uint64)
    joined["seeds"] = seeds.view(np.int64)
    wide = ("seeds", "id_keys")
    narrow = {
        name: array.astype(np.int32, copy=False)
        if array.dtype.kind == "i" and name not in wide
        else array
        for name, array in joined.items()
    }
    arrays = {f.name: narrow[f.name] for f in fields(Stack) if f.name != "num_long"}
    found = [columns_of for _, columns_of, _ in shards]
    return HostStack(found, [place for _, _, place in shards], columns, arrays, int(long.sum()))


def _shard_arrays(
    plan: Plan, task: ShardTask, dtype: DTypeLike
) -> tuple[dict[str, NDArray[Any]], NDArray[np.int32], NDArray[np.int64]]:
    """A shard's own arrays, its columns, and where each of them lies."""
    graph, columns = task.graph, task.columns(plan.spec)
    n = graph.num_nodes
    counts = np.bincount(graph.x.indices, minlength=graph.num_features)[columns]
    is_long = counts > SHORT
    order = np.concatenate([np.flatnonzero(is_long), np.flatnonzero(~is_long)])
    places = np.empty(len(columns), dtype=np.int64)
    places[order] = np.arange(len(columns))
    of_feature = np.zeros(graph.num_features, dtype=np.int32)
    of_feature[columns] = places
    starts, x_columns, c_rows, c_values = _by_column(
        graph.x.indptr, graph.x.indices, graph.x.data, of_feature, len(columns)
    )
    edges = edges_of(plan.spec, graph, dtype)
    arrays = {
        "labels": graph.y,
        "id_keys": keyed_hash(graph.ids, 0).view(np.int64),
        "shares": np.full(n, 1.0 / max(n, 1), dtype=dtype),
        "indptr": edges.indptr,
        "indices": edges.indices.astype(np.int32),
        "forward": edges.forward,
        "backward": edges.backward,
        "reverse": edges.reverse.astype(np.int32),
        "x_indptr": graph.x.indptr,
        "x_columns": x_columns,
        "x_values": graph.x.data.astype(dtype, copy=False),
        "c_indptr": starts,
        "c_rows": c_rows,
        "c_values": c_values.astype(dtype, copy=False),
        "features": columns[order],
        "is_long": is_long,
    }
    return arrays, columns, places


def _ends(sizes: Sequence[int]) -> NDArray[np.int64]:
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


def _tiles(starts: NDArray[Any], ends: NDArray[Any], size: int) -> NDArray[np.int64]:
    """Cut every range into pieces of at most ``size``: ``[pieces, 2]``."""
    found = [np.zeros((0, 2), dtype=np.int64)]
    for start, end in zip(starts, ends, strict=True):
        first = np.arange(start, end, size)
        found.append(np.stack([first, np.minimum(first + size, end)], axis=1))
    return np.concatenate(found)


@njit(cache=True, nogil=True)
def _by_column(
    indptr: NDArray[np.int32],
    indices: NDArray[np.int32],
    data: NDArray[np.float32],
    place: NDArray[np.int32],
    num_columns: int,
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int32], NDArray[np.float32]]:
    """CSC of a CSR, its columns renumbered by ``place``, and the renumbered columns of the CSR."""
    columns = np.empty(len(indices), dtype=np.int32)
    starts = np.zeros(num_columns + 1, dtype=np.int64)
    for k in range(len(indices)):
        columns[k] = place[indices[k]]
        starts[columns[k] + 1] += 1
    starts = np.cumsum(starts)
    free = starts[:-1].copy()
    rows = np.empty(len(indices), dtype=np.int32)
    values = np.empty(len(indices), dtype=np.float32)
    for r in range(len(indptr) - 1):
        for k in range(indptr[r], indptr[r + 1]):
            at = free[columns[k]]
            free[columns[k]] += 1
            rows[at], values[at] = r, data[k]
    return starts, columns, rows, values
