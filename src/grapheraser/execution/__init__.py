"""Executors of training: in this process, in a pool of processes, or on a Ray cluster."""

from __future__ import annotations

from collections.abc import Callable

from grapheraser.errors import ParameterError
from grapheraser.execution.base import (
    Executor,
    LocalExecutor,
    ProcessExecutor,
    SlottedExecutor,
    StreamingExecutor,
    held,
    streamed,
)
from grapheraser.execution.ray import RayExecutor
from grapheraser.registry import Registry

__all__ = [
    "EXECUTORS",
    "Executor",
    "LocalExecutor",
    "ProcessExecutor",
    "RayExecutor",
    "SlottedExecutor",
    "StreamingExecutor",
    "held",
    "resolve_executor",
    "streamed",
]

# From the device that tasks compute on.
EXECUTORS: Registry[Callable[[str], Executor]] = Registry("executor")
EXECUTORS.add("local", lambda device: LocalExecutor())
EXECUTORS.add("process", lambda device: ProcessExecutor())
EXECUTORS.add("ray", RayExecutor.on)


def resolve_executor(executor: str | Executor, device: str = "cpu") -> Executor:
    """An executor from its name, for tasks that compute on a device, or itself."""
    if isinstance(executor, str):
        return EXECUTORS.get(executor)(device)
    if isinstance(executor, Executor) and not isinstance(executor, type):
        return executor
    raise ParameterError.of("executor", "GraphEraser", "a name or an Executor", executor)
