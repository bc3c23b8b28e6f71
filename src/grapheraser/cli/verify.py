"""grapheraser verify: train again from what is left, and compare bit for bit."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from grapheraser.cli.output import JsonOption, duration, print_json, say

NAME = "verify"


def run(
    path: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a run.")],
    json: JsonOption = False,
) -> None:
    """Replay the run from its remaining data and compare every tensor bit for bit."""
    from grapheraser.eraser import GraphEraser

    result = GraphEraser.load(path).verify()
    if json:
        print_json({"run": str(path), **result.to_dict()})
    else:
        for note in result.notes:
            say(f"note: {note}")
        for difference in result.differences:
            say(f"differs: {difference}")
        print(
            f"compared    {result.tensors} tensors, {result.values:,} values, "
            f"{result.receipts} receipts in {duration(result.seconds)}"
        )
        print(f"verified: {'bit-identical' if result.identical else 'NOT identical'}")
    if not result.identical:
        raise typer.Exit(1)
