"""Tombstones: what was erased, so that a restored backup can erase it once more.

A tombstone is a keyed hash. Without the key nobody can be found by it; with the key one can ask of
a node whether it was erased, as `service.backup` does of every node of a backup. The keys lie
outside run, backup and database, one for every month. One is destroyed when no backup is left that
its tombstones could be needed for.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import sqlalchemy as sa

from grapheraser.service.database.tables import TOMBSTONES
from grapheraser.service.items import Item, spelled
from grapheraser.service.vault import marked

if TYPE_CHECKING:
    from sqlalchemy.engine import Connection

    from grapheraser.service.queue import Queue
    from grapheraser.store.keys import KeyFolder

_PREFIX = "tombstones-"
_MONTH = timedelta(days=31)


class Tombstones:
    """The tombstones of the run of a queue.

    Args:
        queue: of the run.
        keys: the folder of the keys.
    """

    def __init__(self, queue: Queue, keys: KeyFolder) -> None:
        self._queue, self._keys = queue, keys

    def add(self, connection: Connection, size: int, items: Iterable[Item]) -> None:
        """Add one for each item, in the transaction that destroys what named it.

        Args:
            connection: of that transaction.
            size: of the run's log after the erasure.
            items: what was erased.
        """
        name = self._queue.clock().strftime(f"{_PREFIX}%Y-%m")
        key = self._keys.secret(name)
        shared = {"run": self._queue.run, "size": size, "key": name}
        rows = [{**shared, "mark": _mark(key, item)} for item in sorted(items)]
        if rows:
            connection.execute(sa.insert(TOMBSTONES), rows)

    def among(self, items: Iterable[Item], *, after: int) -> list[Item]:
        """Which of these items were erased after the log had this size, or in a run restored since.

        ``after`` is a size of the log of the queue's run.
        """
        by_key = self._marks(after)
        keys = {name: self._keys.secret(name) for name in by_key if self._keys.has_secret(name)}
        return [
            item
            for item in items
            if any(_mark(key, item) in by_key[name] for name, key in keys.items())
        ]

    def unreadable(self, *, after: int) -> Sequence[str]:
        """Names of keys that tombstones were set with since, and that are gone."""
        return sorted(name for name in self._marks(after) if not self._keys.has_secret(name))

    def _marks(self, after: int) -> dict[str, set[str]]:
        since = (TOMBSTONES.c.run == self._queue.run) & (TOMBSTONES.c.size > after)
        chosen = since | TOMBSTONES.c.run.in_(self._queue.successors())
        found: dict[str, set[str]] = {}
        with self._queue.database.reading() as connection:
            query = sa.select(TOMBSTONES.c.key, TOMBSTONES.c.mark).where(chosen)
            for name, mark in connection.execute(query):
                found.setdefault(name, set()).add(mark)
        return found

    def destroy_old_keys(self, kept: timedelta) -> list[str]:
        """Destroy keys of months that ended longer ago than backups are kept; returns their names.

        A backup that was made before such a month can then not be restored any more.
        """
        now, gone = self._queue.clock(), []
        for name in self._keys.secret_names():
            if name.startswith(_PREFIX):
                begin = datetime.strptime(name, f"{_PREFIX}%Y-%m").replace(tzinfo=now.tzinfo)
                if begin + _MONTH + kept < now:
                    self._keys.destroy_secret(name)
                    gone.append(name)
        return gone


def _mark(key: bytes, item: Item) -> str:
    return marked(key, "tombstone", spelled(item))
