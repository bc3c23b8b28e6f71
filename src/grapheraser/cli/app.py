"""The `grapheraser` command: its verbs and its exit status."""

from __future__ import annotations

import errno
import sys
from collections.abc import Sequence
from typing import Annotated, NoReturn

import typer

from grapheraser.cli import (
    access,
    audit,
    backup,
    bench,
    datasets,
    demo,
    evaluate,
    experiment,
    fit,
    import_graph,
    keys,
    partition,
    predict,
    rank,
    receipt,
    receipts,
    recommend,
    requests,
    reshard,
    restore,
    serve,
    unlearn,
    update,
    verify,
    warmup,
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
    *(demo, datasets, import_graph, recommend, fit, predict, rank, evaluate),
    *(unlearn, update, reshard, verify, receipts, receipt, keys),
    *(serve, access, requests, backup, restore),
    *(audit, partition, warmup, bench),
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
    """Run the command line; report a `GraphEraserError` as a message and exit status 1."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        try:
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
