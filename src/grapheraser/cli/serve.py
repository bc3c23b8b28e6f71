"""grapheraser serve, access, backup, restore, witness: run a service, look after it, watch one."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from grapheraser.cli.arguments import read_line
from grapheraser.cli.options import RunArgument, TrustOption
from grapheraser.cli.output import (
    answered,
    print_found,
    print_json,
    print_line,
    print_table,
    say,
    wants_json,
)
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
    host: str | None = None,
    port: int | None = None,
    database: DatabaseOption = None,
    config: ConfigOption = None,
    opendsr_domain: str | None = None,
    opendsr_certificate: str | None = None,
    opendsr_key: str | None = None,
    witness: list[str] | None = None,
    witness_quorum: int | None = None,
    trust: TrustOption = None,
) -> None:
    """Serve predictions, accept requests to forget and carry them out.

    Every setting can also be given by an environment variable or in a file. The first API key is
    printed once.

    Options:
        host: Address to listen on; default 127.0.0.1.
        port: Port to listen on; default 8080.
        opendsr_domain: Domain of this processor, for OpenDSR.
        opendsr_certificate: Its certificate, as a PEM file.
        opendsr_key: The certificate's private key, as a PEM file.
        witness: URL of a witness that cosigns the log, or URL#KEY; repeat for several.
        witness_quorum: How many witnesses have to cosign; default all.
    """
    given: dict[str, Any] = {"host": host, "port": port, "database": database}
    given |= {"opendsr_domain": opendsr_domain, "opendsr_key": opendsr_key}
    given |= {"witness": ",".join(witness) if witness else None, "witness_quorum": witness_quorum}
    settings = _settings(config, opendsr_certificate=opendsr_certificate, **given)
    from grapheraser.service.api import start
    from grapheraser.service.logs import configure
    from grapheraser.service.running import Service

    configure(settings)
    with start.bound(settings) as listener:
        service = Service.opened(path, settings, own=own_parts(path, trust))
        key, url = start.first_key(service), start.address_of(listener)
        start.serve(service, listener, lambda: _announce(service, url, key))


def _announce(service: Service, url: str, key: str | None) -> None:
    from grapheraser.service.logs import JSON

    version = service.served.now.version
    # Beside lines of JSON stderr has nothing else.
    if wants_json() or service.settings.log_format == JSON:
        print_json({"url": url, "version": version} | ({"key": key} if key else {}))
        return
    say(f"serving     {service.served.path} (version {version}) on {url}")
    if key:
        say(f"first key   {key}")
        say("            it is shown this once: keep it, and give others keys of their own.")


def access(
    path: RunArgument,
    create: str = "",
    name: str = "",
    revoke: str = "",
    database: DatabaseOption = None,
    config: ConfigOption = None,
) -> None:
    """List the API keys of a service, make one, or take one away; it need not be running.

    Options:
        create: Make a key: requester, operator, auditor or reader.
        name: With --create: whose key it is.
        revoke: Id of a key to take away.
    """
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
        if answered({"id": key.id, "name": key.name, "role": key.role, "key": text}):
            return
        print_line(text)
        return
    if revoke and not keys.revoke(revoke):
        raise ParameterError(f"there is no key {revoke!r} that could be revoked.")
    found = keys.list()
    if answered({"keys": [_shown(key.__dict__) for key in found]}):
        return
    rows = [(k.id, k.role, k.name, k.created.isoformat("T", "seconds"), k.revoked) for k in found]
    print_table("", ("key", "role", "name", "created", "revoked"), rows)


def _shown(key: dict[str, object]) -> dict[str, object]:
    return {name: value if value is None else str(value) for name, value in key.items()}


def backup(
    path: RunArgument,
    out: Annotated[Path, typer.Argument(metavar="BACKUP")],
    database: DatabaseOption = None,
    config: ConfigOption = None,
    trust: TrustOption = None,
) -> None:
    """Copy a run and, where it is in SQLite, the service's queue; nothing has to stop.

    Options:
        out: New folder for the backup.
    """
    settings = _settings(config, database=database)
    from grapheraser.service.worker.backup import make_backup

    made = make_backup(path, out, database=settings.database, own=own_parts(path, trust))
    queue = "in the backup" if made.queue else "back it up with pg_dump"
    print_found(asdict(made), {"backup": out, "receipts": made.size, "queue": queue}, 12)


def restore(
    backup: Annotated[Path, typer.Argument(metavar="BACKUP")],
    path: Annotated[Path, typer.Argument(metavar="RUN")],
    database: DatabaseOption = None,
    config: ConfigOption = None,
    replace: bool = False,
    lost_database: bool = False,
    trust: TrustOption = None,
) -> None:
    """Restore a run without what was erased since its backup; stop the service first.

    Options:
        backup: Folder of a backup.
        path: Folder to write the run to.
        replace: Overwrite a run that is there.
        lost_database: Go on with the queue in the backup; what was accepted since is not known.
    """
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
    rows = {"run": path, "erased": f"{done.erased} once more", "log": done.run}
    print_found(asdict(done), rows, 12)
    if lost_database and not wants_json():
        say(
            "\nnote: whatever was accepted since the backup and not erased is not known any more; "
            "its senders have to ask again."
        )


def witness(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER")],
    name: str,
    log: list[str],
    host: str = "127.0.0.1",
    port: int = 8090,
) -> None:
    """Check that logs only grow, and cosign their checkpoints (C2SP tlog-witness).

    Run it on a machine of somebody else than the service. Its key is made on first use; give the
    printed line to whoever checks receipts: `receipt verify --witness-key`.

    Options:
        folder: Where the witness keeps its key and state.
        name: Name of the witness, such as witness.example.org/w1.
        log: Public key of a log: PEM file, for any log that it signs, or a verifier key with the
            log's origin, as a line or in a file. Repeat for several.
        host: Address to listen on.
        port: Port to listen on.
    """
    from grapheraser.service import needs_extra

    needs_extra()
    if not name or not name.isprintable() or "+" in name or any(map(str.isspace, name)):
        raise ParameterError.of("--name", "witness", "a text without spaces and +", name)
    from grapheraser.receipts.witness import Witness
    from grapheraser.service.api import start
    from grapheraser.service.settings import Settings
    from grapheraser.service.witness import trusted_log, witness_app
    from grapheraser.store.witness import held_by_witness

    logs = [trusted_log(read_line(one)) for one in log]
    settings = Settings(host=host, port=port)
    with held_by_witness(folder) as kept, start.bound(settings) as listener:
        made = Witness(name, kept.signing_key(), logs, kept)
        line, url = made.key.line, start.address_of(listener)
        listener.listen()
        if not answered({"url": url, "name": name, "key": line}):
            say(f"witness     {name} on {url}")
            say(f"key         {line}")
        start.make_server(witness_app(made), settings).run(sockets=[listener])
