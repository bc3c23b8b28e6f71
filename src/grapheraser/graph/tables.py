"""Tables by column, from CSV and Parquet files or from memory; errors name the line."""

from __future__ import annotations

import csv
import gzip
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

import numpy as np
from numpy.typing import NDArray

from grapheraser.errors import GraphError, MissingExtraError

PARQUET = (".parquet", ".pq")
DELIMITERS = ",\t; "


@dataclass(frozen=True, eq=False)
class Table:
    """Columns of the same length.

    Attributes:
        name: for messages: the file, or what the table holds.
        columns: by name, in order; strings where they come from text.
        lines: where each row is in the file; None where rows are counted from 0.
    """

    name: str
    columns: Mapping[str, Sequence[Any]]
    lines: Sequence[int] | None = None

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), ()))

    def place(self, row: int) -> str:
        """Where a row is, for messages."""
        return f"{self.name}, row {row}" if self.lines is None else f"{self.name}:{self.lines[row]}"

    def column(self, name: str, option: str) -> Sequence[Any]:
        """A column that has to be there; ``option`` chooses another one."""
        if name not in self.columns:
            raise GraphError(
                f"{self.name}: there is no column '{name}' (found {', '.join(self.columns)}).",
                hint=f"name the column with '{option}'.",
            )
        return self.columns[name]

    def numbers(self, name: str) -> NDArray[np.float64]:
        """A column of finite numbers ``[n]``, or of rows of them ``[n, k]``."""
        values = self.columns[name]
        try:
            found = np.array([_number(value) for value in values], dtype=np.float64)
        except (TypeError, ValueError):
            found = self._slowly(name)
        wrong = ~np.isfinite(found).reshape(len(found), -1).all(axis=1)
        if wrong.any():
            self._refuse(name, int(np.flatnonzero(wrong)[0]))
        return found

    def _slowly(self, name: str) -> NDArray[np.float64]:
        """The same with an error for the first value that is no number, or of another length."""
        shape = None
        rows = []
        for row, value in enumerate(self.columns[name]):
            try:
                one = np.array(_number(value), dtype=np.float64)
            except (TypeError, ValueError):
                self._refuse(name, row)
            shape = one.shape if shape is None else shape
            if one.shape != shape or one.ndim > 1:
                raise GraphError(
                    f"{self.place(row)}: column '{name}' must have the shape {list(shape)} "
                    f"everywhere (found {list(one.shape)})."
                )
            rows.append(one)
        return np.array(rows, dtype=np.float64)

    def _refuse(self, name: str, row: int) -> None:
        value = self.columns[name][row]
        what = "nothing" if value is None or value == "" else repr(value)
        raise GraphError(
            f"{self.place(row)}: column '{name}' must be finite numbers (found {what}).",
            hint="fill the gaps first, or leave the column out of the features.",
        )


def _number(value: Any) -> Any:
    if isinstance(value, str):
        return float(value)
    if isinstance(value, list | tuple | np.ndarray):
        return [_number(part) for part in value]
    if value is None or isinstance(value, bool):
        raise ValueError
    return float(value)


def is_missing(value: Any) -> bool:
    """Whether a cell holds nothing: empty text, None or NaN."""
    return value is None or value == "" or (isinstance(value, float) and math.isnan(value))


def table_of(source: Any, name: str) -> Table:
    """A table from a path, a mapping of columns, or a frame of pandas, polars or Arrow.

    Args:
        source: see there.
        name: what it holds, for messages about tables in memory.
    """
    if isinstance(source, str | Path):
        path = Path(source)
        return _read_parquet(path) if path.suffix in PARQUET else _read_csv(path)
    if hasattr(source, "column_names") and hasattr(source, "column"):  # Arrow
        columns = {str(key): source.column(key).to_pylist() for key in source.column_names}
    elif isinstance(source, Mapping) or hasattr(source, "columns"):
        keys = source if isinstance(source, Mapping) else source.columns
        columns = {str(key): _listed(source[key]) for key in keys}
    else:
        raise GraphError(
            f"the {name} must be the path of a table, a frame, or a mapping of columns "
            f"(found {type(source).__name__})."
        )
    lengths = {len(column) for column in columns.values()}
    if len(lengths) > 1:
        raise GraphError(f"the columns of the {name} must have one length (found {lengths}).")
    return Table(f"the {name}", columns)


def _listed(column: Any) -> Sequence[Any]:
    plain = column.tolist() if hasattr(column, "tolist") else list(column)
    return [_plain(value) for value in plain]


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _read_parquet(path: Path) -> Table:
    try:
        import pyarrow.parquet
    except ImportError:
        raise MissingExtraError.of("pyarrow", "tables", "reading Parquet files") from None
    try:
        found = pyarrow.parquet.read_table(path)
    except FileNotFoundError:
        raise GraphError(f"{path}: no such file.") from None
    except (OSError, pyarrow.ArrowException) as error:
        raise GraphError(f"{path}: not a readable Parquet file ({error}).") from error
    return Table(str(path), table_of(found, "table").columns)


def _read_csv(path: Path) -> Table:
    try:
        with opened(path) as file:
            head = file.readline()
            while head.startswith("#"):
                head = file.readline()
            delimiter = next((mark for mark in DELIMITERS if mark in head), ",")
            file.seek(0)
            return _of_rows(path, csv.reader(_uncommented(file), delimiter=delimiter, strict=True))
    except FileNotFoundError:
        raise GraphError(f"{path}: no such file.") from None
    except (OSError, EOFError, UnicodeDecodeError, csv.Error) as error:
        raise GraphError(f"{path}: not a readable table ({error}).") from error


def opened(path: Path) -> TextIO:
    """A text file, compressed or not."""
    if path.suffix == ".gz":
        return gzip.open(path, "rt", encoding="utf-8-sig", newline="")
    return open(path, encoding="utf-8-sig", newline="")


def _uncommented(file: TextIO) -> Iterator[str]:
    """The lines of a file; those of a comment at its top are empty."""
    top = True
    for line in file:
        top = top and line.startswith("#")
        yield "\n" if top else line


def _of_rows(path: Path, reader: Any) -> Table:
    """A table of the rows of a CSV file, whose first one names the columns."""
    header: list[str] = []
    rows, lines = [], []
    for row in reader:
        if not row:
            continue
        if not header:
            header = [name.strip() for name in row]
            continue
        if len(row) != len(header):
            raise GraphError(
                f"{path}:{reader.line_num}: a row has {len(header)} columns, as the first line has "
                f"(found {len(row)})."
            )
        rows.append(row)
        lines.append(reader.line_num)
    if not header:
        raise GraphError(f"{path}: an empty file.")
    twice = [name for name in header if header.count(name) > 1]
    if twice:
        raise GraphError(f"{path}: the column '{twice[0]}' is there twice.")
    columns = zip(*rows, strict=True) if rows else [() for _ in header]
    return Table(str(path), dict(zip(header, columns, strict=True)), lines)


def headless(table: Table, names: Sequence[str]) -> Table:
    """The table whose first row was taken for the names of its columns."""
    found = zip(names, table.columns.items(), strict=False)
    columns = {name: (first, *rest) for name, (first, rest) in found}
    lines = table.lines or [2]
    return Table(table.name, columns, [lines[0] - 1, *(table.lines or ())])
