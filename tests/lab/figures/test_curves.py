"""Curves share one vertical axis, and noise fills little of it."""

from __future__ import annotations

import pytest

from grapheraser_lab.figures.bars import Bars, draw_bars
from grapheraser_lab.figures.curves import LEAST_SPAN, Curves, draw_curves, shared_limits
from grapheraser_lab.figures.points import Points, draw_points


def _curves(title: str, *heights: float) -> Curves:
    x = [2.0, 5.0, 10.0][: len(heights)]
    return Curves(title, {"gcn": (x, list(heights), [0.0] * len(heights))})


def test_panels_share_an_axis_that_noise_does_not_fill() -> None:
    panels = [_curves("a", 0.90014, 0.90028), _curves("b", 0.90020, 0.90021)]
    limits = shared_limits(panels)
    assert limits is not None
    assert limits[1] - limits[0] >= LEAST_SPAN
    figure = draw_curves(panels, "x", "F1", columns=2, limits=limits)
    for axes in figure.axes:
        assert axes.get_ylim() == pytest.approx(limits)


def test_the_shared_axis_holds_everything_with_its_band() -> None:
    panel = Curves("a", {"gcn": ([1.0, 2.0], [0.2, None], [0.1, None])})
    low, high = shared_limits([panel, _curves("b", 0.9)]) or (0, 0)
    assert low < 0.1
    assert high > 0.9
    assert shared_limits([]) is None


def test_numbers_of_shards_and_iterations_are_whole() -> None:
    logarithmic = draw_curves([_curves("a", 1, 2, 3)], "shards", "s", log_x=True)
    ticks = [label.get_text() for label in logarithmic.axes[0].get_xticklabels()]
    assert ticks == ["2", "5", "10"]
    plain = draw_curves([_curves("a", 1, 2, 3)], "iteration", "s", whole_x=True)
    plain.canvas.draw()
    assert all(float(tick).is_integer() for tick in plain.axes[0].get_xticks())


def test_bars_have_a_line_of_guessing_intervals_and_logarithmic_panels() -> None:
    panels = [
        Bars("a", ["GCN"], {"A_I": [0.6]}, {"A_I": [0.05]}, {"A_I": [0.51]}),
        Bars("b", ["GCN"], {"A_I": [10.0]}, log=True),
    ]
    figure = draw_bars(panels, "AUC", line=0.5)
    first, second = figure.axes
    assert any(list(line.get_ydata()) == [0.5, 0.5] for line in first.get_lines())
    assert first.get_yscale() == "linear"
    assert second.get_yscale() == "log"
    assert first.containers


def test_points_have_colours_and_a_key() -> None:
    panel = Points("a", [1, 2], [0.3, 0.8], colours=["bekm", "blpa"], line=0.3)
    (axes,) = draw_points([panel], "x", "y", limits=(0, 1)).axes
    assert axes.get_ylim() == (0, 1)
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["bekm", "blpa"]


def test_large_sizes_are_told_by_their_powers_of_ten() -> None:
    series = {"gcn": ([200, 95_283, 1_000_000, 4_200_000], [1.0] * 4, [0.0] * 4)}
    figure = draw_curves([Curves("a", series)], "edges", "s", log_x=True)
    labels = [label.get_text() for label in figure.axes[0].get_xticklabels()]
    assert labels == ["200", "$10^{5}$", "$10^{6}$", "4.2e+06"]
