"""Results of measurements: one JSON file each, whole or not there, in a folder that grows."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from grapheraser.store.files import write_text


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
