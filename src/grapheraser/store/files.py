"""Writing files so that a crash, a full disk or a second process can't leave half of one."""

from __future__ import annotations

import errno
import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from grapheraser.errors import (
    CorruptRunError,
    RunBusyError,
    RunNotFoundError,
    StorageFullError,
    StoreError,
)

TEMPORARY = ".partial"
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def write_atomic(path: Path, content: bytes) -> None:
    """Write a file under another name, flush it to the disk, then give it its name."""
    partial = path.with_name(path.name + TEMPORARY)
    try:
        with open(partial, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, path)
    except OSError as error:
        partial.unlink(missing_ok=True)
        if error.errno in _FULL:
            raise StorageFullError(
                f"the disk is full: {path.name} could not be written; the run is as it was.",
                hint="free some space and try again.",
            ) from error
        raise StoreError(f"can't write {path}: {error.strerror}.") from error


def read_checked(path: Path, sha256: str) -> bytes:
    """Read a file whose digest is known; anything else than those bytes is an error."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise CorruptRunError(f"{path}: can't be read ({error.strerror}).") from error
    if hashlib.sha256(content).hexdigest() != sha256:
        raise CorruptRunError(f"{path}: truncated or altered since it was written.")
    return content


def sync_folder(path: Path) -> None:
    """Make renames in a folder durable, where the system can."""
    if os.name == "posix":
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


@dataclass(frozen=True)
class RunLock:
    """The right to change the run in ``path``, while `locked` holds it."""

    path: Path


@contextmanager
def locked(path: Path) -> Iterator[RunLock]:
    """Hold the only right to change a run; a second process is told so at once."""
    import fcntl

    if not path.is_dir():
        raise RunNotFoundError(f"{path}: there is no run here.")
    with open(path / ".lock", "w") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise RunBusyError(
                f"{path}: another process is changing this run.", hint="try again when it is done."
            ) from None
        yield RunLock(path)


def write_text(path: Path, text: str) -> None:
    """Write a text file of its own, e.g. a page, making its folder."""
    write_file(path, text.encode())


def write_file(path: Path, content: bytes) -> None:
    """Write a file of its own, e.g. a picture, making its folder."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(f"can't make the folder {path.parent}: {error.strerror}.") from error
    write_atomic(path, content)
