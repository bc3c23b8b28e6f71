"""Tables in every form."""

from __future__ import annotations

import csv
import io

from grapheraser.reports.pages.render import render
from grapheraser.reports.tables import Entry, Table
from grapheraser_lab.figures.tables import filled, markdown_table, to_csv, to_markdown

TABLE = Table(
    "Share & loss <1>",
    ("data set", "F1_a"),
    (("x%", Entry("0.5 ± 0.1", "paper 0.4 (+0.100)", "above", best=True)),),
    "a note",
)


def test_csv_keeps_columns_in_order_and_leaves_gaps_empty() -> None:
    text = to_csv([{"a": 1, "b": 0.123456789}, {"a": 2, "c": None}])
    rows = list(csv.DictReader(io.StringIO(text)))
    assert text.splitlines()[0] == "a,b,c"
    assert rows == [{"a": "1", "b": "0.123457", "c": ""}, {"a": "2", "b": "", "c": ""}]


def test_every_form_escapes_what_it_must() -> None:
    assert "Share &amp; loss &lt;1&gt;" in render("table", table=TABLE)
    assert "| x% | **0.5 ± 0.1**<br><sub>paper 0.4 (+0.100) ▲</sub> |" in to_markdown([TABLE])


def test_columns_of_figures_are_aligned_to_the_right() -> None:
    table = markdown_table(("name", "figure", "none"), [("a", "**1.5x**", ""), ("b", "-2", "")])
    assert (
        table
        == "| name | figure | none |\n| --- | ---: | --- |\n| a | **1.5x** |  |\n| b | -2 |  |"
    )


def test_a_row_of_text_makes_a_table_of_records() -> None:
    records = [{"name": "a", "times": {"fit": 0.02}, "same": True}]
    row = "{name:loud} | {times[fit]:time} | {same:yes}"
    table = filled("name | fit | same", row, records, [("mean", "", "")], {"loud": str.upper})
    assert table.splitlines()[2:] == ["| A | 20.0 ms | yes |", "| mean |  |  |"]
