"""Backups of a run and its queue, and restoring one without bringing anybody back.

A backup holds people who ask to be forgotten afterwards. Every erasure leaves a tombstone in the
database and beside the keys; a restore looks up every node, edge, feature row and label of the
backup there, and erases what is found before the run is written anywhere.

    run/         the run, as `save` writes it
    queue.db     the queue, where it is in SQLite; names nobody, and is unreadable without the keys
    backup.json  what it is; written last, so that a backup without it is none
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from grapheraser import errors
from grapheraser.eraser import load_eraser
from grapheraser.graph.changes.kinds import requests_for
from grapheraser.graph.changes.requests import SKIP
from grapheraser.kinds import items_of
from grapheraser.service.database import Database
from grapheraser.service.database.tables import BATCHES, PARTS, REQUESTS, RUNS, SUBJECTS
from grapheraser.service.queue.queue import Queue, utc_now
from grapheraser.service.queue.requests import State, utc_text
from grapheraser.service.queue.tombstones import Tombstones
from grapheraser.service.queue.vault import SECRET, Vault
from grapheraser.service.running import database_beside, service_keys
from grapheraser.service.served.serving import Model
from grapheraser.store import check_target, load_receipts
from grapheraser.store.files import make_folder, read_result, write_atomic
from grapheraser.store.keys import KeyFolder

_RUN, _QUEUE, _NOTE = "run", "queue.db", "backup.json"


@dataclass(frozen=True)
class Backup:
    """The run in a backup, by the name and size of its log; ``queue``: the queue is in it."""

    run: str
    size: int
    made: str
    queue: bool

    @classmethod
    def read(cls, folder: Path) -> Backup:
        """Read it back from the folder of a backup."""
        try:
            found = cls(**(read_result(folder / _NOTE) or {}))
        except (ValueError, TypeError) as error:
            raise errors.CorruptRunError(
                f"{folder}: not a backup, or an unfinished one."
            ) from error
        _, ends = load_receipts(folder / _RUN)
        if (ends.run, ends.receipts) != (found.run, found.size):
            raise errors.CorruptRunError(
                f"{folder}: the run in it is not the one that was backed up."
            )
        return found


@dataclass(frozen=True)
class Restored:
    """The outcome of a restore: the log of the new run, and how much was erased once more."""

    backup: Backup
    run: str
    erased: int


def make_backup(
    path: Path, out: Path, *, database: str = "", own: Mapping[str, Any] | None = None
) -> Backup:
    """Copy a run, and its queue where that is in SQLite, to a new folder; nothing has to stop.

    ``out`` must not exist, or be empty; an empty ``database`` is the one beside the run; ``own``
    are parts of the user's own, by argument of `GraphEraser.load`.
    """
    if (out / _NOTE).exists() or (out / _RUN).exists():
        raise errors.StoreError(f"{out}: there is a backup already.", hint="choose another folder.")
    make_folder(out)
    queue = Database.opened(database or database_beside(path))
    # The queue first: what it says is done by then is erased in the run that is copied.
    if queue.is_sqlite:
        queue.copy_to(out / _QUEUE)
    queue.dispose()
    load_eraser(path, **(own or {})).save(out / _RUN)
    _, ends = load_receipts(out / _RUN)
    backup = Backup(ends.run, ends.receipts, utc_text(utc_now()), queue.is_sqlite)
    write_atomic(out / _NOTE, (json.dumps(asdict(backup), indent=2) + "\n").encode())
    return backup


def restore(
    folder: Path,
    path: Path,
    *,
    database: str = "",
    own: Mapping[str, Any] | None = None,
    keys: KeyFolder | None = None,
    replace: bool = False,
    lost_database: bool = False,
    reached: Callable[[str], None] = lambda step: None,
) -> Restored:
    """Write the run of a backup to a folder, without what was erased since.

    The run gets a log of its own, and takes over all requests. Stop the service first. ``keys`` is
    by default ``GRAPHERASER_KEYS``; ``replace`` overwrites a run that is there. With
    ``lost_database`` it goes on with the queue in the backup, or an empty one where it has none:
    what was accepted since is not known; what was erased, the tombstones beside the keys say.
    ``reached`` is called after every step, for tests.
    """
    backup, keys = Backup.read(folder), keys or service_keys()
    if not keys.has_secret(SECRET):
        raise errors.ServiceError(
            f"{keys.path}: these are not the keys of the service, and without them nobody can tell "
            "what was erased since.",
            hint="set GRAPHERASER_KEYS to the folder that the service was run with.",
        )
    try:
        check_target(path, replace=replace)
    except (errors.ReceiptLossError, errors.RunExistsError) as error:
        raise type(error)(
            f"{path}: there is a run already.",
            hint="overwrite it with --replace (what was erased since the backup is erased once "
            "more), or name a folder that does not exist, and the database with --database.",
        ) from error
    url = database or database_beside(path)
    opened = _database(folder, backup, url, lost=lost_database)
    try:
        queue = Queue(opened, backup.run, Vault(keys.secret(SECRET)))
        model = load_eraser(folder / _RUN, **(own or {}))
        tombstones = Tombstones(queue, keys)
        erased = _erase_once_more(model, tombstones, backup)
        model.begin_log()
        name = model.log_name_
        _hand_over(_latest(queue, keys), name)
        reached("handed over")
        model.save(path, replace=replace)
        reached("saved")
    finally:
        opened.dispose()
    return Restored(backup, name, erased)


def _hand_over(queue: Queue, run: str) -> None:
    """Hand all requests of a queue, and its subject map, to a run that was restored.

    What was published and not yet erased has left no tombstone: it is carried out once more.
    """
    undone = (State.PLANNED, State.RETRAINING, State.PUBLISHED)
    chosen = (REQUESTS.c.run == queue.run) & REQUESTS.c.state.in_([s.value for s in undone])
    with queue.database.writing() as connection:
        queue.database.in_order(connection)  # whoever submits something is before this, or after
        back = list(connection.execute(sa.select(REQUESTS.c.id).where(chosen)).scalars())
        dropped = PARTS.c.request.in_(sa.select(REQUESTS.c.id).where(chosen))
        connection.execute(sa.delete(PARTS).where(dropped))
        anew = {"state": State.RECEIVED.value, "batch": None, "version": None}
        connection.execute(sa.update(REQUESTS).where(chosen).values(anew))
        for table in (REQUESTS, BATCHES, SUBJECTS):
            theirs = sa.update(table).where(table.c.run == queue.run)
            connection.execute(theirs.values(run=run))
        queue.record(connection, back, State.RECEIVED)
        seen = {"name": run, "succeeds": queue.run, "seen": queue.clock().timestamp()}
        connection.execute(sa.insert(RUNS), [seen])


def _latest(queue: Queue, keys: KeyFolder) -> Queue:
    """Return the queue of the last run that was restored from this one; itself where none was.

    Where the database is not the one that knew of it, the requests are handed on from run to run.
    """
    latest = queue
    for known in queue.successors():
        latest = Queue(queue.database, known, queue.vault)
    for unknown in Tombstones(latest, keys).restored_since():
        _hand_over(latest, unknown)
        latest = Queue(queue.database, unknown, queue.vault)
    return latest


def _database(folder: Path, backup: Backup, url: str, *, lost: bool) -> Database:
    """Open the database of the run's queue; if lost, the one of the backup, or an empty one."""
    database = Database(url)
    file = Path(database.url.database or "") if database.is_sqlite else None
    if lost:
        _replace(database, file, folder / _QUEUE if backup.queue else None)
    elif file is not None and not file.exists():
        raise errors.ServiceError(
            f"{file}: the database is not there, and only it knows what was accepted since.",
            hint="it lies beside the folder that the run was served from: restore to that folder, "
            "or name the database with --database. Only if there is none left: --lost-database.",
        )
    database.migrate()
    is_known = _knows(database, backup.run)
    if lost and not backup.queue and is_known:
        raise errors.StoreError("the database knows the run in this backup: it is not lost.")
    if not lost and not is_known:
        raise errors.ServiceError(
            "the database knows nothing of the run in this backup.",
            hint="name the one that the run was served with: --database. Only if there is none "
            "left, name a new one and add --lost-database.",
        )
    return database


def _replace(database: Database, file: Path | None, queue: Path | None) -> None:
    """Put the queue of a backup, if it has one, in the place of a database that is lost."""
    if file is not None and file.exists():
        raise errors.StoreError(f"{file}: the database is there: it is not lost.")
    if file is not None:
        make_folder(file.parent)
    if queue is not None and file is None:
        raise errors.ServiceError(
            "the queue in this backup is SQLite's, and the database is not.",
            hint="name a new file: --database sqlite:///PATH.",
        )
    if queue is not None and file is not None:
        Database(f"sqlite:///{queue.absolute()}").copy_to(file)


def _knows(database: Database, run: str) -> bool:
    return bool(database.rows(sa.select(RUNS.c.name).where(RUNS.c.name == run)))


def _erase_once_more(model: Model, tombstones: Tombstones, backup: Backup) -> int:
    """Erase from a model what was erased since the backup; return how much."""
    if gone := tombstones.unreadable(after=backup.size):
        raise errors.ServiceError(
            f"the key of tombstones {gone[0]} was destroyed: nobody can tell any more what was "
            "erased since this backup.",
            hint="restore a later backup. Keep backups no longer than `backup_days`.",
        )
    everything = model.task.everything(model.graph_)
    items = items_of({name: ids.tolist() for name, ids in everything.items()})
    found = tombstones.among(items, after=backup.size)
    if found:
        try:
            model.unlearn(requests_for(found), missing=SKIP)
        except errors.NothingToForgetError:
            return 0
    return len(found)
