"""The subject map: which nodes, edges, feature rows and labels belong to a person.

An identity is kept only as a keyed hash, and what belongs to it is sealed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from grapheraser.errors import ParameterError, UnknownSubjectError
from grapheraser.service.database.tables import SUBJECTS
from grapheraser.service.items import NODE, Item, items_of, spelled
from grapheraser.service.requests import Asked

if TYPE_CHECKING:
    from sqlalchemy.engine import Connection

    from grapheraser.service.queue import Queue

_AT_ONCE = 500  # values in one statement


class Subjects:
    """The subject map of the run of a queue."""

    def __init__(self, queue: Queue) -> None:
        self._queue, self._database = queue, queue.database
        self._vault = queue.vault
        self._mine = SUBJECTS.c.run == queue.run

    def load(self, entries: Iterable[Asked]) -> int:
        """Add what belongs to subjects; returns how many items are new.

        Args:
            entries: each with a subject and what belongs to it. A subject may come several times,
                and an item may belong to several subjects.
        """
        rows = [row for entry in entries for row in self._rows(entry)]
        with self._database.writing() as connection:
            before = self._count(connection)
            for start in range(0, len(rows), _AT_ONCE):
                part = rows[start : start + _AT_ONCE]
                connection.execute(self._queue.insert_new(SUBJECTS), part)
            return self._count(connection) - before

    def _rows(self, entry: Asked) -> list[dict[str, Any]]:
        if entry.subject is None or entry.changes:
            raise ParameterError(
                "an entry of the subject map has a subject, and nodes, edges, features or labels."
            )
        items = items_of(entry)
        if not items:
            raise ParameterError("an entry of the subject map names nothing but the subject.")
        subject = self._subject(entry.subject)
        return [
            {
                "run": self._queue.run,
                "subject": subject,
                "item": self._mark(item),
                "node": self._mark(Item(NODE, item.ids[:1])),
                "other": self._mark(Item(NODE, item.ids[1:])) if len(item.ids) > 1 else None,
                "sealed": self._vault.seal(spelled(item), subject),
            }
            for item in items
        ]

    def find(self, identity: str) -> Sequence[Item]:
        """What belongs to a subject, sorted; an `UnknownSubjectError` where nothing does."""
        with self._database.reading() as connection:
            return self.known(connection, identity)

    def known(self, connection: Connection, identity: str) -> Sequence[Item]:
        """The same, within a transaction."""
        items = self.found(connection, identity)
        if not items:
            raise UnknownSubjectError(
                "the subject map has nothing of this subject.",
                hint="load it, or name the nodes or edges themselves.",
            )
        return items

    def found(self, connection: Connection, identity: str) -> Sequence[Item]:
        """What belongs to a subject, sorted; nothing where it is not known."""
        subject = self._subject(identity)
        query = sa.select(SUBJECTS.c.sealed).where(self._mine, SUBJECTS.c.subject == subject)
        opened = (self._vault.unseal(row, subject) for row in connection.execute(query).scalars())
        return sorted(Item(kind, tuple(ids)) for kind, *ids in opened)

    def forget(self, identity: str) -> int:
        """Forget what belongs to a subject; returns how many items. The run stays as it is."""
        subject = self._subject(identity)
        with self._database.writing() as connection:
            gone = connection.execute(
                sa.delete(SUBJECTS).where(self._mine, SUBJECTS.c.subject == subject)
            ).rowcount
        self._database.purge()
        return gone

    def forget_items(self, connection: Connection, items: Iterable[Item]) -> None:
        """Forget whom these items belong to; with a node goes all that is about it."""
        marks = sorted({(item.kind == NODE, self._mark(item)) for item in items})
        for start in range(0, len(marks), _AT_ONCE):
            part = marks[start : start + _AT_ONCE]
            nodes = [mark for is_node, mark in part if is_node]
            named = SUBJECTS.c.item.in_([mark for _, mark in part])
            about = SUBJECTS.c.node.in_(nodes) | SUBJECTS.c.other.in_(nodes)
            connection.execute(sa.delete(SUBJECTS).where(self._mine, named | about))

    def count(self) -> int:
        """How many items the map holds."""
        with self._database.reading() as connection:
            return self._count(connection)

    def _count(self, connection: Connection) -> int:
        query = sa.select(sa.func.count()).select_from(SUBJECTS).where(self._mine)
        return int(connection.execute(query).scalar_one())

    def _subject(self, identity: str) -> str:
        return self._vault.mark("subject", identity)

    def _mark(self, item: Item) -> str:
        return self._vault.mark("item", spelled(item))
