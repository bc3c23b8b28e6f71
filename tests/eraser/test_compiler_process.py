"""A process that compiles ahead of a first fit is a help, and never relied on."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import grapheraser as ge
from grapheraser.aggregation import log_linear
from grapheraser.eraser import warmup
from grapheraser.eraser.settings import Settings
from grapheraser.kernels import compiled as kernels
from grapheraser.nodes import GraphEraser
from grapheraser.nodes.settings import resolve


@pytest.fixture
def empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The one folder of compiled code, empty."""
    monkeypatch.setattr(kernels, "_candidates", lambda: [tmp_path])
    monkeypatch.setattr(kernels, "_done", [])
    monkeypatch.setattr(warmup, "processors", lambda: 2)
    return tmp_path


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[warmup.Rehearsal]:
    """The rehearsals that a process was started for; none is."""
    found: list[warmup.Rehearsal] = []
    monkeypatch.setattr(warmup, "start_process", found.append)
    return found


def _settings(**arguments: Any) -> Settings:
    return resolve({**GraphEraser().get_params(), **arguments})


@dataclass(frozen=True)
class _Note:
    """Stands for a rehearsal; writes who ran it."""

    file: Path

    def run_ahead(self) -> None:
        self.file.write_text(str(os.getpid()))


@pytest.mark.usefixtures("empty")
@pytest.mark.parametrize("model", ["gcn", "closed-form"])
def test_a_first_fit_compiles_in_a_second_process_too(
    small: ge.Graph, started: list[warmup.Rehearsal], model: str
) -> None:
    warmup.compile_ahead(_settings(model=model), small)
    (rehearsal,) = started
    assert rehearsal.settings.aggregator == _settings(model=model).aggregator
    assert not rehearsal.weighted


@pytest.mark.usefixtures("empty")
def test_without_closed_form_members_there_is_too_little_for_two(
    small: ge.Graph, started: list[warmup.Rehearsal]
) -> None:
    warmup.compile_ahead(_settings(aggregation="mean"), small)
    assert started == []


def test_once_something_is_compiled_no_process_is_started(
    small: ge.Graph, empty: Path, started: list[warmup.Rehearsal]
) -> None:
    assert warmup.is_first_use()
    cache = log_linear._solve._cache
    (empty / f"{cache._prefix}{cache._state}.0.nbc").write_bytes(b"")
    assert not warmup.is_first_use()
    warmup.compile_ahead(_settings(), small)
    assert started == []


@pytest.mark.usefixtures("empty")
def test_the_rehearsal_runs_in_another_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2]))
    process = warmup.start_process(_Note(tmp_path / "note"))
    assert process is not None
    assert process.wait(timeout=120) == 0
    assert (tmp_path / "note").read_text() == str(process.pid)


@pytest.mark.usefixtures("empty")
def test_a_process_that_cannot_start_leaves_everything_to_this_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "nothing"))
    assert warmup.start_process(_Note(tmp_path)) is None


@pytest.mark.usefixtures("empty")
def test_what_cannot_be_sent_to_a_process_is_left_to_this_one() -> None:
    assert warmup.start_process(lambda: None) is None


@pytest.mark.usefixtures("empty")
def test_one_processor_compiles_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warmup, "processors", lambda: 1)
    assert warmup.start_process(_Note(tmp_path)) is None


def test_it_compiles_alone_where_nothing_can_be_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernels, "_candidates", lambda: [Path(os.devnull) / "none"])
    monkeypatch.setattr(warmup, "processors", lambda: 2)
    assert not kernels.can_keep()
    assert warmup.start_process(_Note(tmp_path)) is None


def test_python_ends_while_the_process_goes_on() -> None:
    code = (
        "import subprocess, sys\n"
        "from grapheraser.eraser.warmup import _leave\n"
        "command = [sys.executable, '-c', 'import time; time.sleep(1)']\n"
        "process = subprocess.Popen(command, stdout=subprocess.DEVNULL)\n"
        "_leave(process)\n"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False
    )
    assert (done.returncode, "still running" in done.stderr) == (0, False)


def test_a_process_counts_the_processors_it_may_use() -> None:
    assert 1 <= warmup.processors() <= (os.cpu_count() or 1)
