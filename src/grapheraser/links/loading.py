"""Reading a run of either kind: of classes or of links."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from grapheraser.eraser import GraphEraser
from grapheraser.eraser.save import LINKS, task_of
from grapheraser.links.estimator import LinkEraser
from grapheraser.store import read_manifest


def is_link_run(path: Path) -> bool:
    """Whether the run in a folder predicts links."""
    configuration = read_manifest(path).get("configuration")
    return isinstance(configuration, dict) and task_of(configuration) == LINKS


def load_eraser(path: Path, **own: Any) -> GraphEraser | LinkEraser:
    """The eraser of a run, of the kind that was saved there.

    Args:
        path: the run's folder.
        own: parts of the user's own, by argument of `GraphEraser.load`.
    """
    return LinkEraser.load(path, **own) if is_link_run(path) else GraphEraser.load(path, **own)
