"""Train on this machine: on threads of this process, or in a pool of processes."""

from __future__ import annotations

import multiprocessing
import pickle
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import BrokenExecutor, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures import Executor as Pool
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Self

from grapheraser.execution.base import R, StreamingExecutor, T, stream_in_pool, worker_count


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
        if workers == 1:
            yield from _one_by_one(function, tasks)
            return
        with ThreadPoolExecutor(workers) as pool:
            yield from stream_in_pool(pool, function, tasks, 2 * workers)


def _one_by_one(
    function: Callable[[T], R], tasks: Iterable[T]
) -> Iterator[tuple[int, R | BaseException]]:
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
