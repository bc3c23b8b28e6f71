"""Tables as CSV and Markdown."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from string import Formatter
from typing import Any

from grapheraser.reports.tables import MARKS, Entry, Table, as_entry
from grapheraser.reports.wording import duration


def to_csv(rows: Sequence[Mapping[str, Any]]) -> str:
    """Tidy rows; columns in the order in which they first appear."""
    columns = list(dict.fromkeys(key for row in rows for key in row))
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, columns, restval="", lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({key: _plain(value) for key, value in row.items()})
    return buffer.getvalue()


def _plain(value: Any) -> Any:
    if value is None:
        return ""
    return f"{value:.6g}" if isinstance(value, float) else value


def to_markdown(tables: Iterable[Table]) -> str:
    """GitHub's tables."""
    return "\n".join(_markdown(table) for table in tables)


def _markdown(table: Table) -> str:
    cells = [[_markdown_cell(as_entry(item)) for item in row] for row in table.rows]
    lines = [f"**{table.title}**", "", markdown_table(table.header, cells), ""]
    return "\n".join([*lines, *([table.note, ""] if table.note else [])])


def markdown_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of ready texts; columns of figures are aligned to the right."""
    body = [list(row) for row in rows]
    rules = [
        "---:" if _all_figures([row[at] for row in body]) else "---" for at in range(len(header))
    ]
    return "\n".join(f"| {' | '.join(line)} |" for line in (header, rules, *body))


class _Spelling(Formatter):
    """Format strings with specs ``time`` (seconds), ``yes`` (truth), and others by name."""

    def __init__(self, more: Mapping[str, Callable[[Any], str]]) -> None:
        truth = {True: "yes", False: "no"}.__getitem__
        self._words: dict[str, Callable[[Any], str]] = {"time": duration, "yes": truth, **more}

    def format_field(self, value: Any, spec: str) -> str:
        """Spell a value."""
        word = self._words.get(spec)
        return super().format_field(value, spec) if word is None else word(value)


def filled(
    header: str,
    row: str,
    records: Iterable[Mapping[str, Any]],
    more: Iterable[Sequence[str]] = (),
    words: Mapping[str, Callable[[Any], str]] = {},
) -> str:
    """Return a table of records; cells are divided by ``|``, and the row is a format string.

    ``more`` are rows at its end; ``words`` spell values whose format spec has that name.

    >>> print(filled("data | fit", "{name} | {fit:time}", [{"name": "cora", "fit": 0.5}]))
    | data | fit |
    | --- | --- |
    | cora | 500 ms |
    """
    spelled, cells = _Spelling(words), row.split(" | ")
    rows = [[spelled.vformat(cell, (), record) for cell in cells] for record in records]
    return markdown_table(header.split(" | "), [*rows, *more])


def _all_figures(cells: Iterable[str]) -> bool:
    known = [text.strip("*+-") for text in cells if text.strip("*+-")]
    return bool(known) and all(text[0].isdigit() for text in known)


def _markdown_cell(entry: Entry) -> str:
    text = f"**{entry.text}**" if entry.best else entry.text
    if not entry.paper:
        return text
    return f"{text}<br><sub>{entry.paper}{MARKS[entry.mark] and ' ' + MARKS[entry.mark]}</sub>"
