"""Docstrings in Google's style, taken apart and written as Markdown."""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass
from typing import Any

_SECTION = re.compile(r"^(Args|Attributes|Returns|Yields|Raises):\n(.*?)(?=^\S|\Z)", re.M | re.S)
_ENTRY = re.compile(r"^    (\*{0,2}\w[\w, *]*): (.*?)(?=^    \S|\Z)", re.M | re.S)
# The name that an entry of a list is about is no link.
_CODE = re.compile(r"^- `[^`]+`|(?<!`)`([A-Za-z_][\w.]*)`(?!`)", re.M)
_PAGE = re.compile(r"(?<![`\w/])docs/([\w-]+)\.md")
_DOCTEST = re.compile(r"^>>> .*(?:\n(?!\n).*)*", re.M)


@dataclass(frozen=True)
class Docstring:
    """Content of a docstring.

    Attributes:
        text: all but the sections, as Markdown.
        entries: of ``Args`` and ``Attributes``, by name.
        closing: of ``Returns``, ``Yields`` and ``Raises``, by section.
    """

    text: str
    entries: dict[str, str]
    closing: dict[str, str]

    @property
    def summary(self) -> str:
        """The first paragraph."""
        return " ".join(self.text.split("\n\n")[0].split())


def read(value: Any) -> Docstring:
    """The docstring of something, its own or inherited; an empty one where there is none."""
    text = inspect.getdoc(value) or ""
    entries: dict[str, str] = {}
    closing: dict[str, str] = {}
    for kind, body in _SECTION.findall(text):
        if kind in ("Args", "Attributes"):
            for names, meaning in _ENTRY.findall(body):
                for name in names.split(","):
                    entries[name.strip(" *")] = " ".join(meaning.split())
        else:
            closing[kind] = " ".join(body.split())
    prose = _SECTION.sub("", text).strip()
    return Docstring(_DOCTEST.sub(r"```pycon\n\g<0>\n```", prose), entries, closing)


def linked(text: str, targets: dict[str, str], here: str) -> str:
    """Text in which names in backticks, and pages of docs/, lead to where they are.

    Args:
        text: Markdown.
        targets: ``page#anchor`` by name.
        here: the page that the text is on.
    """

    def link(match: re.Match[str]) -> str:
        target = targets.get(match[1] or "")
        if target is None:
            return match[0]
        return f"[`{match[1]}`]({target.removeprefix(here)})"

    return _PAGE.sub(r"[\1.md](../\1.md)", _CODE.sub(link, text))


def table(head: tuple[str, ...], rows: Any) -> str:
    """A table in Markdown."""
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    for row in rows:
        cells = [cell.replace("|", r"\|") for cell in row]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"
