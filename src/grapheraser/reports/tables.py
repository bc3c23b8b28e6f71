"""Tables as values; pages render them by template."""

from __future__ import annotations

from dataclasses import dataclass, replace

ABOVE, BELOW = "above", "below"
MARKS = {ABOVE: "▲", BELOW: "▼", "": ""}


@dataclass(frozen=True)
class Entry:
    """One place of a table.

    Attributes:
        text: ours, e.g. ``0.812 ± 0.004``.
        paper: the paper's, e.g. ``0.676``, with the difference.
        mark: ``above`` or ``below`` where the difference is beyond noise.
        best: whether it is the best of its group.
    """

    text: str
    paper: str = ""
    mark: str = ""
    best: bool = False

    def as_best(self) -> Entry:
        return replace(self, best=True)


@dataclass(frozen=True)
class Table:
    """A table for people.

    Attributes:
        title: what it shows.
        header: names of the columns.
        rows: an `Entry` or plain text in each place.
        note: how to read it.
    """

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[Entry | str, ...], ...]
    note: str = ""


def as_entry(item: Entry | str) -> Entry:
    """Return plain text as an entry."""
    return item if isinstance(item, Entry) else Entry(item)
