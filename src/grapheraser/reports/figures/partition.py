"""One figure of a partition: the shards in the plane, their sizes, and how it converged."""

from __future__ import annotations

import colorsys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from grapheraser.arrays import Floats, Ints32
from grapheraser.errors import ParameterError
from grapheraser.graph import Graph
from grapheraser.partition import Partition
from grapheraser.reports.figures.canvas import ACCENT, ALERT, INK, MUTED, as_file, dress, new_figure
from grapheraser.reports.figures.layout import layout
from grapheraser.seeding import generator
from grapheraser.store import write_file

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MAX_EDGES = 60_000


def draw_partition(
    graph: Graph, partition: Partition, path: str | Path, *, seed: int = 0, dpi: int = 150
) -> Path:
    """Draw a partition of the training graph of ``graph`` into a PNG, SVG or PDF file."""
    figure = partition_figure(graph, partition, seed=seed)
    target = Path(path)
    try:
        content = as_file(figure, target.suffix[1:].lower(), dpi=dpi)
    except ValueError:
        raise ParameterError.of(
            "path", "draw_partition", "a .png, .svg or .pdf file", path
        ) from None
    write_file(target, content)
    return target


def partition_figure(graph: Graph, partition: Partition, *, seed: int = 0) -> Figure:
    """The figure itself, for those who want to change it."""
    figure = new_figure(12, 7.2)
    training = graph.training_graph
    labels = partition.shard_of(training.ids)
    colours = shard_colours(partition.num_shards)

    grid = figure.add_gridspec(2, 2, width_ratios=[1.45, 1])
    draw_shards(figure.add_subplot(grid[:, 0]), training, labels, colours, layout(training, seed))
    _draw_sizes(figure.add_subplot(grid[0, 1]), partition, colours)
    _draw_convergence(figure.add_subplot(grid[1, 1]), partition)
    figure.suptitle(_title(graph, partition), x=0.01, ha="left", color=INK, fontsize=13)
    return figure


def shard_colours(num_shards: int) -> Floats:
    """Distinct colours ``[num_shards, 3]``: hues by the golden ratio, three lightnesses."""
    return np.array(
        [
            colorsys.hls_to_rgb((0.58 + i * 0.6180339887) % 1, (0.46, 0.62, 0.34)[i % 3], 0.62)
            for i in range(num_shards)
        ]
    )


def _title(graph: Graph, partition: Partition) -> str:
    parts = [f"{graph.name}: {partition.method}, {partition.num_shards} shards"]
    if partition.quality is not None:
        parts.append(f"{100 * partition.quality.edges_kept:.0f} % of the edges kept inside shards")
    return ", ".join(parts)


def draw_shards(
    axes: Axes, training: Graph, labels: Ints32, colours: Floats, places: Floats
) -> None:
    """Draw a training graph at the given places ``[n, 2]``, nodes and inner edges by shard."""
    from matplotlib.collections import LineCollection

    once = np.flatnonzero(training.sources < training.indices)
    if len(once) > _MAX_EDGES:
        once = np.sort(generator(0, "draw").choice(once, _MAX_EDGES, replace=False))
    u, v = training.sources[once], training.indices[once]
    inside = labels[u] == labels[v]
    segments = np.stack([places[u], places[v]], axis=1)
    thin = float(np.clip(300 / np.sqrt(max(len(once), 1)) / 10, 0.12, 0.8))
    across = LineCollection(
        list(segments[~inside]), colors=MUTED, linewidths=thin * 0.6, alpha=0.25, zorder=1
    )
    within = LineCollection(
        list(segments[inside]), colors=colours[labels[u[inside]]], linewidths=thin * 1.6,
        alpha=0.6, zorder=2,
    )  # fmt: skip
    for lines in (across, within):
        lines.set_rasterized(True)
        axes.add_collection(lines)
    size = float(np.clip(16000 / max(training.num_nodes, 1), 1.0, 40))
    axes.scatter(
        places[:, 0], places[:, 1], s=size, c=colours[labels], linewidths=0, zorder=3,
        rasterized=training.num_nodes > 5000,
    )  # fmt: skip
    axes.set_aspect("equal")
    axes.set_axis_off()
    axes.set_xlim(-1.03, 1.03)
    axes.set_ylim(-1.03, 1.03)


def _draw_sizes(axes: Axes, partition: Partition, colours: Floats) -> None:
    order = np.argsort(-partition.sizes, kind="stable")
    axes.bar(np.arange(len(order)), partition.sizes[order], color=colours[order], width=0.85)
    axes.axhline(partition.capacity, color=ALERT, linewidth=1.2)
    axes.annotate(
        f"capacity {partition.capacity}", (1, partition.capacity), (-2, 3),
        xycoords=("axes fraction", "data"), textcoords="offset points",
        ha="right", va="bottom", color=ALERT, fontsize=9,
    )  # fmt: skip
    axes.set_ylim(0, 1.16 * max(int(partition.sizes.max()), partition.capacity))
    axes.set_xticks([])
    dress(axes, "Nodes in each shard, largest first")


def _draw_convergence(axes: Axes, partition: Partition) -> None:
    if not partition.moved:
        axes.set_axis_off()
        axes.text(
            0.5, 0.5, f"{partition.method} has no rounds", transform=axes.transAxes,
            ha="center", va="center", color=MUTED,
        )  # fmt: skip
        return
    from matplotlib.ticker import MaxNLocator

    rounds = np.arange(1, len(partition.moved) + 1)
    share = 100 * np.array(partition.moved) / len(partition.nodes)
    axes.fill_between(rounds, share, color=ACCENT, alpha=0.12, linewidth=0)
    axes.plot(rounds, share, color=ACCENT, linewidth=1.8, marker="o", markersize=3)
    axes.set_ylim(0, max(1.0, 1.08 * float(share.max())))
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_xlabel("round", color=MUTED)
    end = "converged" if partition.converged else f"{share[-1]:.1f} % still moving"
    dress(axes, f"Nodes that changed their shard (%), {end}")
