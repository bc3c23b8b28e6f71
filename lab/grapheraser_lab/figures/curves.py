"""Curves with a band of one standard deviation."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from grapheraser.reports.figures.canvas import MUTED, dress
from grapheraser_lab.figures.panels import colour, decades, label_left, legend, numbers, panel_grid


@dataclass(frozen=True)
class Curves:
    """One panel of curves: for every series its x, its y, and half the width of its band."""

    title: str
    series: Mapping[str, tuple[Sequence[float], Sequence[float | None], Sequence[float | None]]]
    log_y: bool = False


# An axis of F1 spans at least this much: less would make noise look like a crash.
LEAST_SPAN = 0.2


def shared_limits(panels: Sequence[Curves]) -> tuple[float, float] | None:
    """One vertical axis for all panels: what they hold with their bands, and a margin."""
    ends: list[float] = []
    for panel in panels:
        for _, y, band in panel.series.values():
            heights, width = numbers(y), np.nan_to_num(numbers(band))
            ends += [*(heights - width), *(heights + width)]
    known = np.array(ends)[np.isfinite(ends)]
    if not len(known):
        return None
    low, high = float(known.min()), float(known.max())
    spare = max(0.0, LEAST_SPAN - (high - low)) / 2 + 0.04 * max(high - low, LEAST_SPAN)
    return low - spare, high + spare


def draw_curves(
    panels: Sequence[Curves],
    xlabel: str,
    ylabel: str,
    *,
    columns: int = 4,
    log_x: bool = False,
    whole_x: bool = False,
    limits: tuple[float, float] | None = None,
) -> Any:
    """Curves with a band of one standard deviation.

    Args:
        panels: what to draw.
        xlabel: names the horizontal axis.
        ylabel: names the vertical one.
        columns: panels in a row.
        log_x: whether the horizontal axis is logarithmic; it has a tick at each place.
        whole_x: whether its ticks are whole numbers.
        limits: of the vertical axis of all panels but logarithmic ones; see `shared_limits`.
    """
    figure, places = panel_grid(len(panels), width=2.75, height=2.35, columns=columns)
    for axes, panel in zip(places, panels, strict=False):
        for name, (x, y, band) in panel.series.items():
            tint, heights = colour(name), numbers(y)
            dashed = name.endswith(("/large", "non-uniform", "-free"))
            axes.plot(
                x,
                heights,
                color=tint,
                linewidth=1.7,
                marker="o",
                markersize=3.2,
                linestyle="--" if dashed else "-",
                label=name,
                zorder=3,
            )
            width = np.nan_to_num(numbers(band))
            if width.any():
                low, high = heights - width, heights + width
                axes.fill_between(x, low, high, color=tint, alpha=0.15, linewidth=0, zorder=2)
        dress(axes, panel.title)
        every = [line for line in panel.series.values() if len(line[0])]
        if log_x and every:
            places_x = sorted({float(place) for line in every for place in line[0]})
            axes.set_xscale("log")
            axes.set_xticks(places_x, [_size(place) for place in places_x])
            axes.minorticks_off()
        if whole_x:
            from matplotlib.ticker import MaxNLocator

            axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        if panel.log_y and every:
            decades(axes, np.concatenate([numbers(line[1]) for line in every]))
        elif limits is not None:
            axes.set_ylim(*limits)
    for axes in places[max(0, len(panels) - columns) : len(panels)]:
        axes.set_xlabel(xlabel, color=MUTED, fontsize=9)
    label_left(places, ylabel, columns)
    legend(figure, places)
    return figure


def _size(value: float) -> str:
    """A number, or the power of ten that it is about where it is large."""
    power = round(math.log10(value)) if value > 0 else 0
    if value >= 1e4 and abs(value / 10**power - 1) < 0.1:
        return f"$10^{{{power}}}$"
    return f"{value:g}"
