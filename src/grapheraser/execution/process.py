"""Train in a pool of processes on this machine."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Sequence
from concurrent.futures import BrokenExecutor, ProcessPoolExecutor
from concurrent.futures import Executor as Pool
from dataclasses import dataclass, field
from typing import Self

from grapheraser.errors import TrainingError
from grapheraser.execution.base import R, T, Tick, map_in_pool, no_tick, worker_count


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
        self._kept.append(_processes(worker_count(self.workers)))
        return self

    def __exit__(self, *_: object) -> None:
        self._kept.pop().shutdown()

    def slots(self) -> int:
        """The workers asked for; by default one, since all share the devices of this machine."""
        return 1 if self.workers is None else worker_count(self.workers)

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
        if not self._kept:
            with _processes(min(worker_count(self.workers), len(tasks))) as pool:
                return map_in_pool(pool, function, tasks, names, tick)
        try:
            return map_in_pool(self._kept[-1], function, tasks, names, tick)
        except TrainingError as error:
            if any(isinstance(e, BrokenExecutor) for e in error.failures.values()):
                self._kept.pop().shutdown()
                self._kept.append(_processes(worker_count(self.workers)))
            raise


def _processes(workers: int) -> Pool:
    return ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn"))
