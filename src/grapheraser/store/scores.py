"""Scores of many nodes: parts that survive an interruption, then one file of them all.

A part is named by its number and the digest of its bytes. It is there whole or not at all, and one
that was altered is made again. What the parts are scores of is written down beside them: parts of
anything else, such as an earlier state of the run, are removed.
"""

from __future__ import annotations

import csv
import hashlib
import io
import os
import re
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from grapheraser.errors import CorruptRunError, MissingExtraError, ParameterError
from grapheraser.store.files import (
    TEMPORARY,
    failure_of,
    flush,
    make_folder,
    read_checked,
    read_result,
    remove,
    write_atomic,
    write_result,
)

# Columns of some rows, by name; those with two dimensions have one number per class.
Rows = Mapping[str, NDArray[Any]]
_PART = re.compile(r"(\d{6,})-([0-9a-f]{64})\.npy")
_CONTENTS = "contents.json"


class Parts:
    """The finished parts of a file that is being made; ``contents`` says what they are of."""

    def __init__(self, target: Path, contents: Mapping[str, Any]) -> None:
        self._folder = target.with_name(f"{target.name}.parts")
        make_folder(self._folder)
        self._digests: dict[int, str] = {}
        if read_result(self._folder / _CONTENTS) != contents:
            self._clear()
            write_result(self._folder / _CONTENTS, contents)
        for file in list(self._folder.iterdir()):
            if found := _PART.fullmatch(file.name):
                self._digests[int(found[1])] = found[2]
                if not self._is_whole(int(found[1])):
                    del self._digests[int(found[1])]
                    remove([file])

    def __contains__(self, number: int) -> bool:
        return number in self._digests

    def __len__(self) -> int:
        return len(self._digests)

    def write(self, number: int, array: NDArray[Any]) -> None:
        """Keep a part."""
        buffer = io.BytesIO()
        np.save(buffer, array, allow_pickle=False)
        content = buffer.getvalue()
        self._digests[number] = hashlib.sha256(content).hexdigest()
        write_atomic(self._file(number), content)

    def read(self, number: int) -> NDArray[Any]:
        """A part, checked against its digest."""
        content = read_checked(self._file(number), self._digests[number])
        return np.load(io.BytesIO(content), allow_pickle=False)

    def close(self) -> None:
        """Remove all parts, for good."""
        self._clear()
        with suppress(OSError):  # somebody else's file in it keeps the folder
            self._folder.rmdir()

    def _clear(self) -> None:
        ours = (_PART.fullmatch, re.compile(rf"{re.escape(_CONTENTS)}|.*{TEMPORARY}").fullmatch)
        remove([f for f in self._folder.iterdir() if any(is_one(f.name) for is_one in ours)])
        self._digests.clear()

    def _file(self, number: int) -> Path:
        return self._folder / f"{number:06}-{self._digests[number]}.npy"

    def _is_whole(self, number: int) -> bool:
        try:
            self.read(number)
        except (CorruptRunError, ValueError):
            return False
        return True


def score_format(path: Path) -> Callable[[Path, Iterable[Rows]], None]:
    """Return the function that writes a file of scores with this suffix."""
    formats = {".parquet": _write_parquet, ".csv": _write_csv, ".npz": _write_npz}
    if path.suffix not in formats:
        *others, last = formats
        raise ParameterError(
            f"scores go into a file that ends in {', '.join(others)} or {last}. Got {str(path)!r}."
        )
    if path.suffix == ".parquet":
        _parquet()
    return formats[path.suffix]


def _parquet() -> Any:
    try:
        import pyarrow.parquet
    except ImportError:
        raise MissingExtraError.of("pyarrow", "tables", "writing Parquet files") from None
    return pyarrow


def _write_parquet(path: Path, blocks: Iterable[Rows]) -> None:
    """One row group a block; posteriors are one list a row."""
    pa, blocks = _parquet(), iter(blocks)

    def table(rows: Rows) -> Any:
        return pa.table({name: _arrow(pa, column) for name, column in rows.items()})

    first = table(next(blocks))
    with _replacing(path) as file, pa.parquet.ParquetWriter(file, first.schema) as writer:
        for block in chain([first], map(table, blocks)):
            writer.write_table(block)


def _arrow(pa: Any, column: NDArray[Any]) -> Any:
    if column.ndim == 1:
        return pa.array(column)
    return pa.FixedSizeListArray.from_arrays(pa.array(column.reshape(-1)), column.shape[1])


def _write_csv(path: Path, blocks: Iterable[Rows]) -> None:
    """A line a node; posteriors are one column a class."""
    with _replacing(path) as file:
        text = io.TextIOWrapper(file, encoding="utf-8", newline="")
        writer = csv.writer(text, lineterminator="\n")
        for number, rows in enumerate(blocks):
            flat = {name: part for wide in rows.items() for name, part in _flat(*wide)}
            if number == 0:
                writer.writerow(flat)
            writer.writerows(zip(*flat.values(), strict=True))
        text.detach()  # what it still holds goes to the file


def _flat(name: str, column: NDArray[Any]) -> Iterator[tuple[str, list[Any]]]:
    """Columns of plain numbers and words; a float32 is written with the digits that tell it."""
    if column.ndim == 2:
        for place in range(column.shape[1]):
            yield from _flat(f"{name}_{place}", column[:, place])
    else:
        yield name, list(map(str, column)) if column.dtype == np.float32 else column.tolist()


def _write_npz(path: Path, blocks: Iterable[Rows]) -> None:
    """One array a column, all in memory."""
    parts = list(blocks)
    columns = {name: np.concatenate([rows[name] for rows in parts]) for name in parts[0]}
    plain = {
        name: column.astype(str) if column.dtype == object else column
        for name, column in columns.items()
    }
    with _replacing(path) as file:
        np.savez(file, allow_pickle=False, **plain)


@contextmanager
def _replacing(path: Path) -> Iterator[BinaryIO]:
    """A file to write to, which has its name once all of it is on the disk."""
    partial = path.with_name(f"{path.name}.{secrets.token_hex(4)}{TEMPORARY}")
    try:
        with open(partial, "wb") as file:
            yield file
        flush([partial])
        os.replace(partial, path)
    except OSError as error:
        raise failure_of(path, error) from error
    finally:
        partial.unlink(missing_ok=True)
