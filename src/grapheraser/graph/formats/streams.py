"""Graphs that are read block by block, where they would not fit into memory at once.

A stream gives nodes and edges as they come. What it can't read that way (names, words for classes,
weights, a malformed row) it leaves to `Graph.from_file`, which holds all in memory and says what is
wrong and where.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from grapheraser.graph.formats import ogb
from grapheraser.graph.formats.tables import PARQUET, head_of, opened
from grapheraser.graph.roles import ROLE_OF, UNLABELLED

ROWS = 1 << 16  # nodes or edges that are read at once


class UnstreamableError(Exception):
    """A graph that can't be read block by block."""


class NodeBlock(NamedTuple):
    """Some nodes."""

    ids: NDArray[np.int64]  # int64 ``[m]``
    y: NDArray[np.int64]  # int64, classes; -1 where the label is not known
    # Int8; None: training nodes where the label is known, else context nodes.
    role: NDArray[np.int8] | None
    x: NDArray[np.float32] | sp.csr_array  # float32 ``[m, num_features]``, dense or CSR


class Stream(Protocol):
    """A graph without weights, directions or names, block by block.

    Attributes:
        signature: what is read, as JSON; the same for the same content.
        name: for people.
        num_classes: where they are known from the start.
        each_edge_once: whether every edge is listed in one direction only.
    """

    @property
    def signature(self) -> Mapping[str, Any]: ...
    @property
    def name(self) -> str: ...
    @property
    def num_classes(self) -> int | None: ...
    @property
    def each_edge_once(self) -> bool: ...

    def node_blocks(self) -> Iterator[NodeBlock]:
        """Yield all nodes, in any order."""

    def edge_blocks(self) -> Iterator[NDArray[np.int64]]:
        """Yield all edges by id ``[m, 2]``, in the same blocks every time."""


def signature_of(*files: Path | None, **options: Any) -> dict[str, Any]:
    """Return what tells changed files from others: sizes and times."""
    found = [file.stat() for file in files if file is not None]
    stats = [[stat.st_size, stat.st_mtime_ns] for stat in found]
    return {"files": [str(file) for file in files], "stats": stats, "options": options}


def _declared(num_classes: int | None) -> dict[str, int]:
    """Return the number of classes as an option, where the user declared it."""
    return {} if num_classes is None else {"num_classes": num_classes}


# -- tables -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TableStream:
    """A table of nodes and one of edges, CSV or Parquet, with whole numbers for ids and classes."""

    # nodes, edges: the files.
    nodes: Path
    edges: Path
    name: str
    columns: Mapping[str, str]  # which column is what, where it has another name than the usual one
    features: Sequence[str] | None = None  # columns of features; default all others
    num_classes: int | None = None
    each_edge_once: bool = True

    @property
    def signature(self) -> Mapping[str, Any]:
        options = {"columns": dict(self.columns), "features": self.features}
        return signature_of(self.nodes, self.edges, **options, **_declared(self.num_classes))

    def node_blocks(self) -> Iterator[NodeBlock]:
        """See `Stream`."""
        id_, label, split = (self.columns.get(name, name) for name in ("id", "label", "split"))
        for block in _table_blocks(self.nodes):
            if id_ not in block:
                raise UnstreamableError(f"no column '{id_}'")
            others = [name for name in block if name not in (id_, label, split)]
            chosen = list(self.features or others)
            if not chosen or set(chosen) != set(others):
                raise UnstreamableError("no features, or columns that are not used")
            x = np.stack([_floats(block[name]) for name in chosen], axis=1)
            ids = _wholes(block[id_])
            known = label in block
            y = _classes(block[label]) if known else np.full(len(ids), UNLABELLED)
            yield NodeBlock(ids, y, _roles(block[split]) if split in block else None, x)

    def edge_blocks(self) -> Iterator[NDArray[np.int64]]:
        """See `Stream`."""
        ends = [self.columns.get(name, name) for name in ("source", "target")]
        for block in _table_blocks(self.edges, pairs=True):
            if list(block) != ends:
                raise UnstreamableError("edges that carry something, or other columns")
            yield np.stack([_wholes(block[name]) for name in ends], axis=1)


def _table_blocks(path: Path, *, pairs: bool = False) -> Iterator[dict[str, Any]]:
    """Columns of a table, block by block; ``pairs`` may come without a header."""
    if path.suffix in PARQUET:
        yield from parquet_blocks(path)
        return
    with opened(path) as file:
        head, delimiter = head_of(file)
        names = [name.strip() for name in next(csv.reader([head], delimiter=delimiter), [])]
        rows: Iterator[list[str]] = (row for row in csv.reader(file, delimiter=delimiter) if row)
        if pairs and len(names) == 2 and all(name.isdigit() for name in names):
            first = [names]
            names = ["source", "target"]
        else:
            first = []
        if len(set(names)) < len(names):
            raise UnstreamableError("a column that is there twice")
        while block := [*first, *islice(rows, ROWS)]:
            first = []
            try:
                yield dict(zip(names, zip(*block, strict=True), strict=True))
            except ValueError as error:
                raise UnstreamableError(f"rows of several lengths ({error})") from error


def parquet_blocks(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the columns of a Parquet file, block by block."""
    try:
        import pyarrow.parquet
    except ImportError as error:
        raise UnstreamableError("pyarrow") from error
    try:
        with pyarrow.parquet.ParquetFile(path) as file:
            for batch in file.iter_batches(ROWS):
                columns = zip(batch.schema.names, batch.columns, strict=True)
                yield {name: column.to_numpy(zero_copy_only=False) for name, column in columns}
    except (OSError, pyarrow.ArrowException) as error:
        raise UnstreamableError(str(error)) from error


def _wholes(values: Any) -> NDArray[np.int64]:
    array = np.asarray(values)
    try:
        if array.dtype.kind not in "iuU":
            raise UnstreamableError("ids that are no whole numbers")
        found = array.astype(np.int64)
    except (ValueError, OverflowError) as error:
        raise UnstreamableError(str(error)) from error
    if array.dtype.kind == "U" and not np.array_equal(found.astype(array.dtype), array):
        raise UnstreamableError("ids that are no plain numbers")
    return found


def _floats(values: Any) -> NDArray[np.float32]:
    try:
        return np.asarray(values).astype(np.float64).astype(np.float32)
    except (ValueError, TypeError) as error:
        raise UnstreamableError(str(error)) from error


def _classes(values: Any) -> NDArray[np.int64]:
    array = np.asarray(values)
    if array.dtype.kind == "U":
        array = np.where(array == "", str(UNLABELLED), array)
    if array.dtype.kind == "f":
        if not np.isnan(array).any():  # gaps make floats of whole numbers
            raise UnstreamableError("labels that are floats")
        array = np.where(np.isnan(array), UNLABELLED, array)
        if (array != np.trunc(array)).any():
            raise UnstreamableError("labels that are no classes")
        return array.astype(np.int64)
    return _wholes(array)


def _roles(values: Any) -> NDArray[np.int8]:
    words = ["" if value is None else str(value).strip().lower() for value in values]
    try:
        return np.array([ROLE_OF[word] for word in words], dtype=np.int8)
    except KeyError as error:
        raise UnstreamableError(f"a split {error}") from error


# -- OGB ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class OgbStream:
    """A folder of OGB; see `graph.formats.ogb`."""

    folder: Path
    name: str
    split: str | None = None
    num_classes: int | None = None
    each_edge_once: bool = False

    @property
    def signature(self) -> Mapping[str, Any]:
        raw = self.folder / "raw"
        files = [raw / f"{name}.csv.gz" for name in ("edge", "node-feat", "node-label")]
        there = (file for file in files if file.exists())
        return signature_of(*there, split=self.split, **_declared(self.num_classes))

    def node_blocks(self) -> Iterator[NodeBlock]:
        """See `Stream`."""
        raw = self.folder / "raw"
        if (raw / "edge-feat.csv.gz").exists() or not (raw / "node-feat.csv.gz").exists():
            raise UnstreamableError("edges that carry something, or no features")
        end, labels = 0, ogb.labels_of(raw)
        parts = ogb.split_of(self.folder / "split", self.split)
        for x in ogb.number_blocks(raw / "node-feat.csv.gz", np.float32, ROWS):
            ids = np.arange(end, end + len(x))
            if labels is not None and len(labels) < end + len(x):
                raise UnstreamableError("fewer labels than nodes")
            end += len(x)
            y = np.full(len(ids), UNLABELLED) if labels is None else labels[ids]
            role = np.zeros(len(ids), dtype=np.int8) if parts else None
            for part, nodes in parts.items():
                assert role is not None
                role[np.isin(ids, nodes)] = ROLE_OF[part]
            yield NodeBlock(ids, y, role, x)

    def edge_blocks(self) -> Iterator[NDArray[np.int64]]:
        """See `Stream`."""
        for block in ogb.number_blocks(self.folder / "raw" / "edge.csv.gz", np.int64, ROWS):
            if block.shape[1] != 2:
                raise UnstreamableError("edges of other than two ends")
            yield block
