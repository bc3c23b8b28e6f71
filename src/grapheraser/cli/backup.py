"""grapheraser backup: copy a run and its queue."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from grapheraser.cli.output import JsonOption, print_json
from grapheraser.cli.own import TrustOption, own_parts
from grapheraser.cli.service_options import ConfigOption, DatabaseOption, service_settings

NAME = "backup"


def run(
    path: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a run.")],
    out: Annotated[Path, typer.Argument(metavar="BACKUP", help="New folder for the backup.")],
    database: DatabaseOption = None,
    config: ConfigOption = None,
    trust: TrustOption = None,
    json: JsonOption = False,
) -> None:
    """Copy a run and, where it is in SQLite, the service's queue; nothing has to stop."""
    settings = service_settings(config, database=database)
    from grapheraser.service.backup import make_backup

    made = make_backup(path, out, database=settings.database, own=own_parts(path, trust))
    if json:
        print_json(asdict(made))
        return
    print(f"backup      {out}")
    print(f"receipts    {made.size}")
    print(f"queue       {'in the backup' if made.queue else 'back it up with pg_dump'}")
