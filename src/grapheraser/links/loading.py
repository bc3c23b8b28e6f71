"""Reading a run of either kind: of classes or of links."""

from __future__ import annotations

from pathlib import Path

from grapheraser.eraser import GraphEraser
from grapheraser.eraser.save import LINKS, task_of
from grapheraser.links.estimator import LinkEraser
from grapheraser.store import read_manifest


def is_link_run(path: Path) -> bool:
    """Whether the run in a folder predicts links."""
    configuration = read_manifest(path).get("configuration")
    return isinstance(configuration, dict) and task_of(configuration) == LINKS


def load_eraser(path: Path) -> GraphEraser | LinkEraser:
    """The eraser of a run, of the kind that was saved there."""
    return LinkEraser.load(path) if is_link_run(path) else GraphEraser.load(path)
