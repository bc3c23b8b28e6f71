"""The audit in one picture: how well each attack guesses, against the toss of a coin."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from grapheraser.reports.figures.canvas import ACCENT, INK, MUTED, dress, new_figure

# What an attack was up against: (words, AUC with its interval, whether the run is at stake).
Mark = tuple[str, dict[str, float], bool]


def draw_attacks(marks: Sequence[Mark]) -> Any:
    """One row per attack, top down: its AUC as a dot, its interval as a line."""
    figure = new_figure(8.5, 0.5 + 0.36 * len(marks))
    axes = figure.subplots()
    dress(axes, grid="x")
    axes.axvline(0.5, color=MUTED, linewidth=1, linestyle=(0, (4, 3)), zorder=1)
    for row, (_, auc, own) in enumerate(marks):
        colour = ACCENT if own else MUTED
        axes.plot([auc["low"], auc["high"]], [row, row], color=colour, linewidth=2.5, zorder=2)
        axes.plot([auc["value"]], [row], "o", color=colour, markersize=7, zorder=3)
        axes.annotate(
            f"{auc['value']:.2f}", (auc["value"], row), (0, 7), textcoords="offset points",
            ha="center", fontsize=8, color=INK,
        )  # fmt: skip
    axes.set_yticks(range(len(marks)), [words for words, _, _ in marks], fontsize=9)
    axes.set_ylim(len(marks) - 0.4, -0.7)
    axes.set_xlim(min(0.38, *(auc["low"] - 0.03 for _, auc, _ in marks)), 1.03)
    ticks = [0.5, 0.6, 0.7, 0.8, 0.9, 1.0]
    labels = ["0.5\ncoin toss", "0.6", "0.7", "0.8", "0.9", "1.0\nalways right"]
    axes.set_xticks(ticks, labels, fontsize=9)
    return figure
