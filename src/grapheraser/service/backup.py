"""Backups of a run and its queue, and restoring one without bringing anybody back.

A backup holds people who ask to be forgotten afterwards. So whatever was erased since, says a
tombstone, in the database and beside the keys; a restore looks every node, edge, feature row and
label of the backup up there, and erases what is found before the run is written anywhere.

    run/         the run, as `save` writes it
    queue.db     the queue, where it is in SQLite; names nobody, and is unreadable without the keys
    backup.json  what it is; written last, so that a backup without it is none
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from grapheraser.errors import CorruptRunError, NothingToForgetError, ServiceError, StoreError
from grapheraser.graph import Graph
from grapheraser.graph.requests import SKIP
from grapheraser.links.loading import load_eraser
from grapheraser.service.database import Database
from grapheraser.service.database.tables import BATCHES, PARTS, REQUESTS, RUNS, SUBJECTS
from grapheraser.service.items import EDGE, FEATURES, LABEL, NODE, Item, as_requests
from grapheraser.service.queue import Queue, utc_now
from grapheraser.service.requests import State, spelled
from grapheraser.service.running import database_beside, service_keys
from grapheraser.service.serving import Model
from grapheraser.service.tombstones import Tombstones
from grapheraser.service.vault import SECRET, Vault
from grapheraser.store import check_target, load_receipts, read_text, write_text
from grapheraser.store.files import make_folder
from grapheraser.store.keys import KeyFolder

_RUN, _QUEUE, _NOTE = "run", "queue.db", "backup.json"


@dataclass(frozen=True)
class Backup:
    """What a backup is of.

    Attributes:
        run: name of the run's log.
        size: of the log.
        made: when, in UTC.
        queue: whether the queue is in it.
    """

    run: str
    size: int
    made: str
    queue: bool

    @classmethod
    def read(cls, folder: Path) -> Backup:
        """Read it back from the folder of a backup."""
        try:
            found = cls(**json.loads(read_text(folder / _NOTE)))
        except (ValueError, TypeError) as error:
            raise CorruptRunError(f"{folder}: not a backup, or an unfinished one.") from error
        _, ends = load_receipts(folder / _RUN)
        if (ends.run, ends.receipts) != (found.run, found.size):
            raise CorruptRunError(f"{folder}: the run in it is not the one that was backed up.")
        return found


@dataclass(frozen=True)
class Restored:
    """What a restore did.

    Attributes:
        backup: what was restored.
        run: name of the log of the restored run.
        erased: how many nodes, edges, feature rows and labels were erased once more.
    """

    backup: Backup
    run: str
    erased: int


def make_backup(
    path: Path, out: Path, *, database: str = "", own: Mapping[str, Any] | None = None
) -> Backup:
    """Copy a run, and its queue where that is in SQLite, to a new folder; nothing has to stop.

    Args:
        path: the folder of the run.
        out: the folder of the backup; must not exist, or be empty.
        database: URL of the database; empty: the one beside the run.
        own: parts of the user's own, by argument of `GraphEraser.load`.
    """
    if (out / _NOTE).exists() or (out / _RUN).exists():
        raise StoreError(f"{out}: there is a backup already.", hint="choose another folder.")
    make_folder(out)
    queue = Database.opened(database or database_beside(path))
    # The queue first: what it says is done by then is erased in the run that is copied.
    if queue.is_sqlite:
        queue.copy_to(out / _QUEUE)
    queue.dispose()
    load_eraser(path, **(own or {})).save(out / _RUN)
    _, ends = load_receipts(out / _RUN)
    backup = Backup(ends.run, ends.receipts, spelled(utc_now()), queue.is_sqlite)
    write_text(out / _NOTE, json.dumps(asdict(backup), indent=2) + "\n")
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

    The run gets a log of its own, and takes over all requests. Stop the service first.

    Args:
        folder: of the backup.
        path: where to write the run.
        database: URL of the database; empty: the one beside the run.
        own: parts of the user's own, by argument of `GraphEraser.load`.
        keys: the folder of the keys; None: ``GRAPHERASER_KEYS``.
        replace: whether to overwrite a run that is there.
        lost_database: go on with the queue in the backup, or an empty one where it has none. What
            was accepted since is not known; what was erased, the tombstones beside the keys say.
        reached: is told of every step; for tests.
    """
    backup, keys = Backup.read(folder), keys or service_keys()
    if not keys.has_secret(SECRET):
        raise ServiceError(
            f"{keys.path}: these are not the keys of the service, and without them nobody can tell "
            "what was erased since.",
            hint="set GRAPHERASER_KEYS to the folder that the service was run with.",
        )
    check_target(path, replace=replace)
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
    """The queue of the last run that was restored from this one; itself where none was.

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
    """The database of the run's queue; where it is lost, the one of the backup, or an empty one."""
    database = Database(url)
    file = Path(database.url.database or "") if database.is_sqlite else None
    if lost:
        _replaced(database, file, folder / _QUEUE if backup.queue else None)
    elif file is not None and not file.exists():
        raise ServiceError(
            f"{file}: the database is not there, and only it knows what was accepted since.",
            hint="name it with --database, or use --lost-database if there is none left.",
        )
    database.migrate()
    is_known = _knows(database, backup.run)
    if lost and not backup.queue and is_known:
        raise StoreError("the database knows the run in this backup: it is not lost.")
    if not lost and not is_known:
        raise ServiceError(
            "the database knows nothing of the run in this backup.",
            hint="name another with --database, or use --lost-database if there is none left.",
        )
    return database


def _replaced(database: Database, file: Path | None, queue: Path | None) -> None:
    """Put the queue of a backup, if it has one, in the place of a database that is lost."""
    if file is not None and file.exists():
        raise StoreError(f"{file}: the database is there: it is not lost.")
    if file is not None:
        make_folder(file.parent)
    if queue is not None and file is None:
        raise ServiceError(
            "the queue in this backup is SQLite's, and the database is not.",
            hint="name a new file: --database sqlite:///PATH.",
        )
    if queue is not None and file is not None:
        Database(f"sqlite:///{queue.absolute()}").copy_to(file)


def _knows(database: Database, run: str) -> bool:
    with database.reading() as connection:
        query = sa.select(RUNS.c.name).where(RUNS.c.name == run)
        return connection.execute(query).first() is not None


def _erase_once_more(model: Model, tombstones: Tombstones, backup: Backup) -> int:
    """Erase from a model what was erased since the backup; returns how much."""
    if gone := tombstones.unreadable(after=backup.size):
        raise ServiceError(
            f"the key of tombstones {gone[0]} was destroyed: nobody can tell any more what was "
            "erased since this backup.",
            hint="restore a later backup. Keep backups no longer than `backup_days`.",
        )
    found = tombstones.among(_items(model.graph_), after=backup.size)
    if found:
        try:
            model.unlearn(as_requests(found), missing=SKIP)
        except NothingToForgetError:
            return 0
    return len(found)


def _items(graph: Graph) -> Iterator[Item]:
    """Everything of a graph that can be forgotten."""
    for node in graph.ids.tolist():
        for kind in (NODE, FEATURES, LABEL):
            yield Item(kind, (node,))
    for edge in graph.edges.tolist():
        yield Item(EDGE, tuple(edge))
