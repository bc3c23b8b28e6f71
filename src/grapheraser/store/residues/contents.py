"""Any file as pieces that can be searched: its bytes, and what is packed inside them.

Nothing is unpickled, and nothing is believed by its name: formats are told by their first bytes.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import safetensors.numpy
from numpy.typing import NDArray
from safetensors import SafetensorError

from grapheraser.store import page_arrays, page_names

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
