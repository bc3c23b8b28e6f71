"""Writing an export: a folder of files that is no run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from grapheraser.errors import ParameterError
from grapheraser.store.files import write_file


def write_export(path: Path, files: Mapping[str, bytes]) -> None:
    """Write files, by name and content, into a folder that holds nothing yet."""
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise ParameterError(
            f"{path} holds something already.", hint="choose a folder that is empty or not there."
        )
    for name, content in files.items():
        write_file(path / name, content)
