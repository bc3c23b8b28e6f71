"""Tables as values; pages render them by template."""

from __future__ import annotations

from dataclasses import dataclass, replace

ABOVE, BELOW = "above", "below"
MARKS = {ABOVE: "▲", BELOW: "▼", "": ""}


@dataclass(frozen=True)
class Entry:
    """One place of a table."""

    text: str  # ours, e.g. ``0.812 ± 0.004``.
    paper: str = ""  # the paper's, e.g. ``0.676``, with the difference.
    mark: str = ""  # ``above`` or ``below`` where the difference is beyond noise
    best: bool = False  # whether it is the best of its group

    def as_best(self) -> Entry:
        return replace(self, best=True)


@dataclass(frozen=True)
class Table:
    """A table for people."""

    title: str  # what it shows
    header: tuple[str, ...]  # names of the columns
    rows: tuple[tuple[Entry | str, ...], ...]  # an `Entry` or plain text in each place
    note: str = ""  # how to read it


def as_entry(item: Entry | str) -> Entry:
    """Return plain text as an entry."""
    return item if isinstance(item, Entry) else Entry(item)
