"""The README's picture and output are what `make pictures` writes."""

from __future__ import annotations

import xml.etree.ElementTree as ET

from tools import pictures

from grapheraser.cli.demo import told
from grapheraser.demo.story import DemoResult


def test_the_output_replaces_the_one_before(result: DemoResult) -> None:
    readme = pictures.README.read_text()
    changed = pictures.with_output(readme, result)
    assert changed != readme
    for line in told(result):
        assert f"\n{line}\n" in changed
    assert pictures.with_output(changed, result) == changed
    outside = [text.partition("<!-- output: demo -->")[0] for text in (readme, changed)]
    assert outside[0] == outside[1]


def test_the_readme_has_the_form_of_what_is_printed(result: DemoResult) -> None:
    printed = (
        pictures.README.read_text().partition("<!-- output: demo -->")[2].partition("```\n\n")[0]
    )
    first = [line.split("  ")[0] for line in told(result)]
    assert [words for words in ("one model", "afterwards", "statement") if words in first] == [
        words for words in ("one model", "afterwards", "statement") if words in printed
    ]
    assert printed.count("F1 0.") == 4
    assert "verified: bit-identical" in printed


def test_the_picture_is_a_drawing_that_the_readme_shows(result: DemoResult) -> None:
    root = ET.fromstring(pictures.picture(result))
    stored = ET.fromstring(pictures.PICTURE.read_text())
    assert root.tag == stored.tag == "{http://www.w3.org/2000/svg}svg"
    assert root.attrib["width"] == stored.attrib["width"]
    assert "docs/images/demo.svg" in pictures.README.read_text()
