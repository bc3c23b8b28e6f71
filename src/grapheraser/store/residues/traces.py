"""Any file as pieces, and traces of forgotten data in them.

A piece is a file's bytes, or what is packed inside them. Nothing is unpickled, and nothing is
believed by its name: formats are told by their first bytes.
"""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import re
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import safetensors.numpy
from numpy.typing import NDArray
from safetensors import SafetensorError

from grapheraser.graph import Graph
from grapheraser.store import page_arrays, page_names
from grapheraser.store.residues.forgotten import Forgotten, Row

_DEPTH = 3
_UNPACK: dict[bytes, Callable[..., Any]] = {
    b"\x1f\x8b": gzip.open,
    b"BZh": bz2.open,
    b"\xfd7zXZ": lzma.open,
}
# Bytes that are unpacked of anything: no file of a run is packed, so one that is has been found.
_MAX_UNPACKED = 2**28


@dataclass(frozen=True, eq=False)
class Piece:
    """A file, or something packed in one."""

    name: str  # of the file, with the names inside it after a colon
    raw: bytes  # its bytes
    # The arrays in it, where it is a file of arrays.
    tensors: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    text: str | None = None  # its characters, where it is text
    names: tuple[str, ...] = ()  # of nodes, where it is a page that holds any


def pieces(name: str, raw: bytes, *, depth: int = 0) -> Iterator[Piece]:
    """The file itself, then what is packed in it, as deep as three levels."""
    yield Piece(name, raw, _tensors(raw), _text(raw), page_names(raw))
    if depth == _DEPTH:
        return
    for inner, content in _packed(raw):
        yield from pieces(f"{name}:{inner}", content, depth=depth + 1)


def _packed(raw: bytes) -> Iterator[tuple[str, bytes]]:
    for magic, unpack in _UNPACK.items():
        if raw.startswith(magic):
            try:
                with unpack(io.BytesIO(raw)) as content:
                    yield "unpacked", content.read(_MAX_UNPACKED)
            except (OSError, EOFError, zlib.error, lzma.LZMAError):
                return
    if b"PK\x03\x04" in raw[:4] and zipfile.is_zipfile(io.BytesIO(raw)):
        try:
            with zipfile.ZipFile(io.BytesIO(raw)) as archive:
                for member in archive.infolist():
                    if not member.is_dir():
                        with archive.open(member) as content:
                            yield member.filename, content.read(_MAX_UNPACKED)
        except (zipfile.BadZipFile, RuntimeError, NotImplementedError, zlib.error):
            return


def _tensors(raw: bytes) -> Mapping[str, NDArray[Any]]:
    if raw.startswith(b"\x93NUMPY"):
        try:
            return {"": np.load(io.BytesIO(raw), allow_pickle=False)}
        except (ValueError, EOFError, MemoryError):
            return {}
    if raw[8:9] == b"{":
        try:
            return dict(safetensors.numpy.load(raw))
        except (SafetensorError, ValueError, KeyError, TypeError):
            return {}
    return page_arrays(raw)


def _text(raw: bytes) -> str | None:
    if b"\0" in raw[:4096]:
        return None
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return None


# Shorter patterns of bytes turn up by chance.
_FEWEST_COLUMNS, _FEWEST_BYTES = 4, 6
_NUMBER = re.compile(r"(?<![\w.])\d+(?![\w.])")
_NAMED_IDS = re.compile(
    r"\b(?:nodes?|ids?|vertex|vertices|edges?|ties?|users?)\b[^\d\n]{0,12}((?:\d+[\s,;\-\[\]()]*)+)",
    re.IGNORECASE,
)
_PAIR = r"(?<![\w.]){}[\s,;\-:|]{{1,3}}{}(?![\w.])"


@dataclass(frozen=True)
class Trace:
    """One thing found in a piece: what sort, and what in words."""

    kind: str
    what: str


def traces_of_posteriors(piece: Piece, graph: Graph) -> Iterator[Trace]:
    """Arrays that look like answers of a model: one probability per class in every row."""
    for name, array in piece.tensors.items():
        if array.ndim < 2 or array.dtype.kind != "f" or array.shape[-1] != graph.num_classes:
            continue
        rows = array.reshape(-1, graph.num_classes).astype(np.float64)
        if len(rows) and (rows >= 0).all() and np.allclose(rows.sum(axis=1), 1, atol=1e-3):
            what = f"{len(rows)} posteriors that the run does not name"
            yield Trace("stale posterior", what + (f" ('{name}')" if name else ""))


def traces_of_ids(piece: Piece, graph: Graph, sought: Forgotten) -> Iterator[Trace]:
    """Forgotten ids, and ids that the graph does not have, in a file that is not the run's."""
    if piece.text is not None:
        numbers = {int(number) for number in _NUMBER.findall(piece.text)}
        for node in sorted(numbers & sought.nodes):
            yield Trace("id", f"node {node}")
        named = {
            int(number)
            for found in _NAMED_IDS.findall(piece.text)
            for number in re.findall(r"\d+", found)
        }
        unknown = {i for i in named - sought.nodes if i < 2**63}
        absent = [i for i in sorted(unknown) if not graph.contains([i])[0]]
        if absent:
            yield Trace("id", f"{len(absent)} ids that are not in the graph")
    for name, array in piece.tensors.items():
        if array.dtype.kind in "iu":
            hits = sorted(sought.nodes & set(np.unique(array).tolist()))
            if hits:
                listed = ", ".join(map(str, hits[:5])) + (", ..." if len(hits) > 5 else "")
                yield Trace("id", f"node {listed} in an array" + (f" '{name}'" if name else ""))


def traces_of_names(piece: Piece, sought: Forgotten, *, own: bool) -> Iterator[Trace]:
    """Forgotten names: in pages as such, elsewhere as words, or as bytes that are long enough.

    Words of the run's own files are settings: there only names of some length are looked for.
    """
    for name in sorted(sought.names):
        content = name.encode()
        long = len(content) >= _FEWEST_BYTES
        if piece.text is None:
            found = name in piece.names or (long and content in piece.raw)
        else:
            spellings = (name, json.dumps(name)[1:-1])
            found = (long or not own) and any(
                re.search(rf"(?<!\w){re.escape(spelling)}(?!\w)", piece.text)
                for spelling in spellings
            )
        if found:
            yield Trace("name", f"node {name!r}")


def traces_of_rows(
    piece: Piece, graph: Graph, sought: Forgotten, *, integers: bool
) -> Iterator[Trace]:
    """Forgotten feature rows, in binary or in text; ``integers`` says to look for bare columns."""
    for node, row in sorted(sought.rows.items()):
        patterns = _row_patterns(row, graph.num_features, integers=integers)
        in_text = piece.text is not None and _columns_in_text(row).search(piece.text)
        if in_text or any(pattern in piece.raw for pattern in patterns):
            yield Trace("feature row", f"of node {node}")


def traces_of_edges(piece: Piece, sought: Forgotten) -> Iterator[Trace]:
    """Forgotten edges, as two ids side by side, in a file that is not the run's."""
    for u, v in sorted(sought.edges):
        in_text = piece.text is not None and any(
            re.search(_PAIR.format(a, b), piece.text) for a, b in ((u, v), (v, u))
        )
        if in_text or any(_adjacent(array, u, v) for array in piece.tensors.values()):
            yield Trace("edge", f"{u}-{v}")


def _row_patterns(row: Row, width: int, *, integers: bool) -> Iterator[bytes]:
    """The row as bytes: its columns as integers, and the dense row as numbers, as it may lie."""
    if len(row.columns) < _FEWEST_COLUMNS:
        return
    if integers:
        for dtype in ("<i4", "<i8"):
            yield np.array(row.columns, dtype=dtype).tobytes()
    dense = row.dense(width)[row.columns[0] : row.columns[-1] + 1]
    whole = np.array_equal(dense, np.trunc(dense))
    for dtype in ("<f4", "<f8", "<f2", "<i1", "<i8"):
        pattern = dense.astype(dtype).tobytes() if "f" in dtype or whole else b""
        if len(pattern) >= 16:
            yield pattern


def _columns_in_text(row: Row) -> re.Pattern[str]:
    """The row's columns one after another, with anything but digits (or values) between them."""
    if len(row.columns) < _FEWEST_COLUMNS:
        return re.compile(r"(?!)")
    between = r"(?:[\s,;|\[\]()\"':]+(?:[\d.]+[\s,;|\[\]()\"']+)??)"
    return re.compile(r"(?<![\w.])" + between.join(map(str, row.columns)) + r"(?![\w.])")


def _adjacent(array: NDArray[Any], u: int, v: int) -> bool:
    """Tell whether two ids stand side by side in a row or a column of an integer array."""
    if array.dtype.kind not in "iu" or array.ndim == 0 or array.size < 2:
        return False
    tables = [array] if array.ndim > 1 else [array[None, :]]
    if array.ndim == 2:
        tables.append(array.T)
    for table in tables:
        left, right = table[..., :-1], table[..., 1:]
        if (((left == u) & (right == v)) | ((left == v) & (right == u))).any():
            return True
    return False
