"""grapheraser keys: the operator's signing keys."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from grapheraser.cli.output import JsonOption, print_json, print_table

NAME = "keys"


def run(
    rotate: Annotated[
        bool, typer.Option("--rotate", help="Make a new key; from now on it signs.")
    ] = False,
    export: Annotated[
        Path | None, typer.Option(help="File to write the public key that signs to (PEM).")
    ] = None,
    json: JsonOption = False,
) -> None:
    """List the keys that sign receipts, make a new one, or export the public half.

    They lie in GRAPHERASER_KEYS, encrypted where GRAPHERASER_KEY_PASSPHRASE is set. The first one
    is made when it is first needed.
    """
    from grapheraser.receipts.keys import PublicKey
    from grapheraser.store import write_text
    from grapheraser.store.keys import KeyFolder

    folder = KeyFolder()
    if rotate:
        folder.rotate()
    if export is not None:
        write_text(export, PublicKey(folder.signing_key().public).to_pem())
    records = folder.records()
    if json:
        found = [
            {"id": r.id, "file": str(r.path), "signs": r.is_current, "encrypted": r.is_encrypted}
            for r in records
        ]
        print_json({"folder": str(folder.path), "keys": found})
        return
    if export is not None:
        print(f"public key  {export}")
        return
    print_table(
        "",
        ("key", "signs", "private half", "public half"),
        [
            (
                record.id,
                "yes" if record.is_current else "no more",
                "encrypted" if record.is_encrypted else "not encrypted",
                record.path,
            )
            for record in records
        ],
    )
