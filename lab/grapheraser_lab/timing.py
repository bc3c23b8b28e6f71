"""Seconds of a call, what many of them come to, and rows for every combination."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from itertools import product
from typing import Any

import numpy as np

from grapheraser.reports.wording import duration
from grapheraser.seeding import generator


def timed(function: Callable[..., Any], *arguments: Any) -> tuple[Any, float]:
    """Return a result, and its processor time: of one thread, wall time less what others took."""
    started = time.process_time()
    result = function(*arguments)
    return result, time.process_time() - started


def processor_seconds(function: Callable[..., Any], *arguments: Any) -> float:
    """Return the processor time of a call."""
    return timed(function, *arguments)[1]


def median_of(seconds: Sequence[float]) -> tuple[float, float]:
    """Return the median, and its standard error: the spread of medians of resampled seconds."""
    values = np.asarray(seconds, dtype=np.float64)
    drawn = generator(0, "bench", "median").integers(len(values), size=(1000, len(values)))
    return float(np.median(values)), float(np.median(values[drawn], axis=1).std())


def with_error(seconds: Sequence[float]) -> str:
    """Tell the median and its standard error."""
    median, error = median_of(seconds)
    return f"{duration(median)} ± {100 * error / median:.0f} %"


def swept(
    measure: Callable[..., dict[str, Any]],
    progress: Callable[[str], None],
    /,
    **axes: Iterable[Any],
) -> list[dict[str, Any]]:
    """Measure every combination of places on the axes, told before its turn; a row for each."""
    rows = []
    for point in product(*axes.values()):
        at = dict(zip(axes, point, strict=True))
        progress(", ".join(f"{name} {place}" for name, place in at.items()))
        rows.append(at | measure(*point))
    return rows
