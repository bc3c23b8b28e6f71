"""Write files whole: a crash, a full disk or a second process never leaves half of one."""

from __future__ import annotations

import errno
import hashlib
import io
import os
import secrets
import stat
import sys
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Self

from grapheraser.errors import CorruptRunError, ParameterError, StorageFullError, StoreError

TEMPORARY = ".partial"
FLUSHERS = 16  # threads; the system combines flushes that wait side by side
_MANY = 512  # from here on flushing the whole system is quicker
_UNDATED = (315_532_800, 315_532_800)  # the year 1980, which every archive can hold
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
# A link or a pipe in the place of a file is refused, not followed or waited for.
_PLAIN = os.O_RDONLY
for _flag in ("O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC", "O_BINARY"):
    _PLAIN |= getattr(os, _flag, 0)


class Batch:
    """New files: written under temporary names, flushed to the disk together, then renamed.

    Leaves nothing behind of the files that were not renamed when its ``with`` block ends.

    Args:
        dated: whether a file may tell when it was written.
    """

    def __init__(self, *, dated: bool = True) -> None:
        self._dated = dated
        self._waiting: list[tuple[Path, Path]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for partial, _ in self._waiting:
            with suppress(OSError):
                partial.unlink()
        self._waiting.clear()

    def write(self, path: Path, content: bytes) -> None:
        """Write one file; it has its name after `commit`."""
        partial = path.with_name(f"{path.name}.{secrets.token_hex(4)}{TEMPORARY}")
        self._waiting.append((partial, path))
        try:
            with open(partial, "wb") as file:
                file.write(content)
                if not self._dated:
                    file.flush()
                    os.utime(file.fileno(), _UNDATED)
        except OSError as error:
            raise failure_of(path, error) from error

    def commit(self, *others: Path) -> None:
        """Flush all files, and others beside them, then give them their names."""
        path = self._waiting[0][1]
        try:
            flush({*(partial for partial, _ in self._waiting), *others})
            while self._waiting:
                partial, path = self._waiting[-1]
                os.replace(partial, path)
                self._waiting.pop()
        except OSError as error:
            raise failure_of(path, error) from error


def write_atomic(path: Path, content: bytes) -> None:
    """Write under a temporary name, flush to the disk, then rename."""
    with Batch() as batch:
        batch.write(path, content)
        batch.commit()


def flush(paths: Collection[Path]) -> None:
    """Make the content of files, and the names in folders, durable."""
    if len(paths) > _MANY and sys.platform == "linux":
        os.sync()  # waits, on this system, until everything is on the disk
    else:
        _each(_flush, paths)


def _each(change: Callable[[Path], None], paths: Collection[Path]) -> None:
    """Carry out a change of each file, side by side: most of the time is spent waiting."""
    if min(len(paths), FLUSHERS) <= 1:
        for path in paths:
            change(path)
    else:
        some = list(paths)
        parts = [some[first::FLUSHERS] for first in range(min(len(some), FLUSHERS))]
        waiting = [_flushers().submit(_all_of, change, part) for part in parts]
        try:
            wait(waiting)
        finally:
            wait(waiting)  # whatever interrupts this, nothing goes on behind the caller's back
        for error in (error for done in waiting for error in done.result()):
            raise error


def _all_of(change: Callable[[Path], None], paths: Collection[Path]) -> list[Exception]:
    """Carry out a change of each file, whatever becomes of the others; returns what went wrong."""
    errors: list[Exception] = []
    for path in paths:
        try:
            change(path)
        except Exception as error:
            errors.append(error)
    return errors


@cache
def _flushers() -> ThreadPoolExecutor:
    """Kept from one save to the next: starting threads takes longer than what most of them do."""
    return ThreadPoolExecutor(FLUSHERS, thread_name_prefix="flusher")


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_flushers.cache_clear)  # threads don't come along


def _flush(path: Path) -> None:
    folder = path.is_dir()
    if folder and not (os.name == "posix" and os.access(path, os.R_OK)):
        return
    handle = os.open(path, os.O_RDONLY if folder else os.O_RDWR)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def failure_of(path: Path, error: OSError, consequence: str = "the run is as it was") -> StoreError:
    """What to raise where a file could not be written."""
    if error.errno in _FULL:
        return StorageFullError(
            f"the disk is full: {path.name} could not be written; {consequence}.",
            hint="free some space and try again.",
        )
    return StoreError(f"can't write {path}: {error.strerror}.")


def remove(files: Collection[Path]) -> None:
    """Remove files that may hold forgotten data, for good."""
    _each(_remove, files)
    flush({file.parent for file in files})


def _remove(file: Path) -> None:
    try:
        file.unlink(missing_ok=True)
    except OSError as error:
        raise StoreError(
            f"can't remove {file}, which may hold forgotten data: {error.strerror}."
        ) from error


def read_checked(path: Path | str, sha256: str, size: int | None = None) -> bytes:
    """Read a plain file and check its bytes against their digest, and first their number."""
    try:
        content = read_plain(path, size)
    except OSError as error:
        raise CorruptRunError(f"{path}: can't be read ({error.strerror}).") from error
    if content is None or hashlib.sha256(content).hexdigest() != sha256:
        raise CorruptRunError(f"{path}: truncated or altered since it was written.")
    return content


def read_plain(path: Path | str, size: int | None = None) -> bytes | None:
    """Read a plain file; None where it should have another size. Follows no link."""
    with io.FileIO(os.open(path, _PLAIN)) as file:
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode):
            raise CorruptRunError(f"{path}: not a plain file.")
        return file.readall() if size is None or found.st_size == size else None


def read_text(path: Path) -> str:
    """Read a text file that the caller named."""
    try:
        return path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise ParameterError(f"can't read {path}: {error}.") from error


def write_text(path: Path, text: str) -> None:
    """Write a text file, such as a page, and make its folder."""
    write_file(path, text.encode())


def write_file(path: Path, content: bytes) -> None:
    """Write a file, such as a picture, and make its folder."""
    make_folder(path.parent)
    write_atomic(path, content)


def make_folder(path: Path) -> None:
    """Make a folder and those above it, where they are missing."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(f"can't make the folder {path}: {error.strerror}.") from error
