"""The one stylesheet: legible in light and dark, the same in every page."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tools.pages import PAGES, restyled

from grapheraser.reports.pages.render import stylesheet


def tokens(dark: bool) -> dict[str, str]:
    """The colours by name, as a browser would resolve them."""
    light, _, rest = stylesheet().partition("@media (prefers-color-scheme: dark)")
    found = dict(re.findall(r"--([\w-]+): (#\w+);", light))
    if dark:
        found |= dict(re.findall(r"--([\w-]+): (#\w+);", rest.partition("\n}\n")[0]))
    return found


def luminance(colour: str) -> float:
    """Relative luminance, WCAG 2.1."""
    digits = colour[1:] if len(colour) == 7 else "".join(2 * d for d in colour[1:])
    parts = [int(digits[i : i + 2], 16) / 255 for i in (0, 2, 4)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_words_stand_out_from_what_they_are_written_on(dark: bool) -> None:
    colours = tokens(dark)
    written = [(ink, paper) for ink in ("ink", "quiet") for paper in ("paper", "raised", "code")]
    written += [
        ("link", "paper"),
        ("better", "paper"),
        ("worse", "paper"),
        ("on-lit", "lit"),
        ("quiet", "kept"),
    ]
    written += [("ink", f"class-{number}") for number in range(8)]
    for ink, paper in written:
        assert contrast(colours[ink], colours[paper]) >= 4.5, (ink, paper)
    for tag in ("good", "fair", "bad", "note", "off"):
        assert contrast("#fff", colours[tag]) >= 4.5, tag
    for shape in ("lit", "rival"):
        assert contrast(colours[shape], colours["paper"]) >= 2.9, shape


def test_dark_has_every_colour_of_light() -> None:
    assert tokens(dark=True).keys() == tokens(dark=False).keys()
    light, dark = tokens(dark=False), tokens(dark=True)
    assert all(light[name] != dark[name] for name in light), "none is left as it was"


def test_every_colour_that_is_used_is_declared() -> None:
    used = set(re.findall(r"var\(--([\w-]+)\)", stylesheet()))
    assert used <= {*tokens(dark=False), "shade"}


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.parent.name)
def test_the_stored_pages_have_the_stylesheet_of_today(page: Path) -> None:
    text = page.read_text()
    assert restyled(text) == text, "run `make docs`"
    assert text.count("<main>") == text.count("</main>") == 1
    assert text.count('<figure class="scroll"') == text.count("<img ")
    assert text.count('<div class="scroll"') == text.count("<table")
