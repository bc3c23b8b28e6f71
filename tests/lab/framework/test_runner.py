"""The runner: what is finished is kept, what fails is told, nothing runs twice."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from grapheraser.errors import ParameterError
from grapheraser_lab.experiments.catalogue import EXPERIMENTS, KINDS, Cell, Kind, Options
from grapheraser_lab.framework import runner
from grapheraser_lab.framework.meter import order
from grapheraser_lab.framework.runner import run_cells
from grapheraser_lab.framework.shared_cells import utility_cell
from tests.lab.own_parts import MEETING

OWN = "tests.lab.own_parts"

CALLS: list[int] = []


def _count(config: Mapping[str, Any]) -> dict[str, Any]:
    CALLS.append(config["seed"])
    if config.get("bad"):
        raise ValueError("bad cell")
    return {"value": config["seed"] * 2}


def _where(config: Mapping[str, Any]) -> dict[str, Any]:
    return {"device": config["device"]}


if "count" not in KINDS:
    KINDS.add("count", Kind(_count))
    KINDS.add("where", Kind(_where, trains=True))
    KINDS.add("when", Kind(_where, timed=True, trains=True))


@pytest.fixture(autouse=True)
def _fresh() -> None:
    CALLS.clear()


def _cells(count: int, **extra: Any) -> list[Cell]:
    return [Cell.of("count", dataset="demo", seed=i, **extra) for i in range(count)]


def test_a_worker_knows_every_kind_that_experiments_use() -> None:
    """A worker imports the kinds of `measure` and nothing of the paper's tables."""
    options = Options(datasets=("cora",), models=("gcn",), runs=1)
    cells = [cell for name in EXPERIMENTS for cell in EXPERIMENTS.get(name).cells(options)]
    for kind in {cell.kind for cell in cells}:
        home = KINDS.get(kind).measure.__module__
        assert home.startswith("grapheraser_lab.measure."), kind


def test_cells_run_once_and_are_kept(tmp_path: Path) -> None:
    cells = _cells(3)
    first = run_cells([*cells, *cells], tmp_path, workers=0)
    assert sorted(CALLS) == [0, 1, 2]
    assert first.computed == 3
    before = {file.name: file.read_bytes() for file in (tmp_path / "cells").iterdir()}
    again = run_cells([*cells, *_cells(4)], tmp_path, workers=0)
    assert again.computed == 1
    assert CALLS.count(3) == 1
    assert again.results.value(cells[2]) == {"value": 4}
    for name, content in before.items():
        assert (tmp_path / "cells" / name).read_bytes() == content


def test_a_failing_cell_is_told_and_the_others_go_on(tmp_path: Path) -> None:
    told: list[str] = []
    bad = Cell.of("count", dataset="demo", seed=7, bad=True)
    outcome = run_cells([bad, *_cells(2)], tmp_path, workers=0, say=told.append)
    assert outcome.computed == 2
    assert outcome.failures.keys() == {bad}
    assert outcome.failures[bad].startswith("ValueError: bad cell (test_runner.py, line ")
    assert any("bad cell" in text for text in told)
    assert outcome.results.value(bad) is None
    run_cells([bad], tmp_path, workers=0)
    assert CALLS.count(7) == 2


@pytest.mark.parametrize("content", [b"", b"{", b"{}", b'{"kind": "count"}'])
def test_a_damaged_file_is_computed_again(tmp_path: Path, content: bytes) -> None:
    (cell,) = _cells(1)
    run_cells([cell], tmp_path, workers=0)
    (tmp_path / "cells" / f"{cell.digest}.json").write_bytes(content)
    outcome = run_cells([cell], tmp_path, workers=0)
    assert outcome.computed == 1
    assert outcome.results.value(cell) == {"value": 0}


def test_a_file_under_another_cells_name_is_not_believed(tmp_path: Path) -> None:
    one, other = _cells(2)
    run_cells([one], tmp_path, workers=0)
    folder = tmp_path / "cells"
    (folder / f"{other.digest}.json").write_bytes((folder / f"{one.digest}.json").read_bytes())
    assert run_cells([other], tmp_path, workers=0).results.value(other) == {"value": 2}


def test_timed_cells_stay_on_the_processor_and_the_device_is_no_part_of_the_address(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "versions", lambda device: {"gpu": device})
    where, when = (Cell.of(kind, dataset="demo", seed=0) for kind in ("where", "when"))
    found = run_cells([where, when], tmp_path, workers=0, device="cuda").results
    assert found.value(where) == {"device": "cuda"}
    assert found.value(when) == {"device": "cpu"}
    result = found.get(where)
    assert result is not None
    assert result.versions == {"gpu": "cuda"}
    assert run_cells([where, when], tmp_path, workers=0).computed == 0


def test_two_runs_on_one_folder_do_not_stop_each_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second run keeps the same cell while the first is writing it."""
    (cell,) = _cells(1)
    sync = os.fsync

    def meanwhile(handle: int) -> None:
        monkeypatch.setattr(os, "fsync", sync)
        assert run_cells([cell], tmp_path, workers=0).computed == 1
        sync(handle)

    monkeypatch.setattr(os, "fsync", meanwhile)
    outcome = run_cells([cell], tmp_path, workers=0)
    assert outcome.computed == 1
    assert run_cells([cell], tmp_path, workers=0).results.value(cell) == {"value": 0}
    assert [file.suffix for file in (tmp_path / "cells").iterdir()] == [".json"]


def test_no_cell_begins_when_time_is_up_and_the_next_run_goes_on(tmp_path: Path) -> None:
    told: list[str] = []
    none = run_cells(_cells(3), tmp_path, workers=0, minutes=0, say=told.append)
    assert (none.computed, none.left, CALLS) == (0, 3, [])
    assert any("3 cells are left" in text for text in told)
    rest = run_cells(_cells(3), tmp_path, workers=0, minutes=5)
    assert (rest.computed, rest.left) == (3, 0)


def test_timed_cells_can_be_left_for_another_machine(tmp_path: Path) -> None:
    where, when = (Cell.of(kind, dataset="demo", seed=0) for kind in ("where", "when"))
    first = run_cells([where, when], tmp_path, workers=0, timed_workers=0)
    assert (first.computed, first.left) == (1, 1)
    rest = run_cells([where, when], tmp_path, workers=0)
    assert (rest.computed, rest.left) == (1, 0)


def test_what_another_run_has_finished_meanwhile_is_not_begun(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = sorted(_cells(2), key=order)

    def meanwhile(cell: Cell, device: str, at_once: int = 1) -> Any:
        monkeypatch.undo()
        run_cells([second], tmp_path, workers=0)
        return runner._guarded(cell, device, at_once)

    monkeypatch.setattr(runner, "_guarded", meanwhile)
    outcome = run_cells([first, second], tmp_path, workers=0)
    assert (outcome.computed, outcome.left) == (1, 0)
    assert len(CALLS) == 2
    assert outcome.results.value(second) is not None


def test_a_timed_result_says_how_many_ran_at_once(tmp_path: Path) -> None:
    where, when = (Cell.of(kind, dataset="demo", seed=0) for kind in ("where", "when"))
    alone, beside = (runner.measured(when, at_once=count) for count in (1, 8))
    assert (alone.hardware["at_once"], beside.hardware["at_once"]) == (1, 8)
    assert "at_once" not in runner.measured(where, at_once=8).hardware


@pytest.mark.long
def test_a_dying_worker_costs_only_the_cell_that_killed_it(
    options: Options, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(MEETING, str(tmp_path))
    deadly, beside, later = (
        utility_cell(options, options.datasets[0], "gcn", run, f"{OWN}:{own}")
        for run, own in ((0, "dies"), (0, "at_work"), (1, "in_turn"))
    )
    outcome = run_cells([deadly, beside, later], tmp_path, workers=2)
    assert list(outcome.failures) == [deadly]
    assert "was ended" in outcome.failures[deadly]
    assert outcome.computed == 2
    here = run_cells([beside, later], tmp_path / "here", workers=0).results
    for cell in (beside, later):
        assert outcome.results.value(cell) == here.value(cell)
    assert run_cells([beside, later], tmp_path, workers=2).computed == 0


@pytest.mark.long
def test_a_cluster_computes_what_processes_do_and_tells_what_fails(
    options: Options, tmp_path: Path, ray_settings: None
) -> None:
    well, badly = (
        utility_cell(options, options.datasets[0], "gcn", 0, f"{OWN}:{own}")
        for own in ("in_turn", "nowhere")
    )
    outcome = run_cells([badly, well], tmp_path, workers=1, executor="ray")
    assert outcome.computed == 1
    assert "nowhere" in outcome.failures[badly]
    here = run_cells([well], tmp_path / "here", workers=0).results
    assert outcome.results.value(well) == here.value(well)


def test_a_cluster_needs_a_worker_and_executors_are_two(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="needs at least one worker"):
        run_cells(_cells(1), tmp_path, workers=0, executor="ray")
    with pytest.raises(ParameterError, match="must be 'process' or 'ray'"):
        run_cells(_cells(1), tmp_path, executor="local")
    assert list(tmp_path.iterdir()) == []


class _Refusing:
    """A pool that breaks between two cells: the third that it is given it does not take."""

    calls = 0

    def submit(self, function: Any, *arguments: Any) -> Future[Any]:
        _Refusing.calls += 1
        if _Refusing.calls == 3:
            raise BrokenProcessPool("a worker died in between")
        future: Future[Any] = Future()
        future.set_result(function(*arguments))
        return future


def test_a_cell_that_a_broken_pool_refuses_is_not_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    @contextmanager
    def pool(workers: int) -> Iterator[_Refusing]:
        yield _Refusing()

    monkeypatch.setattr(runner, "_pool", pool)
    monkeypatch.setattr(_Refusing, "calls", 0)
    outcome = run_cells(_cells(6), tmp_path, workers=1)
    assert outcome.computed == 6
    assert sorted(CALLS) == list(range(6))
