"""The `grapheraser` command: its verbs, and what happens when one fails."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from grapheraser.cli import (
    audit,
    bench,
    datasets,
    demo,
    evaluate,
    experiment,
    fit,
    partition,
    predict,
    recommend,
    unlearn,
    verify,
)
from grapheraser.cli.output import drop_output, report_error
from grapheraser.errors import GraphEraserError

app = typer.Typer(
    name="grapheraser",
    help="Exact unlearning for graph neural networks.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
_VERBS = (
    *(demo, datasets, recommend, fit, predict, evaluate),
    *(unlearn, verify, audit, partition, bench),
)
for verb in _VERBS:
    app.command(verb.NAME)(verb.run)
app.command(experiment.NAME, cls=experiment.COMMAND)(experiment.run)


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
    """Run the command line; an error of ours becomes a message and exit status 1."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        try:
            app(words)
        except GraphEraserError as error:
            report_error(error, as_json="--json" in words)
            sys.exit(1)
        finally:
            sys.stdout.flush()
    except BrokenPipeError:  # whoever reads has read enough, as in ``| head``
        drop_output()
        sys.exit(1)
    except OSError as error:
        drop_output()
        report_error(_unwritten(error), as_json=False)
        sys.exit(1)


def _unwritten(error: OSError) -> GraphEraserError:
    if error.filename is not None:
        return GraphEraserError(f"{error.filename}: {error.strerror}.")
    return GraphEraserError(
        f"the output could not be written: {error.strerror}.",
        hint="what the command did before stands; only what it had to say is lost.",
    )
