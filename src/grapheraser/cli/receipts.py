"""grapheraser receipts: the receipts of a run, and its log."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from grapheraser.cli.arguments import read_file
from grapheraser.cli.output import JsonOption, print_json, print_table
from grapheraser.errors import ParameterError
from grapheraser.reports.wording import contents

if TYPE_CHECKING:
    from grapheraser.receipts import Ends, Receipt, Receipts

NAME = "receipts"


def run(
    path: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a run.")],
    show: Annotated[int | None, typer.Option(help="Number of a receipt to print.")] = None,
    export: Annotated[
        int | None, typer.Option(help="Number of a receipt whose envelope to write, to --out.")
    ] = None,
    checkpoint: Annotated[
        bool, typer.Option("--checkpoint", help="Write the log's signed checkpoint, to --out.")
    ] = False,
    prove: Annotated[
        Path | None,
        typer.Option(help="A receipt that was handed out: show where it is in the log as it is."),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="File to write; default: print.")] = None,
    json: JsonOption = False,
) -> None:
    """List the receipts of a run, show or export one, or export the log's checkpoint."""
    from grapheraser.store import load_receipts

    chosen = [show is not None, export is not None, checkpoint, prove is not None]
    if sum(chosen) > 1:
        raise ParameterError("choose one of --show, --export, --checkpoint and --prove.")
    if out is not None and not any(chosen[1:]):
        raise ParameterError("--out is of --export, --checkpoint and --prove.")
    receipts, ends = load_receipts(path)
    if export is not None:
        _give(_numbered(receipts, export).to_json() + "\n", out, as_json=json)
    elif checkpoint:
        _give(_checkpoint(ends), out, as_json=json)
    elif prove is not None:
        _give(_proved(prove, receipts, ends), out, as_json=json)
    elif show is not None:
        receipt = _numbered(receipts, show)
        print_json({"receipt": receipt.to_dict(), "digest": receipt.digest})
    else:
        _list(receipts, ends, as_json=json)


def _numbered(receipts: Receipts, number: int) -> Receipt:
    if not 1 <= number <= len(receipts):
        raise ParameterError(f"there is no receipt {number} (the run has {len(receipts)}).")
    return receipts[number - 1]


def _checkpoint(ends: Ends) -> str:
    if ends.checkpoint is None:
        raise ParameterError(
            "the log has no signed checkpoint: it is empty, or its last receipt is unsigned.",
            hint="pip install 'grapheraser[sign]'; the next change is signed then.",
        )
    return ends.checkpoint


def _proved(file: Path, receipts: Receipts, ends: Ends) -> str:
    from grapheraser.receipts import Part

    part = Part.from_json(read_file(file).decode(errors="replace"))
    return part.proved_in(list(receipts), ends.checkpoint).to_json() + "\n"


def _give(text: str, out: Path | None, *, as_json: bool) -> None:
    from grapheraser.store import write_text

    if out is not None:
        write_text(out, text)
    if as_json:
        print_json({"content": text} if out is None else {"file": str(out)})
    elif out is None:
        print(text, end="")
    else:
        print(f"written     {out}")


def _list(receipts: Receipts, ends: Ends, *, as_json: bool) -> None:
    found = list(receipts)
    if as_json:
        rows = [{"digest": receipt.digest, **receipt.to_dict()} for receipt in found]
        print_json({"run": ends.run, "receipts": rows, "checkpoint": ends.checkpoint})
        return
    print_table(
        "",
        ("receipt", "completed", "action", "about", "statement", "signed by"),
        [
            (
                receipt.sequence,
                receipt.completed_at,
                receipt.action,
                contents(receipt.counts) or "everything",
                receipt.statement,
                ", ".join(signature.key for signature in receipt.signatures) or "unsigned",
            )
            for receipt in found
        ],
    )
    print(f"log         {ends.run}, {ends.receipts} {'entry' if ends.receipts == 1 else 'entries'}")
