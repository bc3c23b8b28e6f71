"""Tables by column, from CSV and Parquet files or from memory; errors name the line."""

from __future__ import annotations

import csv
import gzip
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn, TextIO

import numpy as np
from numpy.typing import NDArray

from grapheraser.errors import GraphError, MissingExtraError

PARQUET = (".parquet", ".pq")
DELIMITERS = ",\t; "
_BOOLEANS = {"true": 1.0, "false": 0.0}


@dataclass(frozen=True, eq=False)
class Table:
    """Columns of the same length."""

    name: str  # for messages: the file, or what the table holds
    columns: Mapping[str, Sequence[Any]]  # by name, in order; strings where they come from text
    # Where each row is in the file; None where rows are counted from 0.
    lines: Sequence[int] | None = None
    # Of the columns whose type has some.
    categories: Mapping[str, Sequence[Any]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), ()))

    def place(self, row: int) -> str:
        """Name the place of a row, for messages."""
        return f"{self.name}, row {row}" if self.lines is None else f"{self.name}:{self.lines[row]}"

    def column(self, name: str, option: str) -> Sequence[Any]:
        """Return a column that has to be there; ``option`` chooses another one."""
        if name not in self.columns:
            raise GraphError(
                f"{self.name}: there is no column '{name}' (found {', '.join(self.columns)}).",
                hint=f"name the column with '{option}'.",
            )
        return self.columns[name]

    def numbers(self, name: str, rows: NDArray[np.bool_] | None = None) -> NDArray[np.float64]:
        """Read a column of finite numbers, or of rows of them ``[n, k]``; ``rows``: only these."""
        every = range(len(self)) if rows is None else np.flatnonzero(rows).tolist()
        values = self.columns[name]
        try:
            found = np.array([_number(values[row]) for row in every], dtype=np.float64)
        except (TypeError, ValueError):
            found = self._slowly(name, every)
        found = found.reshape(len(found), -1) if len(found) else found.reshape(0, 1)
        wrong = ~np.isfinite(found).all(axis=1)
        if wrong.any():
            self.refuse(name, every[int(np.flatnonzero(wrong)[0])])
        return found

    def _slowly(self, name: str, rows: Sequence[int]) -> NDArray[np.float64]:
        """Read value by value; refuse the first that is no number, or of another length."""
        shape = None
        found = []
        for row in rows:
            try:
                one = np.array(_number(self.columns[name][row]), dtype=np.float64)
            except (TypeError, ValueError):
                self.refuse(name, row)
            shape = one.shape if shape is None else shape
            if one.shape != shape or one.ndim > 1:
                raise GraphError(
                    f"{self.place(row)}: column '{name}' must have the shape {list(shape)} "
                    f"everywhere (found {list(one.shape)})."
                )
            found.append(one)
        return np.array(found, dtype=np.float64)

    def refuse(self, name: str, row: int) -> NoReturn:
        """Raise the error that a cell is no finite number."""
        value = self.columns[name][row]
        what = "nothing" if is_missing(value) else repr(value)
        raise GraphError(
            f"{self.place(row)}: column '{name}' must be finite numbers (found {what}).",
            hint=_hint(name, value),
        )


def _hint(name: str, value: Any) -> str:
    if is_missing(value):
        return "missing='mean', 'zero' or 'indicator' fills gaps; or leave the column out."
    if isinstance(value, str):
        return f"correct the cell; or, if these are categories, categories={{{name!r}: [...]}}."
    return "make numbers of the column, or leave it out of the features."


def _number(value: Any) -> Any:
    if isinstance(value, str):
        word = value.strip().lower()
        return _BOOLEANS[word] if word in _BOOLEANS else float(value)
    if isinstance(value, list | tuple | np.ndarray):
        return [_number(part) for part in value]
    if value is None:
        raise ValueError
    return float(value)


def is_number(value: Any) -> bool:
    """Tell whether a cell is a number or a boolean, as such or as text."""
    try:
        return np.ndim(_number(value)) == 0
    except (TypeError, ValueError):
        return False


def is_missing(value: Any) -> bool:
    """Tell whether a cell holds nothing: empty text, None, NaN, or what pandas has for that."""
    if isinstance(value, str):
        return value == ""
    nan = isinstance(value, float) and math.isnan(value)
    return value is None or nan or type(value).__name__ in ("NAType", "NaTType")


def is_table(source: Any) -> bool:
    """Tell whether something in memory is a frame, an Arrow table or a mapping of columns."""
    return isinstance(source, Mapping) or hasattr(source, "columns")  # Arrow has these too


def table_of(source: Any, name: str) -> Table:
    """Make a table from a path, a mapping of columns, or a frame of pandas, polars or Arrow.

    Messages about one in memory name what it holds.
    """
    if isinstance(source, str | Path):
        path = Path(source)
        return _read_parquet(path) if path.suffix in PARQUET else _read_csv(path)
    categories = {}
    if hasattr(source, "column_names") and hasattr(source, "column"):  # Arrow
        columns = {str(key): source.column(key).to_pylist() for key in source.column_names}
    elif isinstance(source, Mapping) or hasattr(source, "columns"):
        keys = source if isinstance(source, Mapping) else source.columns
        columns = {str(key): _listed(source[key]) for key in keys}
        types = {str(key): getattr(source[key], "dtype", None) for key in keys}
        found = {key: getattr(type_, "categories", None) for key, type_ in types.items()}
        categories = {
            key: _listed(all_) for key, all_ in found.items() if hasattr(all_, "__iter__")
        }
    else:
        raise GraphError(
            f"the {name} must be the path of a table, a frame, or a mapping of columns "
            f"(found {type(source).__name__})."
        )
    lengths = {len(column) for column in columns.values()}
    if len(lengths) > 1:
        raise GraphError(f"the columns of the {name} must have one length (found {lengths}).")
    return Table(f"the {name}", columns, categories=categories)


def _listed(column: Any) -> Sequence[Any]:
    plain = column.tolist() if hasattr(column, "tolist") else list(column)
    return [value.item() if isinstance(value, np.generic) else value for value in plain]


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
            _, delimiter = head_of(file)
            file.seek(0)
            return _of_rows(path, csv.reader(_uncommented(file), delimiter=delimiter, strict=True))
    except FileNotFoundError:
        raise GraphError(f"{path}: no such file.") from None
    except (OSError, EOFError, UnicodeDecodeError, csv.Error) as error:
        raise GraphError(f"{path}: not a readable table ({error}).") from error


def opened(path: Path) -> TextIO:
    """Open a text file, compressed or not."""
    if path.suffix == ".gz":
        return gzip.open(path, "rt", encoding="utf-8-sig", newline="")
    return open(path, encoding="utf-8-sig", newline="")


def head_of(file: TextIO) -> tuple[str, str]:
    """Read the first line of a table that is no comment, and what is between its cells."""
    head = next((line for line in iter(file.readline, "") if not line.startswith("#")), "")
    return head, next((mark for mark in DELIMITERS if mark in head), ",")


def _uncommented(file: TextIO) -> Iterator[str]:
    """Yield the lines of a file; those of a comment at its top are empty."""
    top = True
    for line in file:
        top = top and line.startswith("#")
        yield "\n" if top else line


def _of_rows(path: Path, reader: Any) -> Table:
    """Make a table of the rows of a CSV file, whose first one names the columns."""
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
    """Return a table whose first row was taken for the names of its columns, with that row."""
    found = zip(names, table.columns.items(), strict=False)
    columns = {name: (first, *rest) for name, (first, rest) in found}
    lines = table.lines or [2]
    return Table(table.name, columns, [lines[0] - 1, *(table.lines or ())])
