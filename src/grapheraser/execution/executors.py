"""Executors: run one function over many tasks. Results never depend on which one ran them."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Sequence
from concurrent.futures import BrokenExecutor, ProcessPoolExecutor, ThreadPoolExecutor, as_completed
from concurrent.futures import Executor as Pool
from dataclasses import dataclass, field
from typing import Protocol, Self, TypeVar, runtime_checkable

from grapheraser.errors import ParameterError, TrainingError
from grapheraser.registry import Registry

T = TypeVar("T")
R = TypeVar("R")
Tick = Callable[[], None]


def no_tick() -> None:
    """Report progress to nobody."""


@runtime_checkable
class Executor(Protocol):
    """Runs ``function`` on every task and returns the results in the tasks' order.

    A failure of one task does not stop the others; all are reported in one `TrainingError`, whose
    keys are the tasks' names.
    """

    @property
    def name(self) -> str: ...

    def map(
        self,
        function: Callable[[T], R],
        tasks: Sequence[T],
        *,
        names: Sequence[int],
        tick: Tick = no_tick,
    ) -> list[R]:
        """Run all tasks; ``tick`` is called after each."""


@dataclass(frozen=True)
class LocalExecutor:
    """In this process, on ``workers`` threads (default: one per core)."""

    workers: int | None = None
    name: str = "local"

    def map(
        self,
        function: Callable[[T], R],
        tasks: Sequence[T],
        *,
        names: Sequence[int],
        tick: Tick = no_tick,
    ) -> list[R]:
        """See `Executor`."""
        workers = min(_workers(self.workers), len(tasks))
        if workers > 1:
            with ThreadPoolExecutor(workers) as pool:
                return _gather(pool, function, tasks, names, tick)
        results: list[R] = []
        failures: dict[int, BaseException] = {}
        for name, task in zip(names, tasks, strict=True):
            try:
                results.append(function(task))
            except Exception as error:
                failures[name] = error
            tick()
        if failures:
            raise TrainingError(failures)
        return results


@dataclass(frozen=True)
class ProcessExecutor:
    """In ``workers`` fresh processes (default: one per core); tasks must survive pickling.

    Starting them takes seconds. In a block, ``with ProcessExecutor() as executor: ...``, they stay
    from one call to the next.
    """

    workers: int | None = None
    name: str = "process"
    _kept: list[Pool] = field(default_factory=list, init=False, repr=False, compare=False)

    def __enter__(self) -> Self:
        self._kept.append(_processes(_workers(self.workers)))
        return self

    def __exit__(self, *_: object) -> None:
        self._kept.pop().shutdown()

    def map(
        self,
        function: Callable[[T], R],
        tasks: Sequence[T],
        *,
        names: Sequence[int],
        tick: Tick = no_tick,
    ) -> list[R]:
        """See `Executor`."""
        if not tasks:
            return []
        if self._kept:
            try:
                return _gather(self._kept[-1], function, tasks, names, tick)
            except TrainingError as error:
                if any(isinstance(e, BrokenExecutor) for e in error.failures.values()):
                    self._kept.pop().shutdown()
                    self._kept.append(_processes(_workers(self.workers)))
                raise
        with _processes(min(_workers(self.workers), len(tasks))) as pool:
            return _gather(pool, function, tasks, names, tick)


def _processes(workers: int) -> Pool:
    return ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn"))


def _workers(asked: int | None) -> int:
    if asked is None:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
    if asked < 1:
        raise ParameterError.of("workers", "Executor", "a positive int", asked)
    return asked


def _gather(
    pool: Pool, function: Callable[[T], R], tasks: Sequence[T], names: Sequence[int], tick: Tick
) -> list[R]:
    try:
        futures = [pool.submit(function, task) for task in tasks]
    except BrokenExecutor as broken:  # a process died before all of them were handed over
        raise TrainingError(dict.fromkeys(names, broken)) from broken
    failures: dict[int, BaseException] = {}
    place = dict(zip(futures, names, strict=True))
    try:
        for future in as_completed(futures):
            error = future.exception()
            if error is not None:
                failures[place[future]] = error
            tick()
    except BaseException:  # interrupted: what has not begun need not begin
        for future in futures:
            future.cancel()
        raise
    if failures:
        raise TrainingError(dict(sorted(failures.items())))
    return [future.result() for future in futures]


EXECUTORS: Registry[Callable[[], Executor]] = Registry("executor")
EXECUTORS.add("local", LocalExecutor)
EXECUTORS.add("process", ProcessExecutor)


def resolve_executor(executor: str | Executor) -> Executor:
    """An executor from its name or itself."""
    if isinstance(executor, str):
        return EXECUTORS.get(executor)()
    if isinstance(executor, Executor) and not isinstance(executor, type):
        return executor
    raise ParameterError.of("executor", "GraphEraser", "a name or an Executor", executor)
