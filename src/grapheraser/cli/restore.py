"""grapheraser restore: bring a run back from a backup, and nobody with it."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from grapheraser.cli.output import JsonOption, print_json, say
from grapheraser.cli.own import TrustOption, own_parts
from grapheraser.cli.service_options import ConfigOption, DatabaseOption, service_settings

NAME = "restore"


def run(
    backup: Annotated[Path, typer.Argument(metavar="BACKUP", help="Folder of a backup.")],
    path: Annotated[Path, typer.Argument(metavar="RUN", help="Folder to write the run to.")],
    database: DatabaseOption = None,
    config: ConfigOption = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="Overwrite a run that is there.")
    ] = False,
    lost_database: Annotated[
        bool,
        typer.Option(
            "--lost-database",
            help="Go on with the queue in the backup; what was accepted since is not known.",
        ),
    ] = False,
    trust: TrustOption = None,
    json: JsonOption = False,
) -> None:
    """Restore a run without what was erased since its backup; stop the service first."""
    settings = service_settings(config, database=database)
    from grapheraser.service.backup import restore

    done = restore(
        backup,
        path,
        database=settings.database,
        own=own_parts(backup / "run", trust),
        replace=replace,
        lost_database=lost_database,
    )
    if json:
        print_json(asdict(done))
        return
    print(f"run         {path}")
    print(f"erased      {done.erased} once more")
    print(f"log         {done.run}")
    if lost_database:
        say(
            "\nnote: whatever was accepted since the backup and not erased is not known any more; "
            "its senders have to ask again."
        )
