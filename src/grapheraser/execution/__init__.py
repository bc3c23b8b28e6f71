"""Where shards are trained: in this process, in a pool of processes, or on a Ray cluster."""

from __future__ import annotations

from collections.abc import Callable

from grapheraser.errors import ParameterError
from grapheraser.execution.base import Executor, SlottedExecutor
from grapheraser.execution.local import LocalExecutor
from grapheraser.execution.process import ProcessExecutor
from grapheraser.execution.ray import RayExecutor
from grapheraser.registry import Registry

__all__ = [
    "EXECUTORS",
    "Executor",
    "LocalExecutor",
    "ProcessExecutor",
    "RayExecutor",
    "SlottedExecutor",
    "resolve_executor",
]

EXECUTORS: Registry[Callable[[], Executor]] = Registry("executor")
EXECUTORS.add("local", LocalExecutor)
EXECUTORS.add("process", ProcessExecutor)
EXECUTORS.add("ray", RayExecutor)


def resolve_executor(executor: str | Executor) -> Executor:
    """An executor from its name or itself."""
    if isinstance(executor, str):
        return EXECUTORS.get(executor)()
    if isinstance(executor, Executor) and not isinstance(executor, type):
        return executor
    raise ParameterError.of("executor", "GraphEraser", "a name or an Executor", executor)
