"""What a second process compiles is waited for, and never relied on."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest

from grapheraser.eraser import GraphEraser, beside, warmup
from grapheraser.eraser.settings import Settings, resolve
from grapheraser.graph.induced import induced_edges
from grapheraser.kernels import compiled as kernels


@pytest.fixture
def empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The one folder of compiled code, empty."""
    monkeypatch.setattr(kernels, "_candidates", lambda: [tmp_path])
    monkeypatch.setattr(kernels, "_done", [])
    return tmp_path


@pytest.fixture
def rehearsed(monkeypatch: pytest.MonkeyPatch) -> list[Settings]:
    """The settings that are rehearsed, which compiles nothing here."""
    found: list[Settings] = []

    def rehearse(tiny: Settings, *, many: bool, weighted: bool, few: bool) -> None:
        assert (many, weighted, few) == (False, False, False)
        found.append(tiny)

    monkeypatch.setattr(warmup, "_rehearse", rehearse)
    return found


def _says(monkeypatch: pytest.MonkeyPatch, code: str) -> None:
    monkeypatch.setattr(beside, "_CODE", code)
    monkeypatch.setattr(beside, "processors", lambda: 2)


def _settings(**arguments: Any) -> Settings:
    return resolve({**GraphEraser().get_params(), **arguments})


def test_a_first_use_compiles_members_beside_the_shards(
    empty: Path, rehearsed: list[Settings], monkeypatch: pytest.MonkeyPatch
) -> None:
    _says(monkeypatch, "print('a.one'); print('b.two')")
    warmup.warm_up(_settings(), 12)
    assert [one.kernel for one in kernels.compilations()] == ["a.one", "b.two"]
    assert {one.folder for one in kernels.compilations()} == {empty}
    shards, everything = rehearsed
    assert getattr(shards.aggregator, "members", None) == ()
    assert everything.aggregator == _settings().aggregator


@pytest.mark.usefixtures("empty")
def test_a_second_process_that_fails_leaves_everything_to_the_first(
    rehearsed: list[Settings], monkeypatch: pytest.MonkeyPatch
) -> None:
    _says(monkeypatch, "raise SystemExit(1)")
    warmup.warm_up(_settings(), 12)
    assert rehearsed[-1].aggregator == _settings().aggregator
    assert kernels.compilations() == []


@pytest.mark.usefixtures("empty")
def test_a_second_process_that_cannot_start_leaves_everything_to_the_first(
    rehearsed: list[Settings], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    _says(monkeypatch, "")
    monkeypatch.setattr(sys, "executable", str(tmp_path / "nothing"))
    warmup.warm_up(_settings(), 12)
    assert [tiny.aggregator for tiny in rehearsed] == [_settings().aggregator]


def test_a_second_process_ends_when_nobody_waits_for_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _says(monkeypatch, "import os, time; print(os.getpid(), flush=True); time.sleep(600)")
    with beside.members_beside((), 12) as names:
        process = int(next(names))
        os.kill(process, 0)
    with pytest.raises(ProcessLookupError):
        os.kill(process, 0)


@pytest.mark.usefixtures("empty")
@pytest.mark.parametrize("arguments", [{"model": "closed-form"}, {"aggregation": "mean"}])
def test_one_part_needs_no_second_process(
    rehearsed: list[Settings], monkeypatch: pytest.MonkeyPatch, arguments: dict[str, Any]
) -> None:
    _says(monkeypatch, "print('a.one')")
    warmup.warm_up(_settings(**arguments), 12)
    assert len(rehearsed) == 1
    assert kernels.compilations() == []


def test_it_is_worth_it_on_a_first_use_with_two_processors(
    empty: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(beside, "processors", lambda: 2)
    assert beside.is_worth_it()
    monkeypatch.setattr(beside, "processors", lambda: 1)
    assert not beside.is_worth_it()
    monkeypatch.setattr(beside, "processors", lambda: 2)
    cache = induced_edges._cache
    (empty / f"{cache._prefix}{cache._state}.0.nbc").write_bytes(b"")
    assert not beside.is_worth_it()


def test_it_is_not_worth_it_where_nothing_can_be_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "_candidates", lambda: [Path(os.devnull) / "none"])
    monkeypatch.setattr(beside, "processors", lambda: 2)
    assert not kernels.can_keep()
    assert not beside.is_worth_it()


def test_a_process_counts_the_processors_it_may_use() -> None:
    assert 1 <= beside.processors() <= (os.cpu_count() or 1)
