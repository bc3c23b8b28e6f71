"""grapheraser evaluate."""

from __future__ import annotations

from pathlib import Path

import grapheraser as ge
from tests.cli.commands import data


def test_evaluate_says_what_the_library_says(fitted: Path) -> None:
    eraser = ge.GraphEraser.load(fitted)
    report = data("evaluate", fitted)
    assert report["test_f1"] == eraser.score(eraser.graph_.test_nodes)
