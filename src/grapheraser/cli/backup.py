"""grapheraser backup: copy a run and its queue."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from grapheraser.cli.output import JsonOption, print_json
from grapheraser.cli.own import TrustOption, own_parts

NAME = "backup"


def run(
    path: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a run.")],
    out: Annotated[Path, typer.Argument(metavar="BACKUP", help="New folder for the backup.")],
    database: Annotated[
        str, typer.Option(help="URL of the service's database; default: the one beside the run.")
    ] = "",
    trust: TrustOption = None,
    json: JsonOption = False,
) -> None:
    """Copy a run and, where it is in SQLite, the service's queue; nothing has to stop."""
    from grapheraser.service import needs_extra

    needs_extra()
    from grapheraser.service.backup import make_backup

    made = make_backup(path, out, database=database, own=own_parts(path, trust))
    if json:
        print_json(asdict(made))
        return
    print(f"backup      {out}")
    print(f"receipts    {made.size}")
    print(f"queue       {'in the backup' if made.queue else 'back it up with pg_dump'}")
