"""The figures of the demonstration."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from grapheraser.reports.figures.canvas import ACCENT, ALERT, INK, dress, new_figure
from grapheraser.reports.figures.layout import layout
from grapheraser.reports.figures.partition import draw_shards, shard_colours

if TYPE_CHECKING:
    from grapheraser.demo.story import DemoResult

_SOFT = "#9aa5b1"


def draw_forgotten(result: DemoResult) -> Any:
    """The training graph, coloured by shard, with what was forgotten marked."""
    training = result.graph.training_graph
    places = layout(training, seed=0)
    figure = new_figure(9.0, 7.2, layout=None)
    axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    colours = shard_colours(int(result.labels.max()) + 1)
    draw_shards(axes, training, result.labels, colours, places)
    gone = places[training.positions(result.forgotten_nodes)]
    axes.scatter(
        *gone.T,
        s=90,
        facecolors="none",
        edgecolors=ALERT,
        linewidths=1.6,
        zorder=4,
        label="forgotten nodes",
    )
    pairs = result.forgotten_edges[
        training.contains(result.forgotten_edges.ravel()).reshape(-1, 2).all(1)
    ]
    for number, pair in enumerate(pairs):
        axes.plot(
            *places[training.positions(pair)].T,
            color=ALERT,
            linewidth=1.8,
            zorder=3,
            label="forgotten edges" if number == 0 else None,
        )
    axes.legend(loc="lower right", frameon=False, fontsize=10, labelcolor=INK)
    return figure


def draw_utility(result: DemoResult) -> Any:
    """Micro F1 from scratch and of the ensemble, before and after."""
    bars = {
        "scratch, before": result.f1["scratch"],
        "shards, before": result.f1["before"],
        "shards, after": result.f1["after"],
        "scratch, after": result.f1["retrained"],
    }
    figure = new_figure(5.6, 2.6)
    axes = figure.add_subplot()
    colours = [_SOFT, ACCENT, ACCENT, _SOFT]
    places = np.arange(len(bars))[::-1]
    axes.barh(places, list(bars.values()), color=colours, height=0.62)
    for place, value in zip(places, bars.values(), strict=True):
        axes.text(value + 0.01, place, f"{value:.3f}", va="center", fontsize=10, color=INK)
    axes.set_yticks(places, list(bars), fontsize=10)
    axes.set_xlim(0, 1.1)
    axes.set_xlabel("micro F1 on the test nodes")
    dress(axes, grid="x")
    return figure


def draw_times(result: DemoResult) -> Any:
    """Every request's time beside that of training from scratch, on a logarithmic scale."""
    per_request = np.array([receipt.timings["total"] for receipt in result.receipts]) * 1000
    retrain, pyg = result.seconds["retrain"] * 1000, result.seconds["pyg"] * 1000
    figure = new_figure(5.6, 2.6)
    axes = figure.add_subplot()
    half = len(per_request) // 2
    jitter = np.linspace(-0.18, 0.18, half)
    axes.scatter(per_request[:half], 1 + jitter, s=26, color=ACCENT, alpha=0.8, linewidths=0)
    axes.scatter(per_request[half:], jitter, s=26, color=ACCENT, alpha=0.8, linewidths=0)
    for place, text, style in ((retrain, "from scratch", ":"), (pyg, "by plain PyG", "-")):
        axes.axvline(place, color=ALERT, linewidth=1.6, linestyle=style)
        axes.text(place * 0.93, 1.36, text, ha="right", fontsize=9, color=ALERT)
    axes.set_xscale("log")
    axes.set_xlim(per_request.min() * 0.5, max(retrain, pyg) * 1.6)
    axes.set_ylim(-0.5, 1.55)
    axes.set_yticks([1, 0], ["forget a node", "forget an edge"], fontsize=10)
    axes.set_xlabel("milliseconds")
    dress(axes, grid="x")
    return figure
