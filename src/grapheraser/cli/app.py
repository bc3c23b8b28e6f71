"""The `grapheraser` command: its verbs and its exit status."""

from __future__ import annotations

import errno
import sys
import warnings
from collections.abc import Callable, Sequence
from typing import Annotated, NoReturn

import typer

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
    witness,
)
from grapheraser.cli.output import drop_output, report_error, report_warning, with_quiet
from grapheraser.cli.plugged import Verbs
from grapheraser.errors import GraphEraserError

app = typer.Typer(
    name="grapheraser",
    cls=Verbs,
    help="Exact unlearning for graph neural networks.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
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
    "witness": witness.witness,
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
    app.command(name)(with_quiet(verb))


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
