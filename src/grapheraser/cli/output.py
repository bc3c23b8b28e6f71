"""Output of the verbs: data on stdout, everything else on stderr."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Annotated, Any, TypeAlias

import typer

from grapheraser.errors import GraphEraserError

JsonOption: TypeAlias = Annotated[
    bool, typer.Option("--json", help="Print one JSON object on stdout and nothing else.")
]


def print_json(value: object) -> None:
    """Print a value as indented JSON on stdout."""
    typer.echo(json.dumps(value, indent=2))


_quiet: ContextVar[bool] = ContextVar("quiet", default=False)


def say(message: str) -> None:
    """Print a message on stderr, where nobody asked for quiet."""
    if not _quiet.get():
        typer.echo(message, err=True)


@contextmanager
def notes_hidden() -> Iterator[None]:
    """Print no messages but errors."""
    before = _quiet.set(True)
    try:
        yield
    finally:
        _quiet.reset(before)


def print_table(title: str, header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print a table on stdout."""
    from rich.console import Console
    from rich.table import Table

    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    for column in header:
        table.add_column(column)
    for row in rows:
        table.add_row(*(str(cell) for cell in row))
    Console().print(table)


def report_error(error: GraphEraserError, *, as_json: bool) -> None:
    """Print an error: its message and hint on stderr, and with ``--json`` an object on stdout."""
    if as_json:
        body: dict[str, Any] = {"type": type(error).__name__, "message": error.message}
        print_json({"error": {**body, "hint": error.hint}})
    typer.secho(f"error: {error.message}", fg=typer.colors.RED, err=True)
    if error.hint:
        typer.echo(f"\nhint: {error.hint}", err=True)


def drop_output() -> None:
    """Discard buffered output, so that Python doesn't try to write it again at exit."""
    with suppress(OSError, ValueError):  # stdout may have no file descriptor
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
