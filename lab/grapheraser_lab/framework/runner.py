"""Run the cells that are missing: in worker processes or on a cluster, timed ones at the end.

A cell's result is written under its digest as soon as it is there, whole or not at all. Whatever
stops a run, the next one goes on from there. Experiments and benchmarks share this runner.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from importlib import import_module
from pathlib import Path
from traceback import extract_tb
from typing import TypeVar

import grapheraser_lab.measure  # noqa: F401  (registers the kinds)
from grapheraser.checks import one_of
from grapheraser.environment import versions
from grapheraser.errors import GraphEraserError, ParameterError
from grapheraser.execution import RayExecutor
from grapheraser.reports.wording import plural
from grapheraser.store.files import make_folder, read_result, write_result
from grapheraser_lab.framework.cell import KINDS, Cell, Result, Results, hardware
from grapheraser_lab.framework.meter import meter, order

WORKERS = 2
EXECUTORS = ("process", "ray")
CPU = "cpu"
_LOOK = 1.0
# The result of a cell, or what went wrong.
Answer = Result | str
Group = TypeVar("Group")
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


@dataclass
class Outcome:
    """The outcome of running cells.

    Attributes:
        results: of all cells that have one, old and new.
        failures: message of each cell that failed.
        computed: how many were computed now.
        seconds: how long that took.
        left: how many were not begun for want of time.
    """

    results: Results
    failures: dict[Cell, str] = field(default_factory=dict)
    computed: int = 0
    seconds: float = 0.0
    left: int = 0


def run_cells(
    cells: Iterable[Cell],
    out: Path,
    *,
    workers: int = WORKERS,
    timed_workers: int = 1,
    executor: str = EXECUTORS[0],
    device: str = CPU,
    minutes: float | None = None,
    compute: bool = True,
    say: Callable[[str], None] = lambda text: None,
) -> Outcome:
    """Results of all cells, from the folder where they are there, else computed and kept.

    Args:
        cells: equal ones count once.
        out: results are kept in its folder ``cells``.
        workers: how many processes at once; 0 stays in this one.
        timed_workers: how many timed cells at once; 0 leaves them for another time. More than one
            share caches and memory, which the results record.
        executor: ``"process"``, on this machine, or ``"ray"``: the same cells on a Ray cluster.
        device: where shards are trained; timed cells stay on the processor. It is no part of a
            cell's address: like the processor, it is recorded with the result.
        minutes: after which no further cell begins; None for no limit.
        compute: whether to run what is missing, or only to read what is there.
        say: told about every failure, and now and then where the run stands.
    """
    one_of("executor", "run_cells", executor, EXECUTORS)
    if executor != EXECUTORS[0] and workers < 1:
        raise ParameterError(f"executor '{executor}' needs at least one worker. Got {workers}.")
    folder = out / "cells"
    make_folder(folder)
    wanted = list(dict.fromkeys(cells))
    outcome = Outcome(Results())
    missing: list[Cell] = []
    for cell in wanted:
        kept = _kept(folder, cell)
        if kept is None:
            missing.append(cell)
        else:
            outcome.results.add(kept)
    if not compute:
        outcome.left = len(missing)
        return outcome
    started = time.perf_counter()
    deadline = None if minutes is None else started + 60 * minutes
    with meter(missing, say) as tick:
        for timed in (False, True):
            if timed and timed_workers < 1:
                break
            batch = sorted((c for c in missing if c.timed == timed), key=order)
            at_once = min(workers, timed_workers) if timed else workers
            begun = _to_begin(batch, folder, deadline, outcome.results)
            run = _run if executor == EXECUTORS[0] else _run_on_ray
            for cell, answer in run(begun, at_once, device):
                if isinstance(answer, Result):
                    write_result(_file(folder, cell), answer.to_dict())
                    outcome.results.add(answer)
                    outcome.computed += 1
                else:
                    outcome.failures[cell] = answer
                    say(f"failed: {cell}: {answer}")
                tick(cell)
    outcome.left = sum(c not in outcome.results and c not in outcome.failures for c in missing)
    if outcome.left:
        say(f"{outcome.left} cells are left. Run the same command to go on.")
    outcome.seconds = time.perf_counter() - started
    return outcome


def _to_begin(
    cells: Sequence[Cell], folder: Path, deadline: float | None, results: Results
) -> Iterator[Cell]:
    """The cells one by one, none after the deadline, and none that another run has finished."""
    for cell in cells:
        if deadline is not None and time.perf_counter() >= deadline:
            return
        kept = _kept(folder, cell)
        if kept is None:
            yield cell
        else:
            results.add(kept)


def _file(folder: Path, cell: Cell) -> Path:
    return folder / f"{cell.digest}.json"


def _kept(folder: Path, cell: Cell) -> Result | None:
    """The kept result of a cell; None where there is none, or what is there is damaged."""
    try:
        result = Result.from_dict(read_result(_file(folder, cell)))
    except (KeyError, TypeError, ValueError):
        return None
    return result if result.cell == cell else None


def measured(cell: Cell, device: str = CPU, at_once: int = 1) -> Result:
    """Measure one cell, here and now, beside as many others as are measured at once."""
    kind = KINDS.get(cell.kind)
    device = device if kind.trains and not kind.timed else CPU
    started, spent = time.perf_counter(), time.process_time()
    value = kind.measure({**cell.config, "device": device})
    seconds, cpu = time.perf_counter() - started, time.process_time() - spent
    machine = hardware() | ({"at_once": at_once} if kind.timed else {})
    return Result(cell, value, round(seconds, 4), round(cpu, 4), versions(device), machine)


def _guarded(cell: Cell, device: str, at_once: int = 1) -> Answer:
    """The result, or what went wrong; an exception may not survive the way back."""
    try:
        return measured(cell, device, at_once)
    except Exception as error:
        said = f"{type(error).__name__}: {error}"
        if isinstance(error, GraphEraserError):
            return said
        last = extract_tb(error.__traceback__)[-1]  # where a method of the reader's went wrong
        return f"{said} ({Path(last.filename).name}, line {last.lineno})"


def _start(paths: Sequence[str], modules: Iterable[str]) -> None:
    """In a fresh worker: find all kinds of cells, and end when the run has ended."""
    for path in paths:
        if path not in sys.path:
            sys.path.append(path)
    for module in modules:
        import_module(module)
    threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()


def _homes() -> set[str]:
    """Return the modules that register kinds of cells."""
    return {KINDS.get(name).measure.__module__ for name in KINDS}


def _end_with(parent: int) -> None:
    """A run that was killed can't tell its workers; an orphan has another parent."""
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(1)


def _run(cells: Iterator[Cell], workers: int, device: str) -> Iterator[tuple[Cell, Answer]]:
    """Every cell with its answer, as they finish; survives the death of a worker."""
    if workers < 1:
        for cell in cells:
            yield cell, _guarded(cell, device)
        return
    waiting, suspects = next(cells, None), list[Cell]()
    while waiting is not None:
        in_flight: dict[Future[Answer], Cell] = {}
        try:
            with _pool(workers) as pool:
                while waiting is not None or in_flight:
                    while waiting is not None and len(in_flight) < workers:
                        # A broken pool may refuse the cell: only then is it no longer waiting.
                        in_flight[pool.submit(_guarded, waiting, device, workers)] = waiting
                        waiting = next(cells, None)
                    for future in _finished(pool, in_flight):
                        answer = future.result()
                        yield in_flight.pop(future), answer
        except BrokenProcessPool:
            suspects += in_flight.values()
    for cell in suspects:
        yield cell, _alone(cell, device)


def _run_on_ray(cells: Iterator[Cell], workers: int, device: str) -> Iterator[tuple[Cell, Answer]]:
    """Run cells on a Ray cluster, so many at a time."""
    begun: list[Cell] = []

    def one_by_one() -> Iterator[Cell]:
        for cell in cells:
            begun.append(cell)
            yield cell

    measure = partial(_guarded, device=device, at_once=workers)
    cluster = replace(RayExecutor.on(device), workers=workers)
    for place, answer in cluster.stream(measure, one_by_one()):
        if isinstance(answer, BaseException):
            yield begun[place], f"{type(answer).__name__}: {answer}"
        else:
            yield begun[place], answer


def _alone(cell: Cell, device: str) -> Result | str:
    """The answer of a cell during which a worker died: perhaps it is to blame, perhaps not."""
    try:
        with _pool(1) as pool:
            return pool.submit(_guarded, cell, device).result()
    except BrokenProcessPool:
        return "the process that computed it was ended (out of memory?)"


def _finished(pool: ProcessPoolExecutor, futures: Iterable[Future[Answer]]) -> set[Future[Answer]]:
    """Return those that finish first, or none after a moment; raises where a worker has died.

    Python's pool may miss the death of a worker that started after it began to watch.
    """
    done, _ = wait(futures, _LOOK, return_when=FIRST_COMPLETED)
    processes = list((getattr(pool, "_processes", None) or {}).values())
    if not done and any(process.exitcode is not None for process in processes):
        raise BrokenProcessPool("a worker has died")
    return done


@contextmanager
def _pool(workers: int) -> Iterator[ProcessPoolExecutor]:
    """Single-threaded worker processes; they are ended, not waited for, when the run stops."""
    before = {name: os.environ.get(name) for name in _THREADS}
    os.environ.update(dict.fromkeys(_THREADS, "1"))
    pool = ProcessPoolExecutor(
        workers,
        mp_context=multiprocessing.get_context("spawn"),
        initializer=_start,
        initargs=([path for path in sys.path if path] + [os.getcwd()], _homes()),
    )
    try:
        yield pool
    except BaseException:
        for process in list((getattr(pool, "_processes", None) or {}).values()):
            process.terminate()
        pool.shutdown(wait=False, cancel_futures=True)
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value


# -- benchmarks of many measurements: their cells go through the runner of the experiments ------


def measured_cells(
    cells: Iterable[Cell],
    folder: str | Path,
    *,
    device: str = CPU,
    progress: Callable[[str], None] = lambda text: None,
) -> dict[Cell, Result]:
    """Results of all cells; those in the folder are not measured again.

    Everything runs in this process, on the cores that it was given. Where cells fail, the others
    are kept all the same, and the error names the first.
    """
    wanted = list(cells)
    outcome = run_cells(wanted, Path(folder), workers=0, device=device, say=progress)
    progress(f"{plural(outcome.computed, 'cell')} measured, {len(wanted)} in all")
    for cell, message in outcome.failures.items():
        raise GraphEraserError(
            f"{len(outcome.failures)} of {len(wanted)} cells failed; {cell}: {message}",
            hint="the others are kept; run it again for those that failed.",
        )
    found = {cell: outcome.results.get(cell) for cell in wanted}
    return {cell: result for cell, result in found.items() if result is not None}


def measured_f1(
    groups: Mapping[Group, Sequence[Cell]], folder: str | Path, progress: Callable[[str], None]
) -> dict[Group, list[float]]:
    """Return F1 of every cell, by group."""
    results = measured_cells(
        [c for some in groups.values() for c in some], folder, progress=progress
    )
    return {name: [results[c].value["f1"] for c in some] for name, some in groups.items()}
