"""Write files whole: a crash, a full disk or a second process never leaves half of one.

Files that only grow are the exception: a line is on the disk before `append_line` returns.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import secrets
import sys
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, Self

from grapheraser.errors import CorruptRunError, ParameterError, StorageFullError, StoreError
from grapheraser.untrusted import (
    MAX_JSON,
    MAX_LINES,
    MAX_WEIGHTS,
    parse_json,
    read_named,
    read_plain,
)

TEMPORARY = ".partial"
# Bytes of a file of a run: a page, the model of a shard, or what the aggregator holds.
MAX_FILE = MAX_WEIGHTS
PRIVATE_FILE, PRIVATE_FOLDER = 0o600, 0o700  # modes, whatever the umask
FLUSHERS = 16  # threads; the system combines flushes that wait side by side
_MANY_FILES = 512  # from here on flushing the whole system is quicker
_UNDATED = (315_532_800, 315_532_800)  # the year 1980, which every archive can hold
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class Batch:
    """New files: written under temporary names, flushed to the disk together, then renamed.

    Leaves nothing behind of the files that were not renamed when its ``with`` block ends.
    ``dated``: a file may tell when it was written; ``private``: nobody else may read it, whatever
    the umask.
    """

    def __init__(self, *, dated: bool = True, private: bool = True) -> None:
        self._dated, self._mode = dated, PRIVATE_FILE if private else 0o666
        self._waiting: list[tuple[Path, Path]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for partial, _final in self._waiting:
            with suppress(OSError):
                partial.unlink()
        self._waiting.clear()

    def write(self, path: Path, content: bytes) -> None:
        """Write one file; it has its name after `commit`."""
        partial = path.with_name(f"{path.name}.{secrets.token_hex(4)}{TEMPORARY}")
        self._waiting.append((partial, path))
        try:
            with open(partial, "wb", opener=self._opened) as file:
                file.write(content)
                if not self._dated:
                    file.flush()
                    os.utime(file.fileno(), _UNDATED)
        except OSError as error:
            raise failure_of(path, error) from error

    def _opened(self, path: str, flags: int) -> int:
        return os.open(path, flags, self._mode)

    def commit(self, *others: Path) -> None:
        """Flush all files, and others beside them, then give them their names."""
        path = self._waiting[0][1]
        try:
            flush({*(partial for partial, _final in self._waiting), *others})
            while self._waiting:
                partial, path = self._waiting[-1]
                os.replace(partial, path)
                self._waiting.pop()
        except OSError as error:
            raise failure_of(path, error) from error


def write_atomic(path: Path, content: bytes, *, private: bool = True) -> None:
    """Write under a temporary name, flush to the disk, then rename."""
    with Batch(private=private) as batch:
        batch.write(path, content)
        batch.commit()


def flush(paths: Collection[Path]) -> None:
    """Make the content of files, and the names in folders, durable."""
    if len(paths) > _MANY_FILES and sys.platform == "linux":
        os.sync()  # waits, on this system, until everything is on the disk
    else:
        _each(_flush, paths)


def _each(change: Callable[[Path], None], paths: Collection[Path]) -> None:
    """Change each file, side by side: most of the time is spent waiting."""
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
    """Change each file, whatever becomes of the others; return what went wrong."""
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
    """Return the error to raise where a file could not be written."""
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


def read_checked(
    path: Path | str, sha256: str, size: int | None = None, limit: int = MAX_FILE
) -> bytes:
    """Read a plain file and check its bytes against their digest, and first their number."""
    try:
        content = read_plain(path, limit, size, sha256)
    except OSError as error:
        raise CorruptRunError(f"{path}: can't be read ({error.strerror}).") from error
    except MemoryError:
        raise CorruptRunError(f"{path}: larger than the memory that is free.") from None
    if content is None:
        raise CorruptRunError(f"{path}: truncated or altered since it was written.")
    return content


def read_text(path: Path, limit: int = MAX_JSON) -> str:
    """Read a text file that the caller named."""
    try:
        return read_named(path, limit).decode()
    except (OSError, UnicodeDecodeError) as error:
        raise ParameterError(f"can't read {path}: {error}.") from error


def write_text(path: Path, text: str) -> None:
    """Write a text file, such as a page, and make its folder."""
    write_file(path, text.encode())


def write_file(path: Path, content: bytes) -> None:
    """Write a file for others to read, such as a picture, and make its folder."""
    make_folder(path.parent, private=False)
    write_atomic(path, content, private=False)


def make_folder(path: Path, *, private: bool = True) -> None:
    """Make a folder, which others can't enter if it is private, and those above it."""
    try:
        path.mkdir(PRIVATE_FOLDER if private else 0o777, parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(f"can't make the folder {path}: {error.strerror}.") from error


def append_line(path: Path, line: str) -> None:
    """Add a line to a file that nobody else can read, which is made if need be.

    What a crash or a full disk leaves of a line stays, alone on its line.
    """
    flags = os.O_RDWR | os.O_CREAT | os.O_APPEND
    try:
        is_new = not path.exists()
        descriptor = os.open(path, flags, 0o600)
        try:
            size = os.fstat(descriptor).st_size
            torn = size and os.pread(descriptor, 1, size - 1) != b"\n"
            content = f"{chr(10) if torn else ''}{line}\n".encode()
            while content:
                content = content[os.write(descriptor, content) :]
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        if is_new:
            flush({path.parent})
    except OSError as error:
        raise failure_of(path, error, "it is tried again") from error


def read_lines(path: Path) -> list[str]:
    """All lines of such a file that are not empty."""
    try:
        content = read_plain(path, MAX_LINES) or b""
        return [line for line in content.decode().splitlines() if line]
    except (OSError, UnicodeDecodeError) as error:
        raise StoreError(f"can't read {path}: {error}.") from error


def write_export(path: Path, files: Mapping[str, bytes]) -> None:
    """Write an export: files, by name and content, into a folder that holds nothing yet."""
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise ParameterError(
            f"{path} holds something already.", hint="choose a folder that is empty or not there."
        )
    for name, content in files.items():
        write_file(path / name, content)


def read_result(path: Path) -> Any:
    """Read a JSON file; None where there is none, or one that can't be read."""
    try:
        return parse_json(read_plain(path, MAX_JSON) or b"")
    except (OSError, ValueError, CorruptRunError):
        return None


def write_result(path: Path, value: Any) -> None:
    """Write a value as a JSON file; an equal one gives the same bytes."""
    write_text(path, json.dumps(value, sort_keys=True, separators=(",", ":")) + "\n")


def file_digest(path: Path) -> str | None:
    """Return the SHA-256 digest of a file; None where there is none."""
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        return None
