"""Write files whole: a crash, a full disk or a second process never leaves half of one."""

from __future__ import annotations

import errno
import hashlib
import os
import secrets
from contextlib import suppress
from pathlib import Path

from grapheraser.errors import CorruptRunError, ParameterError, StorageFullError, StoreError

TEMPORARY = ".partial"
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def write_atomic(path: Path, content: bytes) -> None:
    """Write under a temporary name, flush to the disk, then rename."""
    partial = path.with_name(f"{path.name}.{secrets.token_hex(4)}{TEMPORARY}")
    try:
        with open(partial, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, path)
    except BaseException as error:
        with suppress(OSError):
            partial.unlink()
        if not isinstance(error, OSError):
            raise
        if error.errno in _FULL:
            raise StorageFullError(
                f"the disk is full: {path.name} could not be written; the run is as it was.",
                hint="free some space and try again.",
            ) from error
        raise StoreError(f"can't write {path}: {error.strerror}.") from error


def holds(path: Path, content: bytes) -> bool:
    """Whether the file exists with exactly these bytes."""
    try:
        return path.read_bytes() == content
    except OSError:
        return False


def read_checked(path: Path, sha256: str) -> bytes:
    """Read a file and check its bytes against their digest."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise CorruptRunError(f"{path}: can't be read ({error.strerror}).") from error
    if hashlib.sha256(content).hexdigest() != sha256:
        raise CorruptRunError(f"{path}: truncated or altered since it was written.")
    return content


def read_text(path: Path) -> str:
    """Read a text file that the caller named."""
    try:
        return path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise ParameterError(f"can't read {path}: {error}.") from error


def sync_folder(path: Path) -> None:
    """Make renames and removals in a folder durable, where the system can."""
    if os.name == "posix" and os.access(path, os.R_OK):
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


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
