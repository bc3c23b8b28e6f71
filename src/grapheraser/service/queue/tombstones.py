"""Tombstones: what was erased, so that a restored backup can erase it once more.

A tombstone is a keyed hash. Without the key nobody can be found by it; with the key one can ask of
a node whether it was erased, as `service.worker.backup` does of every node of a backup. The keys
lie outside run, backup and database, one for every month. One is destroyed when no backup is left
that its tombstones could be needed for.

Tombstones are in two places: in the database, and beside their key in a file that only grows. So a
database that is lost together with the run, or brought back from an old dump, brings nobody back.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import sqlalchemy as sa

from grapheraser.kinds import Item
from grapheraser.service.database.tables import TOMBSTONES
from grapheraser.service.queue.requests import item_to_json
from grapheraser.service.queue.vault import marked
from grapheraser.untrusted import MAX_LINES, parse_json

if TYPE_CHECKING:
    from grapheraser.service.queue.queue import Queue
    from grapheraser.store.keys import KeyFolder

_LOG = logging.getLogger(__name__)
_PREFIX = "tombstones-"
_MONTH = timedelta(days=31)


@dataclass(frozen=True)
class Erased:
    """The tombstones of one erasure; ``restored`` names the runs it was restored from."""

    run: str
    restored: Sequence[str]
    size: int
    marks: Sequence[str]

    @classmethod
    def read(cls, line: str) -> Erased | None:
        """Read a line; None where a crash has left a part of one."""
        try:
            found = cls(**parse_json(line, MAX_LINES))
        except (ValueError, TypeError):
            return None
        return found if isinstance(found.size, int) else None

    def is_since(self, run: str, size: int) -> bool:
        """Tell whether it came after a run's log had this size, or in a run restored from it."""
        return run in self.restored or (self.run == run and self.size > size)


class Tombstones:
    """The tombstones of the run of a queue; their keys lie in the folder ``keys``."""

    def __init__(self, queue: Queue, keys: KeyFolder) -> None:
        self._queue, self._keys = queue, keys

    def add(self, connection: sa.Connection, size: int, items: Iterable[Item]) -> None:
        """Add one for each item, in the transaction that destroys what named it.

        They are in the file before the database has them. If the transaction fails, it is done
        again, and the file has them twice. ``size`` is that of the log after the erasure.
        """
        name = self._queue.clock().strftime(f"{_PREFIX}%Y-%m")
        key = self._keys.secret(name)
        marks = sorted(_mark(key, item) for item in items)
        if not marks:
            return
        restored = self._queue.predecessors(connection)
        erased = Erased(self._queue.run, restored, size, marks)
        self._keys.note(name, json.dumps(asdict(erased)))
        shared = {"run": self._queue.run, "size": size, "key": name}
        connection.execute(sa.insert(TOMBSTONES), [{**shared, "mark": mark} for mark in marks])

    def among(self, items: Iterable[Item], *, after: int) -> list[Item]:
        """Return the items erased after the log had this size, or in a run restored since."""
        by_key = self._marks(after)
        keys = {name: self._keys.secret(name) for name in by_key if self._keys.has_secret(name)}
        return [
            item
            for item in items
            if any(_mark(key, item) in by_key[name] for name, key in keys.items())
        ]

    def unreadable(self, *, after: int) -> Sequence[str]:
        """Return the names of keys that tombstones were set with since, and that are gone."""
        return sorted(name for name in self._marks(after) if not self._keys.has_secret(name))

    def restored_since(self) -> Sequence[str]:
        """Return the runs that the files know to be restored from the queue's, oldest first."""
        run, longest = self._queue.run, list[str]()
        for _, erased in self._files():
            line = [*erased.restored, erased.run]
            if run in line and len(line) - line.index(run) > len(longest) + 1:
                longest = line[line.index(run) + 1 :]
        return longest

    def _marks(self, after: int) -> dict[str, set[str]]:
        """Collect the tombstones since, from both places, by the name of their key."""
        since = (TOMBSTONES.c.run == self._queue.run) & (TOMBSTONES.c.size > after)
        chosen = since | TOMBSTONES.c.run.in_(self._queue.successors())
        found: dict[str, set[str]] = {}
        query = sa.select(TOMBSTONES.c.key, TOMBSTONES.c.mark).where(chosen)
        for name, mark in self._queue.database.rows(query):
            found.setdefault(name, set()).add(mark)
        for name, erased in self._files():
            if erased.is_since(self._queue.run, after):
                found.setdefault(name, set()).update(erased.marks)
        return found

    def _files(self) -> Iterator[tuple[str, Erased]]:
        """Read all lines of the files, each with the name of its key."""
        for name, line in self._keys.notes(_PREFIX):
            if (erased := Erased.read(line)) is not None:
                yield name, erased
            else:
                _LOG.warning("%s has a line that was not finished", name)

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
    return marked(key, "tombstone", item_to_json(item))
