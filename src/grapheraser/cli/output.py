"""Output of the verbs: data on stdout, everything else on stderr, notes unless ``--quiet``.

All text goes through `escaped`: what a file, a folder or a request says can neither steer the
terminal nor pass for another line of the output.
"""

from __future__ import annotations

import inspect
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from contextvars import ContextVar
from functools import wraps
from typing import Any, get_type_hints

import typer

from grapheraser.cli.options import JsonOption, QuietOption
from grapheraser.errors import GraphEraserError
from grapheraser.progress import hidden
from grapheraser.untrusted import escaped

__all__ = [
    "JsonOption",
    "drop_output",
    "print_json",
    "print_line",
    "print_rows",
    "print_table",
    "report_error",
    "report_warning",
    "say",
    "say_notes",
    "with_quiet",
]

_quiet: ContextVar[bool] = ContextVar("quiet", default=False)


def print_json(value: object) -> None:
    """Print a value as indented JSON on stdout."""
    text = json.dumps(value, indent=2)
    typer.echo(text.replace("\x7f", "\\u007f"))


def print_rows(rows: Mapping[str, object], width: int = 10) -> None:
    """Print a line for each name with its text, on stdout; nothing for those without text."""
    shown = {name: text for name, text in rows.items() if text != ""}
    width = max([width, *(len(name) + 1 for name in shown)])
    for name, text in shown.items():
        print_line(f"{name:<{width}}{text}")


def print_line(text: object) -> None:
    """Print a line on stdout."""
    typer.echo(_line(text))


def _line(text: object) -> str:
    """One line of printable characters; a line break that it begins with is ours."""
    return "\n" * (gap := str(text).startswith("\n")) + escaped(str(text)[gap:])


def print_table(title: str, header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print a table on stdout."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    for column in header:
        table.add_column(column)
    for row in rows:
        table.add_row(*(Text(escaped(cell)) for cell in row))
    Console().print(table)


def say(message: str) -> None:
    """Print a message on stderr, unless ``--quiet`` was given."""
    if not _quiet.get():
        typer.echo(_line(message), err=True)


def say_notes(notes: Iterable[str]) -> None:
    """Print notes on stderr."""
    for note in notes:
        say(f"note: {note}")


def with_quiet(run: Callable[..., None]) -> Callable[..., None]:
    """Give a verb the option ``--quiet``, which keeps it from printing notes and progress."""

    @wraps(run)
    def quietly(*args: Any, quiet: bool = False, **options: Any) -> None:
        with _notes_hidden() if quiet else nullcontext(), hidden() if quiet else nullcontext():
            run(*args, **options)

    # Typer reads options off the signature.
    signature, hints = inspect.signature(run), get_type_hints(run, include_extras=True)
    given = [part.replace(annotation=hints[part.name]) for part in signature.parameters.values()]
    more = inspect.Parameter(
        "quiet", inspect.Parameter.KEYWORD_ONLY, default=False, annotation=QuietOption
    )
    quietly.__signature__ = signature.replace(parameters=[*given, more])  # type: ignore[attr-defined]
    quietly.__annotations__ = hints | {"quiet": QuietOption}
    return quietly


@contextmanager
def _notes_hidden() -> Iterator[None]:
    before = _quiet.set(True)
    try:
        yield
    finally:
        _quiet.reset(before)


def report_error(error: GraphEraserError, *, as_json: bool) -> None:
    """Print an error: its message and hint on stderr, and with ``--json`` an object on stdout."""
    if as_json:
        body: dict[str, Any] = {"type": type(error).__name__, "code": error.code}
        print_json({"error": {**body, "message": error.message, "hint": error.hint}})
    first, *others = map(escaped, error.message.split("\n"))
    text = "\n".join([f"error[{error.code}]: {first}", *(f"  {line.strip()}" for line in others)])
    typer.secho(text, fg=typer.colors.RED, err=True)
    if error.hint:
        typer.echo(f"\nhint: {escaped(error.hint)}", err=True)


def report_warning(message: object, *_: Any, **__: Any) -> None:
    """Print a warning on stderr; takes the place of `warnings.showwarning`."""
    typer.echo(_line(f"warning: {message}"), err=True)


def drop_output() -> None:
    """Discard buffered output, so that Python doesn't try to write it again at exit."""
    with suppress(OSError, ValueError):  # stdout may have no file descriptor
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
