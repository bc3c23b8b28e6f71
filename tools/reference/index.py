"""The first page of the reference: what is public, and where it is described."""

from __future__ import annotations

from collections.abc import Iterator

from tools.reference.docstrings import read, table
from tools.reference.names import GENERATED, GROUPS, RECEIPTS, anchor

import grapheraser as ge
from grapheraser import receipts

_INTRODUCTION = f"""\
# Reference

{GENERATED}
Public is what `grapheraser.__all__` names, the modules `grapheraser.errors` and
`grapheraser.receipts`, and the command line. Everything else is internal and may change from one
release to the next.

Beside the names below: [the command line](reference/command-line.md), [environment
variables](reference/variables.md), [errors](reference/errors.md) and [file
formats](formats.md).
"""


def page() -> str:
    """The whole page."""
    return "\n".join([_INTRODUCTION, *_groups()]).rstrip() + "\n"


def _groups() -> Iterator[str]:
    for name, (title, names) in GROUPS.items():
        yield f"## {title}\n"
        yield table(("name", "what it is"), (_row(name, n, getattr(ge, n)) for n in names))
    yield "## The module grapheraser.receipts\n"
    names = tuple(n for n in receipts.__all__ if n not in ge.__all__)
    rows = (_row(RECEIPTS, n, getattr(receipts, n), "receipts") for n in names)
    yield table(("name", "what it is"), rows)


def _row(page: str, name: str, value: object, module: str = "ge") -> tuple[str, str]:
    meaning = read(value).summary if callable(value) else f'the text "{value}"'
    return f"[`{module}.{name}`](reference/{page}.md#{anchor(name)})", meaning
