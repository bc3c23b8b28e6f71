"""Train in this process, on threads."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from grapheraser.execution.base import R, T, Tick, gather, map_in_pool, no_tick, worker_count


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
        workers = min(worker_count(self.workers), len(tasks))
        if workers > 1:
            with ThreadPoolExecutor(workers) as pool:
                return map_in_pool(pool, function, tasks, names, tick)
        return gather(names, _one_by_one(function, tasks), tick)


def _one_by_one(
    function: Callable[[T], R], tasks: Sequence[T]
) -> Iterator[tuple[int, R | BaseException]]:
    for place, task in enumerate(tasks):
        try:
            outcome: R | BaseException = function(task)
        except Exception as error:
            outcome = error
        yield place, outcome
