"""Parts of charts with several panels: colours by name, a grid of axes, scales, one legend."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grapheraser.reports.figures.canvas import INK, MUTED, new_figure

_COLOURS = {
    "scratch": "#4b5563",
    "random": "#a3aab5",
    "hash": "#c4b5a0",
    "blpa": "#2f6fdb",
    "blpa-lp": "#8fb3f0",
    "bekm": "#e07b39",
    "bekm-hungarian": "#f2b98f",
    "bekm-free": "#b8860b",
    "bekm-hungarian-free": "#d9bd6b",
    "pyg": "#9f7aea",
    "released": "#7c4dbe",
    "log-mean": "#c4b5a0",
    "metis": "#2e9e6b",
    "lpa": "#8fb3f0",
    "ekm": "#f2b98f",
    "gat": "#7c4dbe",
    "gcn": "#2f6fdb",
    "gin": "#2e9e6b",
    "sage": "#e07b39",
    "mlp": "#4b5563",
    "mean": "#a3aab5",
    "majority": "#d8c9a7",
    "learned": "#e07b39",
    "convex": "#c0392b",
    "routed": "#2e9e6b",
    "closed-form": "#14705a",
    "pooled": "#0b3d2e",
    "cora": "#2f6fdb",
    "citeseer": "#e07b39",
    "pubmed": "#2e9e6b",
    "cs": "#7c4dbe",
    "physics": "#c0392b",
    "10%": "#f2b98f",
    "1000": "#e07b39",
    "all": "#8c4a1c",
    "uniform": "#2f6fdb",
    "large": "#c0392b",
}
_SPARE = ("#7c4dbe", "#b8860b", "#0f7c8a", "#b03a73", "#5b6abf", "#6b8e23")


def colour(label: str) -> str:
    """The colour of a method, model or aggregation; the same in every chart."""
    base = label.split("/", maxsplit=1)[0].split(" ", maxsplit=1)[0].rstrip(",").lower()
    if base in _COLOURS:
        return _COLOURS[base]
    return _SPARE[sum(base.encode()) % len(_SPARE)]


def panel_grid(count: int, *, width: float, height: float, columns: int) -> tuple[Any, list[Any]]:
    """A figure with axes for so many panels, row by row; width and height are of one panel."""
    columns = max(1, min(columns, count))
    rows = max(1, -(-count // columns))
    figure = new_figure(width * columns + 0.3, height * rows + 0.5)
    places = [figure.add_subplot(rows, columns, i + 1) for i in range(count)]
    return figure, places


def numbers(values: Sequence[float | None]) -> NDArray[np.float64]:
    """Values for matplotlib; NaN where there is none."""
    return np.array([np.nan if value is None else value for value in values], dtype=np.float64)


def decades(axes: Any, values: NDArray[np.float64]) -> None:
    """A logarithmic axis from one power of ten to another, labelled in plain figures."""
    known = values[np.isfinite(values) & (values > 0)]
    if not len(known):
        return
    low, high = int(np.floor(np.log10(known.min()))), int(np.ceil(np.log10(known.max())))
    high = max(high, low + 1)
    axes.set_yscale("log")
    axes.set_ylim(10.0**low, 10.0**high)
    powers = range(low, high + 1)
    words = [f"{10.0**power:,.{max(0, -power)}f}" for power in powers]
    axes.set_yticks([10.0**power for power in powers], words)
    axes.minorticks_off()


def label_left(places: Sequence[Any], text: str, columns: int) -> None:
    """Name the vertical axis once in each row."""
    for axes in places[::columns]:
        axes.set_ylabel(text, color=MUTED, fontsize=9)


def legend(figure: Any, places: Sequence[Any], *, paper: bool = False) -> None:
    """One legend for all panels, above them; ``paper`` adds the mark of the paper's figures."""
    handles: dict[str, Any] = {}
    for axes in places:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    if paper:
        from matplotlib.lines import Line2D

        look: dict[str, Any] = {"markerfacecolor": "white", "markeredgecolor": INK}
        handles["the paper's"] = Line2D(
            [], [], linestyle="none", marker="D", markersize=4.5, **look
        )
    if len(handles) > 1:
        figure.legend(
            list(handles.values()),
            list(handles),
            loc="outside upper center",
            ncols=_columns(figure.get_size_inches()[0], list(handles)),
            frameon=False,
            fontsize=9,
            labelcolor=INK,
        )


def _columns(width: float, words: Sequence[str]) -> int:
    """How many entries of a legend fit side by side into ``width`` inches."""
    widest = 0.55 + 0.078 * max(map(len, words))
    return max(1, min(len(words), int(width / widest)))
