"""Train on a Ray cluster: one task a shard."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from grapheraser.errors import MissingExtraError, ParameterError
from grapheraser.execution.base import R, T, Tick, gather, no_tick

# A shard is too small to gain from several threads, and the other cores have shards of their own.
_ONE_THREAD = {f"{library}_NUM_THREADS": "1" for library in ("OMP", "OPENBLAS", "MKL", "NUMBA")}


@dataclass(frozen=True)
class RayExecutor:
    """On a Ray cluster, one task a shard; needs the extra ``ray``.

    Uses the Ray that this process is connected to, else the cluster at ``address`` or at the
    environment's ``RAY_ADDRESS``, else starts Ray on this machine. What it connected or started
    itself it shuts down after each call; in a block, ``with RayExecutor() as executor: ...``, it
    stays from one call to the next. The nodes of a cluster need the same versions of GraphEraser
    and of the modules that define a model of your own.

    Attributes:
        address: of a running cluster.
        num_cpus, num_gpus: what each task reserves; a CUDA engine needs ``num_gpus=1``.
        max_retries: how often a task starts anew after its process or node was lost.
    """

    address: str | None = None
    num_cpus: float = 1
    num_gpus: float = 0
    max_retries: int = 3
    name: str = "ray"
    _began: list[bool] = field(default_factory=list, init=False, repr=False, compare=False)

    def __enter__(self) -> Self:
        began = not _ray().is_initialized()
        if began:
            self._connect()
        self._began.append(began)
        return self

    def __exit__(self, *_: object) -> None:
        if self._began.pop():
            _ray().shutdown()

    def slots(self) -> int:
        """As many tasks as the cluster has GPUs, or else CPUs, for."""
        kind, each = ("GPU", self.num_gpus) if self.num_gpus else ("CPU", self.num_cpus)
        with self:
            return max(1, int(_ray().cluster_resources().get(kind, 0) // (each or 1)))

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
        with self:
            ray = _ray()
            call = ray.remote(_call).options(
                num_cpus=self.num_cpus,
                num_gpus=self.num_gpus,
                max_retries=self.max_retries,
                runtime_env={"env_vars": _ONE_THREAD},
            )
            shared = ray.put(function)
            waiting = [call.remote(shared, ray.put(task)) for task in tasks]
            try:
                return gather(names, _finished(waiting), tick)
            finally:  # after an interrupt; Ray may abort this process for cancelling finished calls
                for pending in waiting:
                    ray.cancel(pending)

    def _connect(self) -> None:
        address = self.address or os.environ.get("RAY_ADDRESS") or "local"
        options: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
        if address == "local":
            # The workers share this machine's files, so they find whatever this process finds.
            paths = os.pathsep.join(path or os.getcwd() for path in sys.path)
            options |= {
                "include_dashboard": False,
                "runtime_env": {"env_vars": {"PYTHONPATH": paths}},
            }
            os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        try:
            _ray().init(address, **options)
        except ConnectionError as error:
            raise ParameterError.of(
                "address", "RayExecutor", "that of a running Ray cluster", address
            ) from error


def _ray() -> Any:
    try:
        import ray
    except ImportError:
        raise MissingExtraError.of("ray", "ray", "the executor 'ray'") from None
    return ray


def _call(function: Callable[[T], R], task: T) -> R:
    return function(task)


def _finished(waiting: list[Any]) -> Iterator[tuple[int, Any]]:
    """Each call's place and its result or error, as the calls finish and leave the list."""
    ray = _ray()
    place = {call: i for i, call in enumerate(waiting)}
    while waiting:
        (done,), _ = ray.wait(waiting, num_returns=1)
        waiting.remove(done)
        try:
            outcome = ray.get(done)
        except ray.exceptions.RayTaskError as error:
            outcome = error.cause  # what the function raised
        except ray.exceptions.RayError as error:
            outcome = error
        yield place[done], outcome
