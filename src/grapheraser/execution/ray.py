"""Train on a Ray cluster: one task a shard.

Ray places the tasks, keeps what they share, starts those anew that were lost with their node, and
computes lost results again. Here is only what connects to it, how many tasks are in flight, and
what its errors mean.
"""

from __future__ import annotations

import logging
import math
import os
import socket
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import Any, Self

from grapheraser.checks import real, whole
from grapheraser.environment import versions
from grapheraser.errors import MissingExtraError, ParameterError, WorkerError
from grapheraser.execution.base import R, StreamingExecutor, T

# A shard is too small to gain from several threads, and the other cores have shards of their own.
_ONE_THREAD = {f"{library}_NUM_THREADS": "1" for library in ("OMP", "OPENBLAS", "MKL", "NUMBA")}
# Ray waits for minutes at an address where nobody answers.
_ANSWER_S = 5.0
_OWNER, _LOCAL = "RayExecutor", "local"


@dataclass(frozen=True)
class RayExecutor(StreamingExecutor):
    """On a Ray cluster, one task a shard; needs the extra ``ray``.

    Uses the Ray that this process is connected to, else the cluster at ``address`` or at the
    environment's ``RAY_ADDRESS``, else starts Ray on this machine. What it connected or started
    itself it shuts down after each call; in a block, ``with RayExecutor() as executor: ...``, it
    stays from one call to the next. docs/clusters.md says what the nodes of a cluster need.

    Attributes:
        address: of a running cluster, ``host:port``.
        num_cpus, num_gpus: what each task reserves, also less than one: with ``num_gpus=0.5`` two
            tasks share a GPU. By its name the executor reserves a GPU where the device is one.
        max_retries: how often a task starts anew after its process or node was lost; -1: always.
        workers: how many tasks there are at once; None: as many as the cluster has room for, and
            as many again that wait for them. Ray on this machine starts with room for so many.
        options: further options of ``ray.remote``, such as ``memory``, ``resources``,
            ``scheduling_strategy`` and ``runtime_env``.
    """

    address: str | None = None
    num_cpus: float = 1
    num_gpus: float = 0
    max_retries: int = 3
    workers: int | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    name: str = "ray"
    _began: list[bool] = field(default_factory=list, init=False, repr=False, compare=False)

    @classmethod
    def on(cls, device: str) -> RayExecutor:
        """The executor for tasks that compute on a device."""
        if not device.startswith("cuda"):
            return cls()
        if device not in ("cuda", "cuda:0"):
            raise ParameterError(
                f"executor 'ray' can't use device {device!r}: Ray chooses the GPU of each task.",
                hint="use device='cuda'.",
            )
        return cls(num_gpus=1)

    def __enter__(self) -> Self:
        self._check()
        began = not _ray().is_initialized()
        if began:
            self._connect()
        self._began.append(began)
        return self

    def __exit__(self, *_: object) -> None:
        if self._began.pop():
            _ray().shutdown()

    def slots(self) -> int:
        """Return how many tasks the cluster has CPUs and GPUs for, at most ``workers``."""
        with self:
            return max(1, min(self._places(), self.workers or sys.maxsize))

    def stream(
        self, function: Callable[[T], R], tasks: Iterable[T]
    ) -> Iterator[tuple[int, R | BaseException]]:
        """See `StreamingExecutor`."""
        places = enumerate(tasks)
        first = next(places, None)
        if first is None:
            return
        left, here = chain([first], places), versions()
        with self:
            self._check_places()
            ray, call = _ray(), self._remote()
            shared, waiting = ray.put(function), dict[Any, int]()
            try:
                while True:
                    for place, task in islice(left, max(0, self._room() - len(waiting))):
                        waiting[call.remote(shared, task, here)] = place
                    if not waiting:
                        return
                    (done,), _ = ray.wait(list(waiting), num_returns=1)
                    yield waiting.pop(done), _outcome(done)
            finally:  # after an interrupt; Ray may abort this process for cancelling finished calls
                for pending in waiting:
                    ray.cancel(pending)

    def _remote(self) -> Any:
        """The call of a function on a task, with what it reserves."""
        options = dict(self.options)
        environment = dict(options.pop("runtime_env", {}))
        environment["env_vars"] = _ONE_THREAD | dict(environment.get("env_vars", {}))
        reserved = {"num_cpus": self.num_cpus, "num_gpus": self.num_gpus}
        retried = {"max_retries": self.max_retries}
        given = reserved | retried | options
        return _ray().remote(_call).options(**given, runtime_env=environment)

    def _room(self) -> int:
        """Return how many tasks may be in flight; nodes that join make room for more."""
        return self.workers or 2 * max(1, self._places())

    def _places(self) -> int:
        """Return how many tasks the nodes can run at once."""
        needs = {"CPU": self.num_cpus, "GPU": self.num_gpus}
        needs = {kind: each for kind, each in needs.items() if each} or {"CPU": 1.0}
        nodes = [node["Resources"] for node in _ray().nodes() if node["Alive"]]
        return sum(
            min(int(node.get(kind, 0) / each + 1e-9) for kind, each in needs.items())
            for node in nodes
        )

    def _check_places(self) -> None:
        """Say it where a task fits on no node: Ray would wait without a word."""
        if self._places():
            return
        wanted = f"no node of the cluster has {self.num_cpus:g} CPUs and {self.num_gpus:g} GPUs"
        if self._began[0] and self._target == _LOCAL:
            raise ParameterError(
                f"{wanted} for a task.", hint="lower num_cpus or num_gpus of RayExecutor."
            )
        warnings.warn(f"{wanted} for a task; waiting until one joins.", stacklevel=4)

    def _check(self) -> None:
        real("num_cpus", _OWNER, self.num_cpus, 0)
        real("num_gpus", _OWNER, self.num_gpus, 0)
        whole("max_retries", _OWNER, self.max_retries, -1)
        if self.workers is not None:
            whole("workers", _OWNER, self.workers, 1)
        for name in ("num_cpus", "num_gpus", "max_retries"):
            if name in self.options:
                raise ParameterError(
                    f"'options' of {_OWNER} has '{name}', which is an argument of its own.",
                    hint=f"{_OWNER}({name}={self.options[name]!r}).",
                )

    @property
    def _target(self) -> str:
        return self.address or os.environ.get("RAY_ADDRESS") or _LOCAL

    def _connect(self) -> None:
        address, ray = self._target, _ray()
        options: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
        if address == _LOCAL:
            # The workers share this machine's files, so they find whatever this process finds.
            paths = os.pathsep.join(path or os.getcwd() for path in sys.path)
            options |= {
                "include_dashboard": False,
                "runtime_env": {"env_vars": {"PYTHONPATH": paths}},
            }
            if self.workers is not None:
                options["num_cpus"] = max(1, math.ceil(self.workers * self.num_cpus))
        # Ray retries a task that ran out of memory for ever, unless it is told otherwise.
        retried = {"RAY_task_oom_retries": str(self.max_retries)}
        try:
            _check_answer(address)
            with _environment(RAY_USAGE_STATS_ENABLED="0", **retried):
                ray.init(address, **options)
        except (OSError, ValueError, RuntimeError, ray.exceptions.RayError) as error:
            raise ParameterError(
                f"'address' of {_OWNER} must be that of a running Ray cluster. Got {address!r} "
                f"({type(error).__name__}: {_first_line(error)}).",
                hint="'ray start --head' starts one and prints its address; without an address "
                "and RAY_ADDRESS, Ray starts on this machine.",
            ) from error


@contextmanager
def _environment(**variables: str) -> Iterator[None]:
    """Set variables that are not set, for a while."""
    new = {name: value for name, value in variables.items() if name not in os.environ}
    os.environ.update(new)
    try:
        yield
    finally:
        for name in new:
            os.environ.pop(name, None)


def _check_answer(address: str) -> None:
    """Raise an error unless somebody listens at an address of the form ``host:port``."""
    host, colon, port = address.rpartition(":")
    if colon and port.isdecimal() and "/" not in host:
        with socket.create_connection((host.strip("[]"), int(port)), timeout=_ANSWER_S):
            pass


def _ray() -> Any:
    try:
        import ray
    except ImportError:
        raise MissingExtraError.of("ray", "ray", "the executor 'ray'") from None
    return ray


def _call(function: Callable[[T], R], task: T, expected: Mapping[str, str]) -> R:
    """Run a task on a worker, where it gives the bits that it would give elsewhere."""
    found = versions()
    other = [
        f"{name} {found.get(name)} instead of {v}"
        for name, v in expected.items()
        if found.get(name) != v
    ]
    if other:
        raise WorkerError(
            f"a worker would compute other bits: it has {', '.join(other)}.",
            hint="install the same versions on every node.",
        )
    return function(task)


def _outcome(done: Any) -> Any:
    """Return what a finished call returned, or what went wrong."""
    ray = _ray()
    try:
        return ray.get(done)
    except ray.exceptions.RayTaskError as error:
        return error.cause  # what the function raised
    except ray.exceptions.OutOfMemoryError as error:
        return WorkerError(
            f"out of memory: {_first_line(error)}",
            hint="let fewer tasks share a node (num_cpus of RayExecutor, or options={'memory': "
            "bytes}), or make shards smaller.",
        )
    except ray.exceptions.RayError as error:
        return WorkerError(f"{type(error).__name__}: {_first_line(error)}")


def _first_line(error: BaseException) -> str:
    return str(error).strip().partition("\n")[0]
