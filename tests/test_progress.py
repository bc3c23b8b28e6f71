"""Progress bars: for terminals only, and on stderr."""

from __future__ import annotations

import io
import sys

import pytest

from grapheraser.progress import progress


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_nothing_is_shown_where_nobody_looks(capsys: pytest.CaptureFixture[str]) -> None:
    with progress("training", 3) as step:
        for _ in range(3):
            step()
    assert capsys.readouterr() == ("", "")


def test_a_terminal_sees_the_bar_on_stderr(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    terminal = _Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with progress("training", 2) as step:
        step()
        step()
    assert "training" in terminal.getvalue()
    assert capsys.readouterr().out == ""


def test_a_single_step_needs_no_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = _Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with progress("training", 1) as step:
        step()
    assert terminal.getvalue() == ""
