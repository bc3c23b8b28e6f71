"""Seconds of a call, and what many of them come to."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from grapheraser.reports.wording import duration
from grapheraser.seeding import generator


def processor_seconds(function: Callable[..., Any], *arguments: Any) -> float:
    """Return the processor time: with one thread, wall time less what other processes took."""
    started = time.process_time()
    function(*arguments)
    return time.process_time() - started


def median_of(seconds: Sequence[float]) -> tuple[float, float]:
    """Return the median, and its standard error: the spread of medians of resampled seconds."""
    values = np.asarray(seconds, dtype=np.float64)
    drawn = generator(0, "bench", "median").integers(len(values), size=(1000, len(values)))
    return float(np.median(values)), float(np.median(values[drawn], axis=1).std())


def with_error(seconds: Sequence[float]) -> str:
    """Tell the median and its standard error."""
    median, error = median_of(seconds)
    return f"{duration(median)} ± {100 * error / median:.0f} %"
