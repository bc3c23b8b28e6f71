"""The `grapheraser` command: its verbs and its exit status.

Installed packages, above all the laboratory, plug in verbs of their own. A package declares an
entry point of the group ``grapheraser.commands``: the verb, and a module that is like those of this
folder (``run``, and ``COMMAND`` where it needs a class of its own).
"""

from __future__ import annotations

import errno
import sys
import warnings
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Annotated, Any, NoReturn

import typer
import typer.main
from typer.core import TyperGroup

from grapheraser.cli import (
    datasets,
    demo,
    embeddings,
    fit,
    info,
    partition,
    predict,
    receipts,
    requests,
    serve,
    unlearn,
    verify,
    warmup,
)
from grapheraser.cli.output import as_verb, drop_output, report_error, report_warning
from grapheraser.errors import GraphEraserError, MissingExtraError

GROUP = "grapheraser.commands"
LABORATORY = {
    "bench": "Run a benchmark and print a table.",
    "experiment": "Run tables and figures of the paper.",
    "arena": "Measure methods of unlearning against retraining.",
}
_LOOKS: dict[str, Any] = {
    "pretty_exceptions_enable": False,
    "rich_markup_mode": None,
    "context_settings": {"help_option_names": ["-h", "--help"]},
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
    app = typer.Typer(add_completion=False, **_LOOKS)
    app.command(name, cls=getattr(verb, "COMMAND", None))(as_verb(verb.run))
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


app = typer.Typer(
    name="grapheraser",
    cls=Verbs,
    help="Exact unlearning for graph neural networks.",
    no_args_is_help=True,
    **_LOOKS,
)
_VERBS: dict[str, Callable[..., None]] = {
    "demo": demo.demo,
    "datasets": datasets.datasets,
    "import": datasets.import_graph,
    "recommend": partition.recommend,
    "fit": fit.run,
    "info": info.info,
    "predict": predict.predict,
    "rank": predict.rank,
    "evaluate": predict.evaluate,
    "changes": embeddings.changes,
    "unlearn": unlearn.unlearn,
    "update": unlearn.update,
    "reshard": unlearn.reshard,
    "verify": verify.verify,
    "receipts": receipts.receipts,
    "receipt": receipts.receipt,
    "keys": receipts.keys,
    "serve": serve.serve,
    "witness": serve.witness,
    "access": serve.access,
    "requests": requests.run,
    "backup": serve.backup,
    "restore": serve.restore,
    "audit": verify.audit,
    "export": info.export,
    "partition": partition.partition,
    "upgrade": info.upgrade,
    "explain": info.explain,
    "warmup": warmup.run,
}
for name, verb in _VERBS.items():
    app.command(name)(as_verb(verb))


def _print_version(wanted: bool) -> None:
    if wanted:
        from grapheraser import __version__

        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    del version


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line; report a `GraphEraserError` as a message and exit status 1."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        try:
            with warnings.catch_warnings():
                warnings.showwarning = report_warning
                app(words)
        except GraphEraserError as error:
            _fail(error, words)
        finally:
            sys.stdout.flush()
    except BrokenPipeError:  # the reader has closed the pipe, as ``| head`` does
        drop_output()
        sys.exit(1)
    except OSError as error:
        if error.filename is not None or error.errno not in (errno.ENOSPC, errno.EIO):
            _fail(GraphEraserError(f"{error}."), words)
        drop_output()
        text = f"the output could not be written: {error.strerror}."
        _fail(
            GraphEraserError(text, hint="the command itself is done; only its output is lost."), ()
        )


def _fail(error: GraphEraserError, words: Sequence[str]) -> NoReturn:
    report_error(error, as_json="--json" in words)
    sys.exit(1)
