"""Charts of the evaluation: the same colours, marks and manners in all of them."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grapheraser.reports.figures.canvas import new_figure

_INK, _MUTED, _GRID = "#1f2430", "#6b7280", "#e5e7eb"
_COLOURS = {
    "scratch": "#4b5563",
    "random": "#a3aab5",
    "hash": "#c4b5a0",
    "blpa": "#2f6fdb",
    "blpa-lp": "#8fb3f0",
    "bekm": "#e07b39",
    "bekm-hungarian": "#f2b98f",
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
    "routed-learned": "#14705a",
    "routed+expert": "#0b3d2e",
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
    base = label.split("/", maxsplit=1)[0].split(" ", maxsplit=1)[0]
    if base in _COLOURS:
        return _COLOURS[base]
    return _SPARE[sum(base.encode()) % len(_SPARE)]


@dataclass(frozen=True)
class Bars:
    """One panel of grouped bars.

    Attributes:
        title: above it.
        groups: names along the axis.
        heights: by series, one for each group; None where there is none.
        errors: likewise.
        paper: the paper's figure for a bar, drawn as a diamond.
    """

    title: str
    groups: Sequence[str]
    heights: Mapping[str, Sequence[float | None]]
    errors: Mapping[str, Sequence[float | None]] = field(default_factory=dict)
    paper: Mapping[str, Sequence[float | None]] = field(default_factory=dict)


@dataclass(frozen=True)
class Curves:
    """One panel of curves: for every series its x, its y, and half the width of its band."""

    title: str
    series: Mapping[str, tuple[Sequence[float], Sequence[float | None], Sequence[float | None]]]
    log_y: bool = False


@dataclass(frozen=True)
class Points:
    """One panel of points with sizes and words beside some of them."""

    title: str
    x: Sequence[float]
    y: Sequence[float]
    sizes: Sequence[float] | None = None
    words: Sequence[str] | None = None
    colour: str = "blpa"


def draw_bars(
    panels: Sequence[Bars],
    ylabel: str,
    *,
    log: bool = False,
    limits: tuple[float, float] | None = None,
) -> Any:
    """Grouped bars, one panel for each data set, two panels a row."""
    figure, places = _panels(len(panels), width=4.9, height=2.7, columns=2)
    for axes, panel in zip(places, panels, strict=False):
        names = list(panel.heights)
        width = 0.84 / max(1, len(names))
        spots = np.arange(len(panel.groups), dtype=float)
        tints = [colour(name) for name in names]
        for number, name in enumerate(names):
            at = spots + (number - (len(names) - 1) / 2) * width
            heights = _numbers(panel.heights[name])
            # Two variants of one method share its colour; the later one is hatched.
            hatch = "////" if tints[number] in tints[:number] else None
            look: dict[str, Any] = {"color": tints[number], "edgecolor": "white", "hatch": hatch}
            axes.bar(at, heights, width * 0.92, label=name, zorder=2, linewidth=0, **look)
            if name in panel.errors:
                errors = np.nan_to_num(_numbers(panel.errors[name]))
                axes.errorbar(
                    at, heights, errors, fmt="none", ecolor=_INK, elinewidth=0.8, zorder=3
                )
            if name in panel.paper:
                axes.plot(
                    at,
                    _numbers(panel.paper[name]),
                    linestyle="none",
                    marker="D",
                    markersize=3.4,
                    markerfacecolor="white",
                    markeredgecolor=_INK,
                    markeredgewidth=0.9,
                    zorder=4,
                )
        axes.set_xticks(spots, list(panel.groups))
        if limits is not None:
            axes.set_ylim(*limits)
        _dress(axes, panel.title)
        if log:
            every = [*panel.heights.values(), *panel.paper.values()]
            _decades(axes, np.concatenate([_numbers(line) for line in every]))
    _label_left(places, ylabel, 2)
    has_paper = any(panel.paper for panel in panels)
    _legend(figure, places, [name for panel in panels for name in panel.heights], has_paper)
    return figure


def draw_curves(
    panels: Sequence[Curves],
    xlabel: str,
    ylabel: str,
    *,
    columns: int = 4,
    log_x: bool = False,
) -> Any:
    """Curves with a band of one standard deviation."""
    figure, places = _panels(len(panels), width=2.75, height=2.35, columns=columns)
    names: list[str] = []
    for axes, panel in zip(places, panels, strict=False):
        for name, (x, y, band) in panel.series.items():
            names.append(name)
            tint, heights = colour(name), _numbers(y)
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
            width = np.nan_to_num(_numbers(band))
            if width.any():
                low, high = heights - width, heights + width
                axes.fill_between(x, low, high, color=tint, alpha=0.15, linewidth=0, zorder=2)
        _dress(axes, panel.title)
        every = [line for line in panel.series.values() if len(line[0])]
        if log_x and every:
            places_x = sorted({float(place) for line in every for place in line[0]})
            axes.set_xscale("log")
            axes.set_xticks(places_x, [f"{place:g}" for place in places_x])
            axes.minorticks_off()
        if panel.log_y and every:
            _decades(axes, np.concatenate([_numbers(line[1]) for line in every]))
    for axes in places[max(0, len(panels) - columns) : len(panels)]:
        axes.set_xlabel(xlabel, color=_MUTED, fontsize=9)
    _label_left(places, ylabel, columns)
    _legend(figure, places, names, False)
    return figure


def draw_points(
    panels: Sequence[Points], xlabel: str, ylabel: str, *, columns: int = 2, ticks: bool = True
) -> Any:
    """Scattered points, each panel with axes of its own."""
    figure, places = _panels(len(panels), width=3.9, height=3.1, columns=columns)
    for axes, panel in zip(places, panels, strict=False):
        sizes = 28.0 if panel.sizes is None else np.asarray(panel.sizes)
        axes.scatter(
            panel.x,
            panel.y,
            s=sizes,
            color=colour(panel.colour),
            alpha=0.65,
            edgecolors="white",
            linewidths=0.7,
            zorder=3,
        )
        for x, y, word in zip(panel.x, panel.y, panel.words or (), strict=False):
            axes.annotate(
                word, (x, y), fontsize=6.5, ha="center", va="center", color=_INK, zorder=4
            )
        axes.margins(0.12)
        _dress(axes, panel.title)
        if not ticks:
            axes.set_xticks([])
            axes.set_yticks([])
        axes.set_xlabel(xlabel, color=_MUTED, fontsize=9)
    _label_left(places, ylabel, columns)
    return figure


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


def draw_sizes(panels: Mapping[str, tuple[Sequence[int], int | None]], columns: int = 2) -> Any:
    """Sorted shard sizes as bars, each panel with the capacity where there is one."""
    figure, places = _panels(len(panels), width=3.9, height=2.5, columns=columns)
    for axes, (title, (sizes, capacity)) in zip(places, panels.items(), strict=False):
        ordered = np.sort(np.asarray(sizes))[::-1]
        tint = colour(title.split(", ")[-1].split(" ")[0].lower())
        axes.bar(np.arange(len(ordered)), ordered, width=1.0, color=tint, zorder=2, linewidth=0)
        if capacity is not None:
            axes.axhline(capacity, color="#c2410c", linewidth=1.2, linestyle="--", zorder=3)
            axes.annotate(
                f"delta = {capacity}",
                (len(ordered) - 1, capacity),
                color="#c2410c",
                fontsize=8,
                ha="right",
                va="bottom",
            )
        axes.set_xlabel("shard, the largest first", color=_MUTED, fontsize=9)
        _dress(axes, title)
    _label_left(places, "nodes", columns)
    return figure


def as_svg(figure: Any) -> bytes:
    """The figure as an SVG file, the same bytes for the same figure."""
    from matplotlib import rc_context

    buffer = io.BytesIO()
    with rc_context({"svg.hashsalt": "grapheraser", "svg.fonttype": "none"}):
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None}, dpi=130)
    return buffer.getvalue()


def smaller(png: bytes, colours: int = 64) -> bytes:
    """The same picture in few colours, a third of the size: for pages that hold many."""
    from PIL import Image

    buffer = io.BytesIO()
    picture = Image.open(io.BytesIO(png)).convert("RGB")
    few = picture.quantize(colours, dither=Image.Dither.NONE)
    few.save(buffer, format="png", optimize=True)
    return buffer.getvalue()


def _panels(count: int, *, width: float, height: float, columns: int) -> tuple[Any, list[Any]]:
    columns = max(1, min(columns, count))
    rows = max(1, -(-count // columns))
    figure = new_figure(width * columns + 0.3, height * rows + 0.5)
    places = [figure.add_subplot(rows, columns, i + 1) for i in range(count)]
    return figure, places


def _numbers(values: Sequence[float | None]) -> NDArray[np.float64]:
    return np.array([np.nan if value is None else value for value in values], dtype=np.float64)


def _decades(axes: Any, values: NDArray[np.float64]) -> None:
    """A logarithmic axis from one power of ten to another, labelled in plain figures."""
    known = values[np.isfinite(values) & (values > 0)]
    if not len(known):
        return
    low, high = int(np.floor(np.log10(known.min()))), int(np.ceil(np.log10(known.max())))
    high = max(high, low + 1)
    axes.set_yscale("log")
    axes.set_ylim(10.0**low, 10.0**high)
    powers = range(low, high + 1)
    axes.set_yticks([10.0**power for power in powers], [f"{10.0**power:g}" for power in powers])
    axes.minorticks_off()


def _label_left(places: Sequence[Any], text: str, columns: int) -> None:
    for axes in places[::columns]:
        axes.set_ylabel(text, color=_MUTED, fontsize=9)


def _legend(figure: Any, places: Sequence[Any], names: Sequence[str], paper: bool) -> None:
    handles: dict[str, Any] = {}
    for axes in places:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    wanted = list(dict.fromkeys(names))
    shown = [handles[name] for name in wanted if name in handles]
    words = [name for name in wanted if name in handles]
    if paper:
        from matplotlib.lines import Line2D

        mark: dict[str, Any] = {
            "markerfacecolor": "white",
            "markeredgecolor": _INK,
            "markersize": 4.5,
        }
        shown.append(Line2D([], [], linestyle="none", marker="D", **mark))
        words.append("the paper's")
    if len(words) > 1:
        figure.legend(
            shown,
            words,
            loc="outside upper center",
            ncols=_columns(figure.get_size_inches()[0], words),
            frameon=False,
            fontsize=9,
            labelcolor=_INK,
        )


def _columns(width: float, words: Sequence[str]) -> int:
    """How many entries of a legend fit side by side into ``width`` inches."""
    widest = 0.55 + 0.078 * max(map(len, words))
    return max(1, min(len(words), int(width / widest)))


def _dress(axes: Any, title: str) -> None:
    axes.set_title(title, loc="left", color=_INK, fontsize=10)
    axes.grid(axis="y", color=_GRID, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.tick_params(colors=_MUTED, length=0, labelsize=8.5)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color(_GRID)
