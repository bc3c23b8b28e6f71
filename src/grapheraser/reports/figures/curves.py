"""Curves with a band of one standard deviation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from grapheraser.reports.figures.canvas import MUTED, dress
from grapheraser.reports.figures.panels import (
    colour,
    decades,
    label_left,
    legend,
    numbers,
    panel_grid,
)


@dataclass(frozen=True)
class Curves:
    """One panel of curves: for every series its x, its y, and half the width of its band."""

    title: str
    series: Mapping[str, tuple[Sequence[float], Sequence[float | None], Sequence[float | None]]]
    log_y: bool = False


def draw_curves(
    panels: Sequence[Curves],
    xlabel: str,
    ylabel: str,
    *,
    columns: int = 4,
    log_x: bool = False,
) -> Any:
    """Curves with a band of one standard deviation."""
    figure, places = panel_grid(len(panels), width=2.75, height=2.35, columns=columns)
    for axes, panel in zip(places, panels, strict=False):
        for name, (x, y, band) in panel.series.items():
            tint, heights = colour(name), numbers(y)
            dashed = name.endswith(("/large", "non-uniform"))
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
            axes.set_xticks(places_x, [f"{place:g}" for place in places_x])
            axes.minorticks_off()
        if panel.log_y and every:
            decades(axes, np.concatenate([numbers(line[1]) for line in every]))
    for axes in places[max(0, len(panels) - columns) : len(panels)]:
        axes.set_xlabel(xlabel, color=MUTED, fontsize=9)
    label_left(places, ylabel, columns)
    legend(figure, places)
    return figure
