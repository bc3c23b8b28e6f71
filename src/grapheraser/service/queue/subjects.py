"""The subject map: which nodes, edges, feature rows and labels belong to a person.

An identity is kept only as a keyed hash, and what belongs to it is sealed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from grapheraser.errors import ParameterError, UnknownSubjectError
from grapheraser.kinds import NODES, Item
from grapheraser.service.database.engine import blocks
from grapheraser.service.database.tables import SUBJECTS
from grapheraser.service.queue.requests import RequestContent, item_from_json, item_to_json

if TYPE_CHECKING:
    from grapheraser.service.queue.queue import Queue


class Subjects:
    """The subject map of the run of a queue."""

    def __init__(self, queue: Queue) -> None:
        self._queue, self._database = queue, queue.database
        self._vault = queue.vault
        self._mine = SUBJECTS.c.run == queue.run

    def load(self, entries: Iterable[RequestContent]) -> int:
        """Add what belongs to subjects; return how many items are new.

        A subject may come several times, and an item may belong to several subjects.
        """
        rows = [row for entry in entries for row in self._rows(entry)]
        with self._database.writing() as connection:
            before = self._count(connection)
            for part in blocks(rows):
                connection.execute(self._queue.insert_new(SUBJECTS), part)
            return self._count(connection) - before

    def _rows(self, entry: RequestContent) -> list[dict[str, Any]]:
        if entry.subject is None or entry.changes:
            raise ParameterError(
                "an entry of the subject map has a subject, and nodes, edges, features or labels."
            )
        items = entry.items
        if not items:
            raise ParameterError("an entry of the subject map names nothing but the subject.")
        subject = self._subject(entry.subject)
        return [
            {
                "run": self._queue.run,
                "subject": subject,
                "item": self._mark(item),
                "node": self._mark(Item(NODES, item.ids[:1])),
                "other": self._mark(Item(NODES, item.ids[1:])) if item.kind.ends > 1 else None,
                "sealed": self._vault.seal(item_to_json(item), subject),
            }
            for item in items
        ]

    def find(self, identity: str) -> Sequence[Item]:
        """Return what belongs to a subject, sorted; raise `UnknownSubjectError` for nothing."""
        with self._database.reading() as connection:
            return self.known(connection, identity)

    def known(self, connection: sa.Connection, identity: str) -> Sequence[Item]:
        """Do as `find`, within a transaction."""
        items = self.found(connection, identity)
        if not items:
            raise UnknownSubjectError(
                "the subject map has nothing of this subject.",
                hint="load it, or name the nodes or edges themselves.",
            )
        return items

    def found(self, connection: sa.Connection, identity: str) -> Sequence[Item]:
        """Return what belongs to a subject, sorted; nothing where it is not known."""
        subject = self._subject(identity)
        query = sa.select(SUBJECTS.c.sealed).where(self._mine, SUBJECTS.c.subject == subject)
        opened = (self._vault.unseal(row, subject) for row in connection.execute(query).scalars())
        return [item_from_json(item) for item in sorted(opened)]

    def forget(self, identity: str) -> int:
        """Forget what belongs to a subject; returns how many items. The run stays as it is."""
        subject = self._subject(identity)
        whose = (self._mine, SUBJECTS.c.subject == subject)
        gone = self._database.change(sa.delete(SUBJECTS).where(*whose))
        self._database.purge()
        return gone

    def forget_items(self, connection: sa.Connection, items: Iterable[Item]) -> None:
        """Forget whom these items belong to; with a node, all that is about it."""
        marks = sorted({(self._mark(item), self._mark_of_node(item)) for item in items})
        for part in blocks(marks):
            nodes = [node for _, node in part if node]
            named = SUBJECTS.c.item.in_([mark for mark, _ in part])
            about = SUBJECTS.c.node.in_(nodes) | SUBJECTS.c.other.in_(nodes)
            connection.execute(sa.delete(SUBJECTS).where(self._mine, named | about))

    def count(self) -> int:
        """Count the items in the map."""
        with self._database.reading() as connection:
            return self._count(connection)

    def _count(self, connection: sa.Connection) -> int:
        query = sa.select(sa.func.count()).select_from(SUBJECTS).where(self._mine)
        return int(connection.execute(query).scalar_one())

    def _subject(self, identity: str) -> str:
        return self._vault.mark("subject", identity)

    def _mark_of_node(self, item: Item) -> str:
        """Mark the node of a node, user or item; empty for what is none."""
        return self._mark(Item(NODES, item.ids)) if item.kind.is_node else ""

    def _mark(self, item: Item) -> str:
        return self._vault.mark("item", item_to_json(item))
