"""What every executor promises, and how results and failures are gathered."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import BrokenExecutor, Future, as_completed
from concurrent.futures import Executor as Pool
from typing import Any, Protocol, TypeVar, runtime_checkable

from grapheraser.errors import ParameterError, TrainingError

T = TypeVar("T")
R = TypeVar("R")
Tick = Callable[[], None]


def no_tick() -> None:
    """Report progress to nobody."""


@runtime_checkable
class Executor(Protocol):
    """Runs ``function`` on every task and returns the results in the tasks' order.

    A failure of one task does not stop the others; all are reported in one `TrainingError`, whose
    keys are the tasks' names. Results never depend on which executor ran the tasks.
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


@runtime_checkable
class SlottedExecutor(Protocol):
    """An executor that trains several stacks of shards at once, for engines that stack them."""

    def slots(self) -> int:
        """How many; one for an executor without this method."""


def gather(
    names: Sequence[int],
    finished: Iterable[tuple[int, R | BaseException]],
    tick: Tick,
) -> list[R]:
    """The results in the tasks' order, or one `TrainingError` with every failure.

    Args:
        names: of the tasks.
        finished: a task's place and its result or error, as the tasks finish.
        tick: called after each of them.
    """
    results: dict[int, R] = {}
    failures: dict[int, BaseException] = {}
    for place, outcome in finished:
        if isinstance(outcome, BaseException):
            failures[names[place]] = outcome
        else:
            results[place] = outcome
        tick()
    if failures:
        raise TrainingError(dict(sorted(failures.items())))
    return [results[place] for place in range(len(names))]


def map_in_pool(
    pool: Pool, function: Callable[[T], R], tasks: Sequence[T], names: Sequence[int], tick: Tick
) -> list[R]:
    """Run all tasks on the threads or processes of a pool."""
    try:
        futures = [pool.submit(function, task) for task in tasks]
    except BrokenExecutor as broken:  # a process died before all tasks were handed over
        raise TrainingError(dict.fromkeys(names, broken)) from broken
    place = {future: i for i, future in enumerate(futures)}
    try:
        return gather(
            names, ((place[done], _outcome(done)) for done in as_completed(futures)), tick
        )
    finally:  # after an interrupt, what has not begun need not begin
        for future in futures:
            future.cancel()


def _outcome(future: Future[Any]) -> Any:
    error = future.exception()
    return future.result() if error is None else error


def worker_count(asked: int | None) -> int:
    """The number of workers that was asked for; by default one per core."""
    if asked is None:
        if hasattr(os, "sched_getaffinity"):
            return len(os.sched_getaffinity(0))
        return os.cpu_count() or 1
    if asked < 1:
        raise ParameterError.of("workers", "Executor", "a positive int", asked)
    return asked
