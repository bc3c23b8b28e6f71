"""What forgetting cost: times beside those of the rivals, and F1."""

from __future__ import annotations

from math import floor, log10
from typing import TYPE_CHECKING

from grapheraser.reports.figures.drawing import WIDTH, Drawing
from grapheraser.reports.wording import duration

if TYPE_CHECKING:
    from grapheraser.demo.story import DemoResult

_ROW = 46.0


def draw_times(result: DemoResult) -> Drawing:
    """A request beside retraining everything, on a scale of powers of ten."""
    seconds = result.seconds
    bars = [
        ("forget a node", seconds["node"], "lit"),
        ("forget an edge", seconds["edge"], "lit"),
        ("retrain one model, same engine", seconds["retrain"], "rival"),
        ("fit all shards afresh, same engine", seconds["afresh"], "rival"),
        ("retrain one model, plain PyG, scaled", seconds["pyg"], "rival"),
    ]
    least = 10.0 ** floor(log10(min(value for _, value, _ in bars)))
    most = max(value for _, value, _ in bars) * 1.05
    words = "; ".join(f"{name}: {duration(value)}" for name, value, _ in bars)
    drawing = Drawing(len(bars) * _ROW + 24, f"Seconds on a logarithmic scale. {words}.")
    span = (WIDTH - 4) / log10(most / least)
    power = least
    while power <= most:
        x = log10(power / least) * span
        drawing.line(x, 4, x, len(bars) * _ROW, "grid")
        anchor = "start" if power == least else "middle"
        drawing.text(x, len(bars) * _ROW + 16, _round(power), "small quiet", anchor)
        power *= 10
    for row, (name, value, kind) in enumerate(bars):
        y = row * _ROW
        drawing.rect(0, y + 22, max(3.0, log10(value / least) * span), 16, kind)
        times = f", {value / seconds['node']:,.0f}x" if kind == "rival" else ""
        drawing.text(0, y + 16, name, "small")
        drawing.text(WIDTH, y + 16, duration(value) + times, "small strong", "end")
    return drawing


def _round(seconds: float) -> str:
    """A power of ten."""
    return f"{seconds:g} s" if seconds >= 1 else f"{1000 * seconds:g} ms"


def draw_f1(result: DemoResult) -> Drawing:
    """Micro F1 before, after, and of one model for the whole graph; bars begin at nought."""
    bars = [
        ("shards, before", result.f1["before"], "lit"),
        ("shards, after", result.f1["after"], "lit"),
        ("one model from scratch, before", result.f1["scratch"], "rival"),
        ("one model from scratch, after", result.f1["retrained"], "rival"),
    ]
    words = "; ".join(f"{name}: {value:.4f}" for name, value, _ in bars)
    drawing = Drawing(len(bars) * _ROW + 24, f"Micro F1 on the test nodes. {words}.")
    for share in (0.0, 0.5, 1.0):
        anchor = {0.0: "start", 0.5: "middle", 1.0: "end"}[share]
        x = share * (WIDTH - 1) + 0.5
        drawing.line(x, 4, x, len(bars) * _ROW, "grid")
        drawing.text(x, len(bars) * _ROW + 16, f"{share:g}", "small quiet", anchor)
    for row, (name, value, kind) in enumerate(bars):
        y = row * _ROW
        drawing.rect(0, y + 22, max(3.0, value * WIDTH), 16, kind)
        drawing.text(0, y + 16, name, "small")
        drawing.text(WIDTH, y + 16, f"{value:.4f}", "small strong", "end")
    return drawing
