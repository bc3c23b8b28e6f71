"""A map of F1 over F1 from scratch, by configuration, data set and model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from grapheraser.reports.figures.canvas import INK, MUTED, new_figure

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
