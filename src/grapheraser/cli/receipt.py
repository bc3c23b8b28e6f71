"""grapheraser receipt: check or print one receipt, without the run and without torch."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from grapheraser.cli.arguments import read_file
from grapheraser.cli.output import JsonOption, print_json
from grapheraser.errors import ParameterError, VerificationError

if TYPE_CHECKING:
    from grapheraser.receipts.checking import Checked
    from grapheraser.receipts.part import Part

NAME = "receipt"


class Action(StrEnum):
    """What to do with a receipt."""

    VERIFY = "verify"
    PAGE = "page"


def run(
    action: Annotated[Action, typer.Argument(metavar="verify|page", help="What to do.")],
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A receipt that was handed out.")],
    key: Annotated[
        Path | None, typer.Option(help="verify: the operator's public key (PEM, or one line).")
    ] = None,
    checkpoint: Annotated[
        Path | None, typer.Option(help="verify: a checkpoint of the log that was kept elsewhere.")
    ] = None,
    run: Annotated[
        Path | None, typer.Option(help="verify: folder of the published run, to check its weights.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="page: the file to write.")] = None,
    json: JsonOption = False,
) -> None:
    """Verify a receipt offline, or make a page of it that can be printed.

    Verifying needs the standard library and the package cryptography alone.
    """
    part = _read(file)
    if action is Action.PAGE:
        if key or checkpoint or run:
            raise ParameterError("--key, --checkpoint and --run are of `receipt verify`.")
        _write_page(part, out, as_json=json)
        return
    if key is None or out is not None:
        raise ParameterError(
            "'receipt verify' takes --key and no --out.",
            hint="ask the operator for the public key: `grapheraser keys --export FILE`.",
        )
    found = _verified(part, key, checkpoint, run)
    if json:
        print_json({"file": str(file), "valid": True, **found.to_dict()})
        return
    receipt = part.receipt
    print(f"about       {part.in_words}")
    print(f"statement   {receipt.statement}")
    print(f"            {receipt.exactness['reason']}")
    print(f"receipt     {receipt.sequence} of {receipt.run}, {receipt.completed_at}")
    for line in found.lines:
        print(f"checked     {line}")
    print("receipt: valid")


def _read(file: Path) -> Part:
    from grapheraser.receipts.part import Part

    try:
        return Part.from_json(read_file(file).decode())
    except UnicodeDecodeError:
        raise VerificationError("not a readable receipt, or a truncated one.") from None


def _verified(part: Part, key: Path, checkpoint: Path | None, published: Path | None) -> Checked:
    """Check all that can be checked."""
    from grapheraser.receipts.checking import check_part
    from grapheraser.receipts.keys import PublicKey

    verifier = PublicKey.read(read_file(key).decode(errors="replace"))
    note = None if checkpoint is None else read_file(checkpoint).decode(errors="replace")
    read = None if published is None else lambda name: read_file(published / name)
    return check_part(part, [verifier], note, read)


def _write_page(part: Part, out: Path | None, *, as_json: bool) -> None:
    from grapheraser.reports.pages.receipt import receipt_page
    from grapheraser.store import write_text

    if out is None:
        raise ParameterError("'receipt page' needs --out.", hint="name the HTML file to write.")
    write_text(out, receipt_page(part))
    if as_json:
        print_json({"page": str(out)})
    else:
        print(f"page        {out}")
