"""The map of ratios has a number for each ratio, and a gap where nothing was measured."""

from __future__ import annotations

from grapheraser.reports.figures.canvas import as_png
from grapheraser_lab.figures.bars import draw_ratios


def test_every_ratio_is_written_at_its_place() -> None:
    ratios = {
        "hash, mean": {("cora", "gcn"): 0.5, ("physics", "gcn"): 1.04},
        "hash, routed": {("cora", "gcn"): 0.98},
    }
    figure = draw_ratios(ratios)
    (axes,) = figure.axes
    written = {(text.get_position(), text.get_text()) for text in axes.texts}
    assert written == {((0, 0), "0.50"), ((1, 0), "1.04"), ((0, 1), "0.98")}
    assert [label.get_text() for label in axes.get_yticklabels()] == list(ratios)
    assert [label.get_text() for label in axes.get_xticklabels()] == ["gcn\ncora", "gcn\nphysics"]
    assert as_png(figure).startswith(b"\x89PNG")
