"""Drawings: escaped, described, and styled by the one stylesheet."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import pytest

from grapheraser.reports.figures.drawing import Drawing, beside
from grapheraser.reports.pages.audit import draw_attacks
from grapheraser.reports.pages.render import drawn, render, standalone, stylesheet


@pytest.fixture
def drawing() -> Drawing:
    made = Drawing(40, 'a <b> & "c"')
    made.line(0, 0, 10, 10, "edge")
    made.circle(5, 5, 2, "lit", "node <1>")
    made.rect(1, 1, 8, 8, "kept")
    made.text(3, 4, "words & <more>", "small", "middle")
    made.cross(5, 5, 1, "cross")
    return made


def test_words_are_escaped_and_read_back(drawing: Drawing) -> None:
    root = ET.fromstring(drawing.__html__())
    assert root.attrib["aria-label"] == 'a <b> & "c"'
    assert root.attrib["role"] == "img"
    assert [child.tag for child in root] == ["line", "circle", "rect", "text", "line", "line"]
    assert root[3].text == "words & <more>"
    assert root[1][0].text == "node <1>"


def test_a_drawing_is_part_of_the_page_with_its_caption(drawing: Drawing) -> None:
    page = render("picture", picture=drawn(drawing, "what <it> shows"))
    assert page.count("<svg") == 1
    assert "<figcaption>what &lt;it&gt; shows</figcaption>" in page
    assert "words &amp; &lt;more&gt;" in page


def test_a_drawing_alone_is_a_file_with_both_colour_schemes(drawing: Drawing) -> None:
    text = standalone(drawing)
    root = ET.fromstring(text)
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert "prefers-color-scheme: dark" in text
    assert not re.search(r"(href|src|url\(|@import)", text), "nothing from outside"


def test_drawings_side_by_side_do_not_overlap(drawing: Drawing) -> None:
    both = beside({"one": drawing, "two & more": drawing}, gap=20)
    assert (both.width, both.height) == (740, 70)
    groups = [child for child in ET.fromstring(both.__html__()) if child.tag == "g"]
    assert [group.attrib["transform"] for group in groups] == [
        "translate(0 30)",
        "translate(380 30)",
    ]
    assert [len(group) for group in groups] == [6, 6]
    assert "one: a " in both.about
    assert ">two &amp; more</text>" in both.content


def test_attacks_on_the_run_are_full_dots_and_the_others_hollow() -> None:
    auc = {"value": 0.5, "low": 0.41, "high": 0.58}
    sure = {"value": 1.0, "low": 0.99, "high": 1.0}
    drawing = draw_attacks([("forgotten", auc, True), ("trained on", sure, False)])
    assert "forgotten: 0.50; trained on: 1.00" in drawing.about
    rows = [shape for shape in drawing.shapes if "<title>" in shape]
    assert ["is" in rows[0].split('class="')[1][:3], "was" in rows[1]] == [True, True]
    places = [float(x) for x in re.findall(r'cx="([\d.]+)"', "".join(rows))]
    assert places[0] < places[1] <= drawing.width


def test_no_words_of_the_audit_chart_lie_on_a_line() -> None:
    auc = {"value": 0.55, "low": 0.41, "high": 0.98}
    drawing = draw_attacks([(f"a rather long name of attack {n}", auc, True) for n in range(3)])
    numbers = r'"(-?[\d.]+)"'
    lines = [
        [float(found) for found in re.findall(rf"[xy][12]={numbers}", shape)]
        for shape in drawing.shapes
        if re.search('class="(chance|grid)"', shape)
    ]
    words = [
        [float(found) for found in re.findall(rf"\b[xy]={numbers}", shape)]
        for shape in drawing.shapes
        if shape.startswith("<text")
    ]
    assert len(lines) == 3 * 3
    assert len(words) >= 2 * 3
    for _, top, _, bottom in lines:
        for _, baseline in words:  # letters of 12 pixels, some of which reach below their line
            assert bottom < baseline - 12 or top > baseline + 3


def test_every_kind_of_shape_has_a_look() -> None:
    style = stylesheet()
    for kind in ("lit", "kept", "rival", "edge", "hole", "cross", "ring", "node", "was", "is",
                 "move", "span", "chance", "grid", "leader", "class-7"):  # fmt: skip
        assert re.search(rf"\.drawing \.{kind}[ ,.]", style), kind
