"""The report: what dominates first, then verdicts that can be followed to their figures."""

from __future__ import annotations

import re

from grapheraser.reports.pages.render import Picture
from grapheraser.reports.tables import Table
from grapheraser_lab.experiments.catalogue import RULES, Options
from grapheraser_lab.framework.report import (
    TOPICS,
    Provenance,
    Section,
    counted,
    in_short,
    report_markdown,
    report_page,
)
from grapheraser_lab.framework.rules import FAILS, HOLDS, NOISY, Claim, Reading

CLAIMS = [
    Claim(
        "a/b",
        "A method is better.",
        "It is above the other.",
        HOLDS,
        "+0.100 on average.",
        "Holds: true in 9 of 10 cases, false in 1 (cora gcn).",
        readings=(Reading("as written", FAILS, "Does not hold."),),
        choice="The reading decides.",
    ),
    Claim("a/c", "Ours.", "T.", HOLDS, "E.", "J.", ours=True),
    Claim("a/d", "Unclear.", "T.", NOISY, "E.", "J."),
]
SECTIONS = [
    Section(
        "utility",
        "F1",
        "table:x",
        "Models: gcn.",
        [Table("T", ("a",), (("1",),))],
        CLAIMS,
        ["A note."],
        Picture("figure: F1", b"png"),
    )
]
MADE = Provenance(["numpy 2"], ["cpu"], 3, 3, 1.0, {}, Table("Which", ("kind",), (("utility",),)))


def test_the_count_is_of_the_papers_sentences_alone() -> None:
    told = counted(SECTIONS)
    assert told.startswith("holds 1, cells disagree 0, readings disagree 0, too few runs 1")


def test_a_report_opens_with_verdicts_by_topic_and_says_what_was_not_measured() -> None:
    claim = Claim("utility/choice", "S.", "T.", HOLDS, "E.", "J.")
    section = Section("utility", "F1", "", "", [Table("T", ("a",), (("1",),))], [claim])
    assert in_short([section]) == ["F1 of partitions: holds 1 (choice)."]
    whole = in_short([section], whole=True)
    assert len(whole) == len(TOPICS)
    told = " ".join(whole)
    theirs = [key for key in RULES if not RULES.get(key).ours]
    assert all(key.partition("/")[2] in told for key in theirs)
    assert "not measured 2 (guessing, extra)" in told
    text = report_markdown(Options(), [section], MADE, whole=True)
    assert text.index("not measured") < text.index("## utility") < text.index("## What was run")


def test_the_page_can_be_followed_from_a_verdict_to_its_figures() -> None:
    page = report_page(Options(), SECTIONS, MADE, ["What dominates."])
    assert page.index("What dominates.") < page.index("Which conclusions hold")
    for words in ("It is above the other.", "+0.100 on average.", "as written", "The reading"):
        assert words.lower() in page.lower(), words
    assert page.count("A method is better.") == 2
    assert "&ldquo;A method is better.&rdquo;" in page
    assert "&ldquo;Ours.&rdquo;" not in page
    assert "Which" in page


def test_the_text_has_the_same_and_its_figures() -> None:
    text = report_markdown(Options(), SECTIONS, MADE, ["What dominates."])
    assert "![figure: F1](utility/figure.png)" in text
    assert "Test: It is above the other." in text
    assert "as written: Does not hold." in text
    assert "A note." in text


def test_wide_tables_keep_their_first_column_and_colours_follow_the_reader() -> None:
    page = report_page(Options(), SECTIONS, MADE)
    assert re.search(r"\.scroll td:first-child[^{]*\{[^}]*position: sticky", page)
    assert "prefers-color-scheme: dark" in page
    assert 'name="viewport"' in page
    assert "overflow-x: auto" in page
    assert not re.search(r"(src|href)=\"(?!data:|#)", page)
