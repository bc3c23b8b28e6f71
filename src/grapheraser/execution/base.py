"""The interface of executors, and those of this machine: threads and processes."""

from __future__ import annotations

import multiprocessing
import os
import pickle
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    Future,
    ProcessPoolExecutor,
    ThreadPoolExecutor,
    wait,
)
from concurrent.futures import Executor as Pool
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import cache
from itertools import islice
from typing import Any, Protocol, Self, TypeVar, runtime_checkable

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
        """Return how many; one for an executor without this method."""


class StreamingExecutor(ABC):
    """An executor that hands over each result as it is there; `map` gathers them."""

    @abstractmethod
    def stream(
        self, function: Callable[[T], R], tasks: Iterable[T]
    ) -> Iterator[tuple[int, R | BaseException]]:
        """Each task's place and its result or error, as the tasks finish.

        A task is taken only when there is room for it, so that tasks may be made, and results
        put away, one by one. Who stops iterating calls off what has not begun.
        """

    def map(
        self,
        function: Callable[[T], R],
        tasks: Sequence[T],
        *,
        names: Sequence[int],
        tick: Tick = no_tick,
    ) -> list[R]:
        """See `Executor`."""
        results: dict[int, R] = {}
        failures: dict[int, BaseException] = {}
        for place, outcome in self.stream(function, tasks):
            if isinstance(outcome, BaseException):
                failures[names[place]] = outcome
            else:
                results[place] = outcome
            tick()
        if failures:
            raise TrainingError(dict(sorted(failures.items())))
        return [results[place] for place in range(len(names))]


def streamed(
    executor: Executor, function: Callable[[T], R], tasks: Sequence[T]
) -> Iterator[tuple[int, R | BaseException]]:
    """Yield results as they are there; all at the end where an executor can't do that."""
    if isinstance(executor, StreamingExecutor):
        yield from executor.stream(function, tasks)
    else:
        yield from enumerate(executor.map(function, tasks, names=range(len(tasks))))


def held(executor: Executor) -> AbstractContextManager[Any]:
    """A block in which an executor keeps what it started from one call to the next, if it can."""
    return executor if isinstance(executor, AbstractContextManager) else nullcontext()


def stream_in_pool(
    pool: Pool, function: Callable[[T], R], tasks: Iterable[T], room: int
) -> Iterator[tuple[int, R | BaseException]]:
    """See `StreamingExecutor`; on the threads or processes of a pool, so many tasks at a time."""
    waiting: dict[Future[R], int] = {}
    places = enumerate(tasks)
    try:
        while True:
            for place, task in islice(places, room - len(waiting)):
                waiting[_submitted(pool, function, task)] = place
            if not waiting:
                return
            for done in wait(waiting, return_when=FIRST_COMPLETED).done:
                yield waiting.pop(done), _outcome(done)
    finally:  # after an interrupt, what has not begun need not begin
        for future in waiting:
            future.cancel()


def _submitted(pool: Pool, function: Callable[[T], R], task: T) -> Future[R]:
    try:
        return pool.submit(function, task)
    except BrokenExecutor as broken:  # a process died before all tasks were handed over
        failed: Future[R] = Future()
        failed.set_exception(broken)
        return failed


def _outcome(future: Future[Any]) -> Any:
    error = future.exception()
    return future.result() if error is None else error


def worker_count(asked: int | None, tasks: Iterable[Any] = ()) -> int:
    """The workers asked for, by default one per core; not more than there are tasks."""
    if asked is None:
        here = hasattr(os, "sched_getaffinity")
        count = len(os.sched_getaffinity(0)) if here else os.cpu_count() or 1
    elif asked < 1:
        raise ParameterError.of("workers", "Executor", "a positive int", asked)
    else:
        count = asked
    return min(count, len(tasks) or count) if isinstance(tasks, Sized) else count


@dataclass(frozen=True)
class LocalExecutor(StreamingExecutor):
    """In this process, on ``workers`` threads (default: one per core)."""

    workers: int | None = None
    name: str = "local"

    def stream(
        self, function: Callable[[T], R], tasks: Iterable[T]
    ) -> Iterator[tuple[int, R | BaseException]]:
        """See `StreamingExecutor`."""
        workers = worker_count(self.workers, tasks)
        if workers > 1:
            with ThreadPoolExecutor(workers) as pool:
                yield from stream_in_pool(pool, function, tasks, 2 * workers)
            return
        for place, task in enumerate(tasks):
            try:
                outcome: R | BaseException = function(task)
            except Exception as error:
                outcome = error
            yield place, outcome


# What the processes of a pool for one call run, pickled. It may carry a whole graph, so it is sent
# to a process once, not with every task.
_given = b""


@dataclass(frozen=True)
class ProcessExecutor(StreamingExecutor):
    """In ``workers`` fresh processes (default: one per core); tasks must survive pickling.

    Starting them takes seconds. In a block, ``with ProcessExecutor() as executor: ...``, they stay
    from one call to the next.
    """

    workers: int | None = None
    name: str = "process"
    _kept: list[Pool] = field(default_factory=list, init=False, repr=False, compare=False)

    def __enter__(self) -> Self:
        pool = self._kept[-1] if self._kept else _processes(worker_count(self.workers))
        self._kept.append(pool)
        return self

    def __exit__(self, *_: object) -> None:
        pool = self._kept.pop()
        if not self._kept:
            pool.shutdown()

    def slots(self) -> int:
        """The workers asked for; by default one, since all share the devices of this machine."""
        return 1 if self.workers is None else worker_count(self.workers)

    def stream(
        self, function: Callable[[T], R], tasks: Iterable[T]
    ) -> Iterator[tuple[int, R | BaseException]]:
        """See `StreamingExecutor`."""
        workers = worker_count(self.workers, tasks)
        if not self._kept:
            yield from _stream_once(function, tasks, workers)
            return
        broken = False
        try:
            for place, outcome in stream_in_pool(self._kept[-1], function, tasks, 2 * workers):
                broken |= isinstance(outcome, BrokenExecutor)
                yield place, outcome
        finally:
            if broken:
                self._kept[-1].shutdown()
                self._kept[:] = [_processes(worker_count(self.workers))] * len(self._kept)


def _stream_once(
    function: Callable[[T], R], tasks: Iterable[T], workers: int
) -> Iterator[tuple[int, R | BaseException]]:
    """On processes for this call alone."""
    try:
        given = pickle.dumps(function, protocol=pickle.HIGHEST_PROTOCOL)
    except Exception as error:  # pickle raises whatever a part of the function does
        yield from ((place, error) for place, _ in enumerate(tasks))
        return
    with _processes(workers, given) as pool:
        yield from stream_in_pool(pool, _call_given, tasks, 2 * workers)


def _processes(workers: int, given: bytes = b"") -> Pool:
    """Processes that start as they are needed."""
    spawn = multiprocessing.get_context("spawn")
    return ProcessPoolExecutor(workers, mp_context=spawn, initializer=_take, initargs=(given,))


def _take(given: bytes) -> None:
    global _given  # noqa: PLW0603  (a process has one)
    _given = given


@cache
def _function() -> Callable[[Any], Any]:
    return pickle.loads(_given)


def _call_given(task: Any) -> Any:
    return _function()(task)
