"""grapheraser partition."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.cli.commands import data, run


def test_the_context_says_how_many_nodes_are_in_shards() -> None:
    options = ("partition", "demo", "--method", "hash", "--shards", 4, "--no-draw")
    assert sum(data(*options)["sizes"]) == 2160
    assert sum(data(*options, "--context", "all")["sizes"]) == 2700
    assert "'context'" in run(*options, "--context", "some").stderr
    assert "has no public split" in run(*options, "--split", "public").stderr


def test_the_report_needs_no_picture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for module in ("matplotlib.backends.backend_agg", "matplotlib.figure"):
        monkeypatch.setitem(sys.modules, module, None)
    options = ("partition", "demo", "--method", "hash", "--shards", 4)
    done = run(*options)
    assert done.returncode == 0
    assert "edge cut" in done.stdout
    assert "note: no picture" in done.stderr
    assert "pip install '.[plots]'" in done.stderr
    assert data(*options)["picture"] is None
    asked = run(*options, "--draw", "shards.png")
    assert asked.returncode == 1
    assert "pip install '.[plots]'" in asked.stderr
