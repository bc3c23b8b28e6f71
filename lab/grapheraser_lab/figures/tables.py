"""Tables as CSV and Markdown."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from grapheraser.reports.tables import MARKS, Entry, Table, as_entry


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


def _all_figures(cells: Iterable[str]) -> bool:
    known = [text.strip("*+-") for text in cells if text.strip("*+-")]
    return bool(known) and all(text[0].isdigit() for text in known)


def _markdown_cell(entry: Entry) -> str:
    text = f"**{entry.text}**" if entry.best else entry.text
    if not entry.paper:
        return text
    return f"{text}<br><sub>{entry.paper}{MARKS[entry.mark] and ' ' + MARKS[entry.mark]}</sub>"
