"""--quiet: results and errors alone."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest
import typer

from grapheraser import progress
from grapheraser.cli.app import app
from tests.cli.commands import run


def test_every_verb_takes_it() -> None:
    verbs = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    for name, verb in verbs.items():
        assert any({"--quiet", "-q"} <= {*option.opts} for option in verb.params), name


@pytest.mark.parametrize("option", ["--quiet", "-q"])
def test_notes_are_left_out_and_results_stay(option: str, tmp_path: Path) -> None:
    loud = run("datasets")
    assert "data folder" in loud.stderr
    quiet = run("datasets", option)
    assert quiet.stdout == loud.stdout
    assert quiet.stderr == ""
    assert "data folder" in run("datasets").stderr, "the next verb speaks again"


def test_errors_are_told_all_the_same(tmp_path: Path) -> None:
    done = run("info", tmp_path / "nothing", "-q")
    assert done.returncode == 1
    assert "there is no run here" in done.stderr


def test_no_bar_is_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    with progress.hidden(), progress.progress("steps", 3) as advance:
        for _ in range(3):
            advance()
    assert screen.getvalue() == ""
    with progress.progress("steps", 3) as advance:
        advance()
    assert "steps" in screen.getvalue()


def test_a_fit_says_nothing_about_the_balance_of_hashes(tmp_path: Path) -> None:
    hashed = run("fit", "demo", "--shards", 4, "--epochs", 1, "--out", tmp_path / "hash")
    assert "shards hold more than" not in hashed.stderr
    assert "526 to 555 nodes" in hashed.stdout
    lpa = run("fit", "demo", "--epochs", 1, "--partition", "lpa", "--out", tmp_path / "lpa")
    assert "note: " in lpa.stderr, "whatever was measured is still told"
