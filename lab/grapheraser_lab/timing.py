"""Seconds of a call, by the two clocks that measurements use."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any


def wall_seconds(function: Callable[..., Any], *arguments: Any) -> float:
    """Return the seconds that a caller waits."""
    started = time.perf_counter()
    function(*arguments)
    return time.perf_counter() - started


def processor_seconds(function: Callable[..., Any], *arguments: Any) -> float:
    """Return the processor time: with one thread, wall time less what other processes took."""
    started = time.process_time()
    function(*arguments)
    return time.process_time() - started
