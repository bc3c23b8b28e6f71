"""Rows for an index to take over: as arrays, Arrow, Parquet or lines of JSON."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from grapheraser.errors import MissingExtraError
from grapheraser.graph import Graph

# Rows that are written at once.
_BLOCK = 4096


@dataclass(frozen=True, eq=False)
class Changes:
    """The rows that moved between two versions, as they are in the later one.

    An index takes them over by an upsert, then drops what `gone` names; after that it is what one
    built afresh from all rows is.

    Attributes:
        ids: of nodes, or their names where they have them, in the order of ids.
        rows: float32 ``[len(ids), width]``, made when they are first asked for.
        since: the version that the index has; None: none, these are all rows.
        version: the version that it has after taking these over.
        log: the name of the run's log, which versions are counted in.
    """

    ids: NDArray[Any]
    since: int | None
    version: int
    log: str
    _graph: Graph = field(repr=False)
    _rows: Callable[[slice], NDArray[np.float32]] = field(repr=False)

    def __len__(self) -> int:
        return len(self.ids)

    @cached_property
    def rows(self) -> NDArray[np.float32]:
        return self._rows(slice(None))

    def part(self, start: int, stop: int) -> tuple[NDArray[Any], NDArray[np.float32]]:
        """Return some of the ids, and their rows alone.

        Args:
            start: the first of them.
            stop: the first after them.
        """
        return self.ids[start:stop], self._rows(slice(start, stop))

    def gone(self, known: ArrayLike) -> NDArray[Any]:
        """Return those of the ids (or names) that an index knows which are no longer in the graph.

        The run keeps no list of what it forgot; the index is asked instead.

        Args:
            known: all ids, or names, that the index has.
        """
        nodes = np.asarray(known)
        return nodes if len(nodes) == 0 else nodes[~self._graph.contains(self._graph.ids_of(nodes))]

    def to_arrow(self) -> Any:
        """Return a `pyarrow.Table` with the columns ``id`` and ``row``; versions as metadata."""
        try:
            import pyarrow as pa
        except ImportError as error:
            raise MissingExtraError.of("pyarrow", "tables", "Arrow and Parquet") from error

        named = self.ids.dtype.kind in "OU"
        ids = pa.array(
            self.ids.tolist() if named else self.ids, pa.string() if named else pa.int64()
        )
        flat = pa.array(np.ascontiguousarray(self.rows).reshape(-1))
        rows = pa.FixedSizeListArray.from_arrays(flat, self.rows.shape[1])
        told = {name: str(getattr(self, name)) for name in ("since", "version", "log")}
        return pa.table({"id": ids, "row": rows}).replace_schema_metadata(told)

    def to_parquet(self, path: str | Path) -> None:
        """Write that table to a file."""
        table = self.to_arrow()
        from pyarrow import parquet

        parquet.write_table(table, str(path))

    def to_jsonl(self, path: str | Path) -> None:
        """Write one line ``{"id": ..., "row": [...]}`` for each row."""
        with Path(path).open("w", encoding="utf-8") as file:
            for start in range(0, len(self), _BLOCK):
                for node, row in zip(*self.part(start, start + _BLOCK), strict=True):
                    # Nine digits give the same float32 back.
                    numbers = [float(f"{value:.9g}") for value in row.tolist()]
                    plain = node.item() if isinstance(node, np.generic) else node
                    file.write(json.dumps({"id": plain, "row": numbers}) + "\n")
