"""Progress bars: for terminals only, and on stderr."""

from __future__ import annotations

import io
import re
import sys

import pytest

from grapheraser.progress import counted, progress, stage, told


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


def test_steps_without_a_number_are_counted_and_named(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = _Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with counted("compiling") as begin:
        assert terminal.getvalue() == ""
        begin("one kernel")
        begin("another kernel")
    assert "compiling" in terminal.getvalue()
    assert re.search(r"\b2\b.*another kernel", terminal.getvalue())


def test_where_no_step_begins_nothing_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = _Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with counted("compiling"), progress("training", 3) as step:
        step()
    assert terminal.getvalue() == ""


def test_a_bar_inside_a_bar_stays_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = _Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with counted("compiling") as begin:
        begin("a kernel")
        with progress("training", 3) as step, counted("other steps") as other:
            step()
            other("some step")
    with progress("evaluating", 2):
        pass
    assert "training" not in terminal.getvalue()
    assert "some step" not in terminal.getvalue()
    assert "evaluating" in terminal.getvalue()


def test_steps_are_silent_where_nobody_looks(capsys: pytest.CaptureFixture[str]) -> None:
    with counted("compiling") as begin:
        begin("a kernel")
    assert capsys.readouterr() == ("", "")


def test_whoever_is_told_hears_of_every_step_and_sees_no_bar(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    terminal = _Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    heard: list[tuple[str, int, int]] = []
    stage("nobody listens")
    with told(lambda *step: heard.append(step)):
        stage("reading")
        with progress("training", 2) as step:
            step()
            step()
    assert heard == [("reading", 0, 0), ("training", 0, 2), ("training", 1, 2), ("training", 2, 2)]
    assert terminal.getvalue() == ""
    stage("nobody listens any more")
    assert len(heard) == 4
