"""Results of measurements: one JSON file each, whole or not there, in a folder that grows."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from grapheraser.errors import StoreError
from grapheraser.store.files import write_text


def make_folder(path: Path) -> None:
    """Make a folder for results; fail before hours of work if that can't be done."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(f"can't make the folder {path}: {error.strerror}.") from error


def read_result(path: Path) -> Any:
    """What a file holds; None where there is no file, or one that can't be read."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def write_result(path: Path, value: Any) -> None:
    """Write a result; an equal one gives the same bytes."""
    write_text(path, json.dumps(value, sort_keys=True, separators=(",", ":")) + "\n")


def file_digest(path: Path) -> str | None:
    """SHA-256 of a file that a result depends on; None where there is none."""
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        return None
