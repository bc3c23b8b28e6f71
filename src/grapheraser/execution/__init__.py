"""Where shards are trained: in this process, or in a pool of processes."""

from grapheraser.execution.executors import (
    EXECUTORS,
    Executor,
    LocalExecutor,
    ProcessExecutor,
    resolve_executor,
)

__all__ = ["EXECUTORS", "Executor", "LocalExecutor", "ProcessExecutor", "resolve_executor"]
