"""grapheraser update: add, correct and forget in one batch, and print its receipt."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from grapheraser.cli.changes import read_changes
from grapheraser.cli.options import ExecutorOption
from grapheraser.cli.output import JsonOption
from grapheraser.cli.own import TrustOption, own_parts
from grapheraser.cli.unlearn import handed_out, print_plan, print_receipt
from grapheraser.errors import ParameterError

NAME = "update"


def run(
    path: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a run.")],
    file: Annotated[
        Path,
        typer.Option(
            help='File of changes, one per line: {"set_labels": {"nodes": [4], "y": [1]}}; '
            "- reads stdin."
        ),
    ],
    receipts: Annotated[
        Path | None, typer.Option(help="Folder for a receipt of each thing that is named.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the plan and change nothing.")
    ] = False,
    executor: ExecutorOption = "local",
    trust: TrustOption = None,
    json: JsonOption = False,
) -> None:
    """Add nodes and edges, set features and labels, and forget, all in one batch."""
    from grapheraser.links.loading import load_eraser
    from grapheraser.store import locked

    if dry_run:
        if receipts is not None:
            raise ParameterError("--receipts and --dry-run exclude each other.")
        eraser = load_eraser(path, executor=executor, **own_parts(path, trust))
        print_plan(eraser.plan(read_changes(file, eraser.graph_.num_features)), as_json=json)
        return
    with locked(path) as lock:
        eraser = load_eraser(path, executor=executor, **own_parts(path, trust))
        receipt = eraser.update(read_changes(file, eraser.graph_.num_features))
        eraser.save(path, lock=lock)
    print_receipt(receipt, eraser, handed_out(receipt, receipts), as_json=json)
