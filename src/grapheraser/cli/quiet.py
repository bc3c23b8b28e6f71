"""``--quiet``, which every verb takes."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from contextlib import nullcontext
from functools import wraps
from typing import Annotated, Any, TypeAlias, get_type_hints

import typer

from grapheraser.cli.output import notes_hidden
from grapheraser.progress import hidden

QuietOption: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--quiet", "-q", help="Print results, warnings and errors: no notes, no progress."
    ),
]


def with_quiet(run: Callable[..., None]) -> Callable[..., None]:
    """A verb with one more option, which keeps it from printing notes and progress."""

    @wraps(run)
    def quietly(*args: Any, quiet: bool = False, **options: Any) -> None:
        with notes_hidden() if quiet else nullcontext(), hidden() if quiet else nullcontext():
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
