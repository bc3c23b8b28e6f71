"""grapheraser access: the API keys of a service."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from grapheraser.cli.output import JsonOption, print_json, print_table
from grapheraser.cli.service_options import ConfigOption, DatabaseOption, service_settings
from grapheraser.errors import ParameterError

NAME = "access"


def run(
    path: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a run.")],
    create: Annotated[
        str, typer.Option(help="Make a key: requester, operator, auditor or reader.")
    ] = "",
    name: Annotated[str, typer.Option(help="--create: whose key it is.")] = "",
    revoke: Annotated[str, typer.Option(help="Id of a key to take away.")] = "",
    database: DatabaseOption = None,
    config: ConfigOption = None,
    json: JsonOption = False,
) -> None:
    """List the API keys of a service, make one, or take one away; it need not be running."""
    settings = service_settings(config, database=database)
    from grapheraser.service.api.access import Keys, Role
    from grapheraser.service.database import Database
    from grapheraser.service.running import database_beside
    from grapheraser.store import read_manifest

    read_manifest(path)
    if create and revoke:
        raise ParameterError("choose one of --create and --revoke.")
    if name and not create:
        raise ParameterError("--name is of --create.")
    keys = Keys(Database.opened(settings.database or database_beside(path)))
    if create:
        if create not in list(Role):
            raise ParameterError.of("--create", "access", f"one of {', '.join(Role)}", create)
        key, text = keys.create(name or create, Role(create))
        if json:
            print_json({"id": key.id, "name": key.name, "role": key.role, "key": text})
            return
        print(text)
        return
    if revoke and not keys.revoke(revoke):
        raise ParameterError(f"there is no key {revoke!r} that could be revoked.")
    found = keys.list()
    if json:
        print_json({"keys": [_shown(key.__dict__) for key in found]})
        return
    rows = [(k.id, k.role, k.name, k.created.isoformat("T", "seconds"), k.revoked) for k in found]
    print_table("", ("key", "role", "name", "created", "revoked"), rows)


def _shown(key: dict[str, object]) -> dict[str, object]:
    return {name: value if value is None else str(value) for name, value in key.items()}
