"""Charts of the overview: one value from version to version, in the page's colours."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import floor, log10

from grapheraser.reports.figures.drawing import Drawing

_WIDTH, _HEIGHT = 460.0, 170.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 8.0, 62.0, 16.0, 26.0
_MOST_POINTS = 80


def over_versions(points: Sequence[tuple[int, float]], form: str, what: str) -> Drawing:
    """A line from version to version, with a scale that shows small changes.

    Args:
        points: versions in order, and the value of each.
        form: how values are written, such as ``.3f``.
        what: the value in words.
    """
    shown = _thinned(points)
    versions, values = [version for version, _ in shown], [value for _, value in shown]
    low, high = _scale(min(values), max(values))
    about = (
        f"{what} over {len(points)} versions: from {values[0]:{form}} in version {versions[0]} "
        f"to {values[-1]:{form}} in version {versions[-1]}."
    )
    drawing = Drawing(_HEIGHT, about, _WIDTH)
    span = max(1, versions[-1] - versions[0])
    right, bottom = _WIDTH - _RIGHT, _HEIGHT - _BOTTOM

    def place(version: int, value: float) -> tuple[float, float]:
        x = _LEFT + (right - _LEFT) * (version - versions[0]) / span
        return x, _TOP + (bottom - _TOP) * (high - value) / (high - low)

    for value in (low, (low + high) / 2, high):
        y = place(versions[0], value)[1]
        drawing.line(_LEFT, y, right, y, "grid")
        drawing.text(right + 8, y + 4, f"{value:{form}}", "small quiet")
    for before, after in pairwise(shown):
        drawing.line(*place(*before), *place(*after), "series")
    for version, value in shown:
        drawing.circle(*place(version, value), 3.4, "lit", f"version {version}: {value:{form}}")
    drawing.text(_LEFT, _HEIGHT - 6, f"version {versions[0]}", "small quiet")
    if versions[-1] > versions[0]:
        drawing.text(right, _HEIGHT - 6, f"{versions[-1]}", "small quiet", "end")
    return drawing


def _scale(low: float, high: float) -> tuple[float, float]:
    """Round ends around some values, never closer than a hundredth of them."""
    room = max(high - low, abs(high) / 100, 1e-9)
    step = 10.0 ** floor(log10(room))
    return floor((low - room / 4) / step) * step, -floor(-(high + room / 4) / step) * step


def _thinned(points: Sequence[tuple[int, float]]) -> list[tuple[int, float]]:
    """So many points that they can be told apart; the last one is among them."""
    step = -(-len(points) // _MOST_POINTS)
    kept = list(points[(len(points) - 1) % step :: step])
    return kept
