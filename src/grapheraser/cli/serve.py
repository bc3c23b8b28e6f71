"""grapheraser serve, access, backup, restore: run a service and look after it."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from grapheraser.cli.options import JsonOption, RunArgument, TrustOption
from grapheraser.cli.output import print_json, print_line, print_rows, print_table, say
from grapheraser.cli.own import own_parts
from grapheraser.errors import ParameterError

if TYPE_CHECKING:
    from grapheraser.service.running import Service
    from grapheraser.service.settings import Settings

DatabaseOption = Annotated[
    str | None,
    typer.Option("--database", help="URL of the queue's database; default SQLite beside the run."),
]
ConfigOption = Annotated[
    Path | None,
    typer.Option("--config", help="TOML file with settings; see docs/reference/variables.md."),
]


def _settings(config: Path | None, **given: Any) -> Settings:
    """Read the settings from options, variables and file; refuse without the extra."""
    from grapheraser.service import needs_extra

    needs_extra()
    from grapheraser.service.settings import Settings

    return Settings.read(config, **given)


def serve(
    path: RunArgument,
    host: Annotated[
        str | None, typer.Option(help="Address to listen on; default 127.0.0.1.")
    ] = None,
    port: Annotated[int | None, typer.Option(help="Port to listen on; default 8080.")] = None,
    database: DatabaseOption = None,
    config: ConfigOption = None,
    opendsr_domain: Annotated[
        str | None, typer.Option(help="Domain of this processor, for OpenDSR.")
    ] = None,
    opendsr_certificate: Annotated[
        str | None, typer.Option(help="Its certificate, as a PEM file.")
    ] = None,
    opendsr_key: Annotated[
        str | None, typer.Option(help="The certificate's private key, as a PEM file.")
    ] = None,
    witness: Annotated[
        list[str] | None,
        typer.Option(help="URL of a witness that cosigns the log, or URL#KEY; repeat for several."),
    ] = None,
    witness_quorum: Annotated[
        int | None, typer.Option(help="How many witnesses have to cosign; default all.")
    ] = None,
    trust: TrustOption = None,
    json: JsonOption = False,
) -> None:
    """Serve predictions, accept requests to forget and carry them out.

    Every setting can also be given by an environment variable or in a file. The first API key is
    printed once.
    """
    given: dict[str, Any] = {"host": host, "port": port, "database": database}
    given |= {"opendsr_domain": opendsr_domain, "opendsr_key": opendsr_key}
    given |= {"witness": ",".join(witness) if witness else None, "witness_quorum": witness_quorum}
    settings = _settings(config, opendsr_certificate=opendsr_certificate, **given)
    from grapheraser.service.api import start
    from grapheraser.service.logs import JSON, configure
    from grapheraser.service.running import Service

    configure(settings)
    json = json or settings.log_format == JSON  # then stderr has nothing but lines of JSON
    with start.bound(settings) as listener:
        service = Service.opened(path, settings, own=own_parts(path, trust))
        key, url = start.first_key(service), start.address_of(listener)
        start.serve(service, listener, lambda: _announce(service, url, key, as_json=json))


def _announce(service: Service, url: str, key: str | None, *, as_json: bool) -> None:
    version = service.served.now.version
    if as_json:
        print_json({"url": url, "version": version} | ({"key": key} if key else {}))
        return
    say(f"serving     {service.served.path} (version {version}) on {url}")
    if key:
        say(f"first key   {key}")
        say("            it is shown this once: keep it, and give others keys of their own.")


def access(
    path: RunArgument,
    create: Annotated[
        str, typer.Option(help="Make a key: requester, operator, auditor or reader.")
    ] = "",
    name: Annotated[str, typer.Option(help="With --create: whose key it is.")] = "",
    revoke: Annotated[str, typer.Option(help="Id of a key to take away.")] = "",
    database: DatabaseOption = None,
    config: ConfigOption = None,
    json: JsonOption = False,
) -> None:
    """List the API keys of a service, make one, or take one away; it need not be running."""
    settings = _settings(config, database=database)
    from grapheraser.service.api.keys import Keys, Role
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
        print_line(text)
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


def backup(
    path: RunArgument,
    out: Annotated[Path, typer.Argument(metavar="BACKUP", help="New folder for the backup.")],
    database: DatabaseOption = None,
    config: ConfigOption = None,
    trust: TrustOption = None,
    json: JsonOption = False,
) -> None:
    """Copy a run and, where it is in SQLite, the service's queue; nothing has to stop."""
    settings = _settings(config, database=database)
    from grapheraser.service.worker.backup import make_backup

    made = make_backup(path, out, database=settings.database, own=own_parts(path, trust))
    if json:
        print_json(asdict(made))
        return
    queue = "in the backup" if made.queue else "back it up with pg_dump"
    print_rows({"backup": out, "receipts": made.size, "queue": queue}, 12)


def restore(
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
    settings = _settings(config, database=database)
    from grapheraser.service.worker import backup as backups

    done = backups.restore(
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
    print_rows({"run": path, "erased": f"{done.erased} once more", "log": done.run}, 12)
    if lost_database:
        say(
            "\nnote: whatever was accepted since the backup and not erased is not known any more; "
            "its senders have to ask again."
        )
