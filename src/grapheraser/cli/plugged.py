"""Verbs that installed packages plug into the command line, above all those of the laboratory.

A package declares an entry point of the group ``grapheraser.commands``: the verb, and a module that
is like those of this folder (``run``, and ``COMMAND`` where it needs a class of its own).
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

import typer
import typer.main
from typer.core import TyperGroup

from grapheraser.cli.output import with_quiet
from grapheraser.errors import MissingExtraError

GROUP = "grapheraser.commands"
LABORATORY = {
    "bench": "Run a benchmark and print a table.",
    "experiment": "Run tables and figures of the paper.",
    "arena": "Measure methods of unlearning against retraining.",
}


class Verbs(TyperGroup):
    """Verbs of this package first; entry points are looked up only for other ones, and for help."""

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a verb, None where there is none of that name."""
        return super().get_command(ctx, cmd_name) or plugged(cmd_name)

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of all verbs."""
        own = super().list_commands(ctx)
        return [*own, *(name for name in plugged_names() if name not in own)]

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """List the verbs, each with its whole first sentence; Click would shorten it."""
        verbs = {name: self.get_command(ctx, name) for name in self.list_commands(ctx)}
        rows = [(name, verb.get_short_help_str(limit=10_000)) for name, verb in verbs.items()]
        with formatter.section("Commands"):
            formatter.write_dl(rows)


def plugged_names() -> list[str]:
    """Return the names of plugged verbs, and of the laboratory's whether it is installed or not."""
    from importlib.metadata import entry_points

    return sorted({*LABORATORY, *entry_points(group=GROUP).names})


def plugged(name: str) -> Any:
    """Return the command of a plugged verb, None where there is none of that name."""
    from importlib.metadata import entry_points

    for entry in entry_points(group=GROUP, name=name):
        try:
            return _command(name, entry.load())
        except ModuleNotFoundError as error:
            if not entry.module.startswith(error.name or " "):  # something else is missing
                raise
    return _absent(name) if name in LABORATORY else None


def _command(name: str, verb: ModuleType) -> Any:
    app = typer.Typer(
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.command(name, cls=getattr(verb, "COMMAND", None))(with_quiet(verb.run))
    return typer.main.get_command(app)


def _absent(name: str) -> Any:
    """Return a verb that takes whatever it is given, and says how to get it."""
    app = typer.Typer(add_completion=False, rich_markup_mode=None)

    def refuse() -> None:
        raise MissingExtraError(
            f"'grapheraser {name}' needs the package 'grapheraser_lab', which is not installed.",
            hint="it is part of the repository: run `make setup`, or `pip install -e lab`, there.",
        )

    anything = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}
    app.command(name, help=LABORATORY[name], context_settings=anything)(refuse)
    return typer.main.get_command(app)
