"""Points in the plane: shards by their scores, nodes by their community."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grapheraser.reports.figures.canvas import ALERT, INK, MUTED, dress, new_figure
from grapheraser_lab.figures.panels import colour, label_left, panel_grid


@dataclass(frozen=True)
class Points:
    """One panel of points with sizes and words beside some of them.

    Attributes:
        title: above it.
        x, y: places.
        sizes: of the circles.
        words: beside them.
        colour: of all points, by name.
        colours: of each point, by name, instead.
        line: where a dashed line crosses it.
    """

    title: str
    x: Sequence[float]
    y: Sequence[float]
    sizes: Sequence[float] | None = None
    words: Sequence[str] | None = None
    colour: str = "blpa"
    colours: Sequence[str] | None = None
    line: float | None = None


def draw_points(
    panels: Sequence[Points],
    xlabel: str,
    ylabel: str,
    *,
    columns: int = 2,
    ticks: bool = True,
    limits: tuple[float, float] | None = None,
) -> Any:
    """Scattered points, each panel with axes of its own unless they have ``limits``."""
    figure, places = panel_grid(len(panels), width=3.9, height=3.1, columns=columns)
    for axes, panel in zip(places, panels, strict=False):
        sizes = 28.0 if panel.sizes is None else np.asarray(panel.sizes)
        axes.scatter(
            panel.x,
            panel.y,
            s=sizes,
            color=[colour(name) for name in panel.colours or [panel.colour] * len(panel.x)],
            alpha=0.65,
            edgecolors="white",
            linewidths=0.7,
            zorder=3,
        )
        for x, y, word in zip(panel.x, panel.y, panel.words or (), strict=False):
            axes.annotate(word, (x, y), fontsize=6.5, ha="center", va="center", color=INK, zorder=4)
        axes.margins(0.12)
        if panel.line is not None:
            axes.axhline(panel.line, color=ALERT, linewidth=1.1, linestyle=(0, (4, 3)), zorder=2)
        if limits is not None:
            axes.set_ylim(*limits)
        _key(axes, panel)
        dress(axes, panel.title)
        if not ticks:
            axes.set_xticks([])
            axes.set_yticks([])
        axes.set_xlabel(xlabel, color=MUTED, fontsize=9)
    label_left(places, ylabel, columns)
    return figure


def _key(axes: Any, panel: Points) -> None:
    """Names of the colours, where a panel has several."""
    for name in dict.fromkeys(panel.colours or ()):
        axes.scatter([], [], s=28, color=colour(name), label=name)
    if panel.colours:
        axes.legend(frameon=False, fontsize=8, labelcolor=INK, loc="lower right")


def draw_communities(
    places: NDArray[np.float64],
    edges: NDArray[np.int64],
    labels: NDArray[np.int64],
    *,
    boxes: Sequence[tuple[int, str, str]],
) -> Any:
    """Nodes in the plane, coloured by community, with boxes around a few of them.

    Args:
        places: ``[n, 2]``.
        edges: ``[m, 2]`` rows of ``places``.
        labels: the community of each node, the largest first.
        boxes: community, colour of its box, and words.
    """
    figure = new_figure(8.0, 7.0, layout=None)
    axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    axes.set_axis_off()
    axes.set_aspect("equal")
    ends = places[edges]
    gap = np.full((len(ends), 1, 2), np.nan)
    segments = np.concatenate([ends, gap], axis=1).reshape(-1, 2)
    axes.plot(*segments.T, color="#9aa5b1", linewidth=0.3, alpha=0.4, zorder=1, rasterized=True)
    order = np.random.Generator(np.random.PCG64(4)).permutation(int(labels.max()) + 1)
    axes.scatter(
        *places.T,
        c=order[labels],
        cmap="turbo",
        s=7,
        linewidths=0,
        alpha=0.9,
        zorder=2,
        rasterized=True,
    )
    for community, tint, words in boxes:
        own = places[labels == community]
        (left, low), (right, high) = own.min(axis=0) - 0.015, own.max(axis=0) + 0.015
        axes.plot(
            [left, right, right, left, left],
            [low, low, high, high, low],
            color=tint,
            linewidth=1.8,
            zorder=3,
        )
        axes.annotate(words, (right, high), color=tint, fontsize=10, va="bottom", ha="right")
    return figure
