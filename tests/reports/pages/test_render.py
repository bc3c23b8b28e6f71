"""Templates escape what they are given, and hold all that a page needs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from jinja2 import UndefinedError

from grapheraser.reports import pages
from grapheraser.reports.pages.render import Picture, render, stylesheet
from grapheraser.reports.tables import Entry, Table

TEMPLATES = Path(pages.__file__).parents[1] / "templates"


def test_a_table_marks_the_best_and_what_lies_beyond_noise() -> None:
    entry = Entry("0.5", "paper 0.4 (+0.1)", "above", best=True)
    page = render("table", table=Table("T", ("a", "b"), (("<x>", entry),), "note"))
    assert "<td>&lt;x&gt;</td>" in page
    assert (
        '<td><b>0.5</b><br><small>paper 0.4 (+0.1) <span class="above">▲</span></small></td>'
        in page
    )
    assert '<p class="quiet">note</p>' in page


def test_a_picture_is_part_of_the_page() -> None:
    page = render("picture", picture=Picture('"graph"', b"\x89PNG"))
    assert '<img alt="&#34;graph&#34;" src="data:image/png;base64,iVBORw==">' in page
    assert page.strip().startswith('<figure class="scroll" tabindex="0">'), "it may be wide"


def test_a_value_that_a_template_lacks_is_an_error() -> None:
    with pytest.raises(UndefinedError):
        render("picture")


def test_every_page_has_the_one_stylesheet_and_the_stylesheet_suits_dark_and_small_screens() -> (
    None
):
    style = stylesheet()
    assert "prefers-color-scheme: dark" in style
    assert "max-width: 40rem" in style
    assert "position: sticky" in style
    for file in TEMPLATES.glob("*.html.j2"):
        text = file.read_text()
        assert "<style" not in text or file.name == "base.html.j2"
        assert not re.search(r"https?://|\| *safe| style=", text), file.name
