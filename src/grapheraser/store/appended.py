"""Files that only grow: a line is on the disk before whoever wrote it goes on."""

from __future__ import annotations

import os
from pathlib import Path

from grapheraser.errors import StoreError
from grapheraser.store.files import failure_of, flush


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
        return [line for line in path.read_text().splitlines() if line]
    except (OSError, UnicodeDecodeError) as error:
        raise StoreError(f"can't read {path}: {error}.") from error
