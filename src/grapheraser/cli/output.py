"""Output of the verbs: data on stdout, everything else on stderr, notes unless ``--quiet``.

All text goes through `escaped`: what a file, a folder or a request says can neither steer the
terminal nor pass for another line of the output.
"""

from __future__ import annotations

import inspect
import json
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from contextvars import ContextVar
from copy import copy
from functools import wraps
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import typer

from grapheraser.cli.options import JsonOption, QuietOption
from grapheraser.errors import GraphEraserError
from grapheraser.progress import hidden
from grapheraser.untrusted import escaped

_KEYWORD = inspect.Parameter.KEYWORD_ONLY
_quiet: ContextVar[bool] = ContextVar("quiet", default=False)
_json: ContextVar[bool] = ContextVar("json", default=False)


def wants_json() -> bool:
    """Tell whether ``--json`` was given."""
    return _json.get()


def answered(value: object) -> bool:
    """Print a value as JSON if ``--json`` was given; return whether it was."""
    if wants_json():
        print_json(value)
    return wants_json()


def print_found(value: object, rows: Mapping[str, object], width: int = 10) -> None:
    """Print a value as JSON if ``--json`` was given, else the same as rows for people."""
    if not answered(value):
        print_rows(rows, width)


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


def as_verb(run: Callable[..., None]) -> Callable[..., None]:
    """Make a function a verb for typer: with help, and with ``--json`` and ``--quiet``.

    The docstring's part "Options:" holds the help, a line ``name: text`` for each parameter.
    """
    text, helps = _helps(run)
    signature, hints = inspect.signature(run), get_type_hints(run, include_extras=True)
    takes_json = "json" in signature.parameters

    @wraps(run)
    def verb(*args: Any, json: bool = False, quiet: bool = False, **options: Any) -> None:
        given = options | ({"json": json} if takes_json else {})
        with _set(_json, json), _set(_quiet, quiet), hidden() if quiet else nullcontext():
            run(*args, **given)

    # Typer reads options off the signature.
    for name, said in helps.items():
        hints[name] = _with_help(signature.parameters[name], hints[name], said)
    hints |= {"json": JsonOption, "quiet": QuietOption}
    own = [part for name, part in signature.parameters.items() if name != "json"]
    more = [inspect.Parameter(name, _KEYWORD, default=False) for name in ("json", "quiet")]
    parts = [part.replace(annotation=hints[part.name]) for part in (*own, *more)]
    verb.__signature__ = signature.replace(parameters=parts)  # type: ignore[attr-defined]
    verb.__annotations__, verb.__doc__ = hints, text
    return verb


def _helps(run: Callable[..., None]) -> tuple[str, dict[str, str]]:
    """Return what a verb does, and the help of its parameters by name."""
    text, _, section = inspect.cleandoc(run.__doc__ or "").partition("\n\nOptions:\n")
    lines = re.sub(r"\n {8,}", " ", section).splitlines()  # a line that goes on has a larger indent
    parts = [line.strip().partition(": ") for line in lines]
    return text, {name: said for name, _, said in parts}


def _with_help(part: inspect.Parameter, hint: Any, text: str) -> Any:
    """Return what typer has to know of a parameter; a switch that is off has no ``--no``."""
    if get_origin(hint) is Annotated:
        kind, known = get_args(hint)
        known = copy(known)  # other verbs may share it
        known.help = text
        return Annotated[kind, known]
    switch = [f"--{part.name.replace('_', '-')}"] if part.default is False else []
    return Annotated[hint, typer.Option(*switch, help=text)]


@contextmanager
def _set(variable: ContextVar[bool], value: bool) -> Iterator[None]:
    before = variable.set(value)
    try:
        yield
    finally:
        variable.reset(before)


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
