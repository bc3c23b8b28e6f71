"""Both engines are measured on the same seeds, once."""

from __future__ import annotations

from pathlib import Path

import pytest

from grapheraser.errors import GraphEraserError
from grapheraser_lab.bench import engines


def test_a_second_run_measures_nothing_and_reports_the_same(tmp_path: Path) -> None:
    told: list[str] = []
    first, again = (
        engines.fidelity(
            ["demo"], ["mlp"], seeds=2, epochs=2, folder=tmp_path, progress=told.append
        )
        for _ in range(2)
    )
    # On a busy machine a line a minute comes beside these.
    summaries = [text for text in told if "measured" in text]
    assert summaries == ["4 cells measured, 4 in all", "0 cells measured, 4 in all"]
    assert again == first
    (row,) = first["rows"]
    assert [len(row["f1"][engine]) for engine in engines.ENGINES] == [2, 2]
    assert "| demo | mlp | 2 |" in engines.markdown(first)


def test_a_cell_that_fails_is_named_and_the_others_are_kept(tmp_path: Path) -> None:
    with pytest.raises(GraphEraserError, match=r"2 of 4 cells failed; fidelity demo nothing"):
        engines.fidelity(["demo"], ["mlp", "nothing"], seeds=1, epochs=1, folder=tmp_path)
    assert len(list((tmp_path / "cells").iterdir())) == 2
