"""Memory for a large graph that is read: a file without a name, mapped.

What was read and checked is put there, so the system can write it out and take the memory back, and
nobody else can change it meanwhile. A part is overwritten when the last graph that holds it goes,
and the file goes with the process, however that ends.
"""

from __future__ import annotations

import contextlib
import ctypes
import mmap
import os
import weakref
from pathlib import Path
from tempfile import TemporaryFile
from types import TracebackType
from typing import Self

from grapheraser.store.files import failure_of

# Graphs of so many bytes are put there; smaller ones are held as they are read.
LARGE = 2**30
_CHUNK = 2**26


class Spool:
    """A file without a name, in a folder or, where that can't be written to, a temporary one.

    What was put there inside its ``with`` block outlives it.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._chunk: mmap.mmap | None = None
        self._begin = self._at = self._end = 0

    def __enter__(self) -> Self:
        try:
            self._file = TemporaryFile(dir=self._folder)
        except OSError:
            self._file = TemporaryFile()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._file.close()  # maps keep what they need

    def put(self, content: bytes) -> memoryview:
        """Put bytes into the file and map them; they are overwritten once nobody holds them."""
        size, chunk = len(content), self._chunk
        room = size + -size % mmap.PAGESIZE  # whole pages of memory, which can be given back
        if chunk is None or self._begin + self._at + room > self._end:
            chunk = self._chunk = self._next(room)
        try:
            written = os.pwrite(self._file.fileno(), content, self._begin + self._at)
        except OSError as error:
            raise failure_of(self._folder / "memory", error, "nothing was changed") from error
        assert written == size
        # Unlike a slice of a memoryview, every array that is made of it holds on to this object.
        part = (ctypes.c_ubyte * room).from_buffer(chunk, self._at)
        gone = weakref.finalize(part, _overwrite, chunk, self._at, room)
        gone.atexit = False
        self._at += room
        return memoryview(part).cast("B").toreadonly()[:size]

    def _next(self, least: int) -> mmap.mmap:
        """Map another part of the file."""
        length = max(_CHUNK, least)
        self._begin, self._at = self._end, 0
        self._end += length
        self._file.truncate(self._end)
        return mmap.mmap(self._file.fileno(), length, offset=self._begin)


def _overwrite(chunk: mmap.mmap, at: int, room: int) -> None:
    """Put zeros in the place of a part, and give its blocks back."""
    chunk[at : at + room] = bytes(room)
    if hasattr(mmap, "MADV_REMOVE"):
        with contextlib.suppress(OSError):  # zeros are enough where the system can't
            chunk.madvise(mmap.MADV_REMOVE, at, room)
