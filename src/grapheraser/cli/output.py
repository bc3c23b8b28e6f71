"""Data on stdout, everything else on stderr."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Annotated, Any, TypeAlias

import typer

from grapheraser.errors import GraphEraserError

JsonOption: TypeAlias = Annotated[
    bool, typer.Option("--json", help="Print one JSON object on stdout and nothing else.")
]


def print_json(value: object) -> None:
    """One JSON object, indented for people, on stdout."""
    typer.echo(json.dumps(value, indent=2))


def say(message: str) -> None:
    """Tell the person at the terminal; never part of the data."""
    typer.echo(message, err=True)


def print_table(title: str, header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """A table for people, on stdout."""
    from rich.console import Console
    from rich.table import Table

    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    for column in header:
        table.add_column(column)
    for row in rows:
        table.add_row(*(str(cell) for cell in row))
    Console().print(table)


def report_error(error: GraphEraserError, *, as_json: bool) -> None:
    """The one shape of an error: type, message, hint."""
    if as_json:
        body: dict[str, Any] = {"type": type(error).__name__, "message": error.message}
        print_json({"error": {**body, "hint": error.hint}})
    typer.secho(f"error: {error.message}", fg=typer.colors.RED, err=True)
    if error.hint:
        typer.echo(f"\nhint: {error.hint}", err=True)


def drop_output() -> None:
    """Send what is still waiting for stdout nowhere, or Python would try again at its exit."""
    with suppress(OSError, ValueError):  # not every stdout is a file
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def duration(seconds: float) -> str:
    """Seconds as people say them."""
    if seconds < 1:
        return f"{seconds * 1000:.1f} ms"
    if seconds < 120:
        return f"{seconds:.2f} s"
    return f"{seconds / 60:.1f} min"
