"""Train in this process, on threads."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

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
