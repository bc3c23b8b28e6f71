"""Charts over the versions."""

from __future__ import annotations

import re

import pytest

from grapheraser.service.dashboard.model import over_versions


@pytest.mark.parametrize("count", [1, 2, 80, 81, 1000])
def test_a_chart_shows_the_newest_version_and_keeps_to_its_frame(count: int) -> None:
    points = [(version, 0.9 - version / 10_000) for version in range(count)]
    drawing = over_versions(points, ".4f", "F1")
    text = str(drawing.content)
    assert f"version {count - 1}: {points[-1][1]:.4f}" in text
    assert text.count("<circle") <= 80
    places = [float(value) for value in re.findall(r'c[xy]="([^"]+)"', text)]
    assert all(0 <= value <= drawing.width for value in places)


def test_a_chart_of_one_value_is_a_line() -> None:
    text = str(over_versions([(1, 0.5), (2, 0.5)], ".3f", "F1").content)
    assert len(set(re.findall(r'cy="([^"]+)"', text))) == 1
