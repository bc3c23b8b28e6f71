"""Grouped bars with the paper's figures as marks, and bars of shard sizes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from grapheraser.reports.figures.canvas import ALERT, INK, MUTED, dress, new_figure
from grapheraser_lab.figures.panels import colour, decades, label_left, legend, numbers, panel_grid


@dataclass(frozen=True)
class Bars:
    """One panel of grouped bars.

    Attributes:
        title: above it.
        groups: names along the axis.
        heights: by series, one for each group; None where there is none.
        errors: likewise.
        paper: the paper's figure for a bar, drawn as a diamond.
        log: whether the vertical axis is logarithmic.
    """

    title: str
    groups: Sequence[str]
    heights: Mapping[str, Sequence[float | None]]
    errors: Mapping[str, Sequence[float | None]] = field(default_factory=dict)
    paper: Mapping[str, Sequence[float | None]] = field(default_factory=dict)
    log: bool = False


def draw_bars(
    panels: Sequence[Bars],
    ylabel: str,
    *,
    log: bool = False,
    limits: tuple[float, float] | None = None,
    line: float | None = None,
) -> Any:
    """Grouped bars, one panel for each data set, two panels a row.

    Args:
        panels: what to draw.
        ylabel: names the vertical axis.
        log: whether the vertical axes of all panels are logarithmic.
        limits: of the vertical axes.
        line: where a dashed line crosses every panel.
    """
    figure, places = panel_grid(len(panels), width=4.9, height=2.7, columns=2)
    for axes, panel in zip(places, panels, strict=False):
        names = list(panel.heights)
        width = 0.84 / max(1, len(names))
        spots = np.arange(len(panel.groups), dtype=float)
        tints = [colour(name) for name in names]
        for number, name in enumerate(names):
            at = spots + (number - (len(names) - 1) / 2) * width
            heights = numbers(panel.heights[name])
            # Two variants of one method share its colour; the later one is hatched.
            hatch = "////" if tints[number] in tints[:number] else None
            look: dict[str, Any] = {"color": tints[number], "edgecolor": "white", "hatch": hatch}
            axes.bar(at, heights, width * 0.92, label=name, zorder=2, linewidth=0, **look)
            if name in panel.errors:
                errors = np.nan_to_num(numbers(panel.errors[name]))
                axes.errorbar(at, heights, errors, fmt="none", ecolor=INK, elinewidth=0.8, zorder=3)
            if name in panel.paper:
                axes.plot(
                    at,
                    numbers(panel.paper[name]),
                    linestyle="none",
                    marker="D",
                    markersize=3.4,
                    markerfacecolor="white",
                    markeredgecolor=INK,
                    markeredgewidth=0.9,
                    zorder=4,
                )
        axes.set_xticks(spots, list(panel.groups))
        if limits is not None:
            axes.set_ylim(*limits)
        if line is not None:
            axes.axhline(line, color=ALERT, linewidth=1.1, linestyle=(0, (4, 3)), zorder=5)
        dress(axes, panel.title)
        if log or panel.log:
            every = [*panel.heights.values(), *panel.paper.values()]
            decades(axes, np.concatenate([numbers(line) for line in every]))
    label_left(places, ylabel, 2)
    legend(figure, places, paper=any(panel.paper for panel in panels))
    return figure


def draw_sizes(panels: Mapping[str, tuple[Sequence[int], int | None]], columns: int = 2) -> Any:
    """Sorted shard sizes as bars, each panel with the capacity where there is one."""
    from matplotlib.ticker import MaxNLocator

    figure, places = panel_grid(len(panels), width=3.9, height=2.5, columns=columns)
    for axes, (title, (sizes, capacity)) in zip(places, panels.items(), strict=False):
        ordered = np.sort(np.asarray(sizes))[::-1]
        tint = colour(title.split(", ")[-1].split(" ")[0].lower())
        axes.bar(np.arange(len(ordered)), ordered, width=1.0, color=tint, zorder=2, linewidth=0)
        if capacity is not None:
            axes.axhline(capacity, color=ALERT, linewidth=1.2, linestyle="--", zorder=3)
            axes.annotate(
                f"delta = {capacity}",
                (len(ordered) - 1, capacity),
                color=ALERT,
                fontsize=8,
                ha="right",
                va="bottom",
            )
        axes.set_xlabel("shard, the largest first", color=MUTED, fontsize=9)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        dress(axes, title)
    label_left(places, "nodes", columns)
    return figure


# -- a map of F1 over F1 from scratch, by configuration, data set and model ---------------------


_LOW, _HIGH = 0.8, 1.05

Ratios = Mapping[tuple[str, str], float]


def draw_ratios(ratios: Mapping[str, Ratios], *, groups: int = 1) -> Any:
    """A row for each way to combine shards, a column for each data set and model.

    Args:
        ratios: for each way, F1 over F1 from scratch by (data set, model).
        groups: into how many equal blocks the rows fall.
    """
    from matplotlib.colors import TwoSlopeNorm

    columns = list(dict.fromkeys(cell for found in ratios.values() for cell in found))
    grid = np.array([[found.get(cell, np.nan) for cell in columns] for found in ratios.values()])
    figure = new_figure(2.2 + 0.42 * len(columns), 0.9 + 0.2 * len(ratios))
    axes = figure.subplots()
    shades = TwoSlopeNorm(1.0, _LOW, _HIGH)
    axes.imshow(grid, cmap="RdYlBu", norm=shades, aspect="auto")
    for (row, column), value in np.ndenumerate(grid):
        if not np.isnan(value):
            ink = INK if 0.17 < shades(value) < 0.93 else "white"
            axes.text(
                column, row, f"{value:.2f}", ha="center", va="center", color=ink, fontsize=6.5
            )
    axes.set_yticks(range(len(ratios)), list(ratios), fontsize=7.5)
    axes.set_xticks(range(len(columns)), [f"{model}\n{name}" for name, model in columns])
    axes.tick_params(axis="x", labelsize=6.5, labeltop=True, labelbottom=False)
    axes.tick_params(colors=MUTED, length=0)
    axes.spines[:].set_visible(False)
    for block in range(1, groups):
        axes.axhline(block * len(ratios) / groups - 0.5, color="white", linewidth=4)
    for at in range(1, len(columns)):
        if columns[at][0] != columns[at - 1][0]:
            axes.axvline(at - 0.5, color="white", linewidth=4)
    axes.set_title("F1 over F1 from scratch", loc="left", color=INK, fontsize=10)
    return figure
