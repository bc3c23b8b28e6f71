"""Means over runs, beside the paper's, and what counts as a difference."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from grapheraser.reports.tables import ABOVE, BELOW, Entry
from grapheraser_lab.framework.published import Published
from grapheraser_lab.framework.resolve import shown

# Two figures of F1 nearer than this are never called different.
LEAST = 0.01
# The mark of a collapsed cell.
COLLAPSED = "†"


@dataclass(frozen=True)
class Mean:
    """A mean over runs.

    Attributes:
        mean: of the runs.
        std: standard deviation over the runs (n - 1); None for a single run.
        runs: how many.
        tested: test nodes of a run, for the noise of a single run.
        by_run: the number and the value of each run.
        collapsed: whether the answers say no more than the most frequent class does.
        floor: F1 of always answering with the most frequent class, where it is known.
    """

    mean: float
    std: float | None
    runs: int
    tested: int = 0
    by_run: tuple[tuple[int, float], ...] = ()
    collapsed: bool = False
    floor: float | None = None

    @property
    def noise(self) -> float:
        """One standard deviation of a run; of a single one, that of counting its test nodes."""
        if self.std is not None:
            return self.std
        p = min(max(self.mean, 0.0), 1.0)
        return math.sqrt(p * (1 - p) / self.tested) if self.tested else 0.0

    @property
    def error(self) -> float:
        """Standard error of the mean; unknown, and so infinite, of a single run of its own kind."""
        if self.std is None and not self.tested:
            return math.inf
        return self.noise / math.sqrt(max(1, self.runs))

    def __str__(self) -> str:
        text = f"{self.mean:.3f}" if self.std is None else f"{self.mean:.3f} ± {self.std:.3f}"
        return f"{text} {COLLAPSED}" if self.collapsed else text


def mean_of(
    values: Iterable[float | None] | Mapping[int, float | None],
    tested: int = 0,
    *,
    collapsed: bool = False,
    floor: float | None = None,
) -> Mean | None:
    """The mean of the values that are there, by run or in the order of runs; None for none."""
    items = values.items() if isinstance(values, Mapping) else enumerate(values)
    by_run = tuple((run, float(value)) for run, value in items if value is not None)
    if not by_run:
        return None
    known = [value for _, value in by_run]
    std = float(np.std(known, ddof=1)) if len(known) > 1 else None
    return Mean(float(np.mean(known)), std, len(known), tested, by_run, collapsed, floor)


def beyond(ours: Mean, other: Mean | Published) -> bool:
    """Tell if two figures differ by more than two standard deviations of a run, and by 0.01."""
    noise = other.noise if isinstance(other, Mean) else (other.std or 0.0)
    apart = abs(ours.mean - other.mean)
    return apart > max(LEAST, 2 * math.hypot(ours.noise, noise))


def entry(ours: Mean | None, published: Published | None = None) -> Entry:
    """The table's entry: ours, and below it the paper's with the difference, marked if real."""
    if ours is None:
        return Entry("-", "" if published is None else f"paper {published.mean:.3f}")
    if published is None:
        return Entry(str(ours))
    difference = ours.mean - published.mean
    mark = (ABOVE if difference > 0 else BELOW) if beyond(ours, published) else ""
    return Entry(str(ours), f"paper {published.mean:.3f} ({signed(difference)})", mark)


def signed(value: float, digits: int = 3) -> str:
    """With its sign."""
    text = f"{abs(value):.{digits}f}"
    return f"+{text}" if value >= 0 else f"-{text}"


def pearson(x: Sequence[float], y: Sequence[float]) -> float | None:
    """Pearson's correlation; None where one side is constant."""
    if len(x) < 2 or np.ptp(x) == 0 or np.ptp(y) == 0:
        return None
    return float(np.corrcoef(x, y)[0, 1])


def heights(values: Iterable[Mean | Published | None]) -> list[float | None]:
    """Their means, for a chart."""
    return [None if value is None else value.mean for value in values]


def errors(values: Iterable[Mean | None]) -> list[float | None]:
    """Their standard errors, for a chart."""
    return [None if v is None or math.isinf(v.error) else v.error for v in values]


def spreads(values: Iterable[Mean | Published | None]) -> list[float | None]:
    """Their standard deviations, for a chart."""
    return [None if value is None else value.std for value in values]


def run_rows(
    found: Mapping[tuple[Any, ...], Mean], columns: Sequence[str], value: str = "f1", **more: Any
) -> list[dict[str, Any]]:
    """A tidy row for each run of each mean."""
    return [
        {
            **{name: printed(name, part) for name, part in zip(columns, key, strict=True)},
            **more,
            "run": run,
            value: figure,
        }
        for key, mean in found.items()
        for run, figure in mean.by_run
    ]


def printed(column: str, part: Any) -> Any:
    """A part of a key as tidy rows hold it."""
    return shown(part) if column in ("dataset", "model", "series") else part
