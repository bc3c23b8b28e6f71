"""The receipts of a run as rows that the database lets nobody change or delete.

The run itself keeps its log. These rows tell when an old copy of the run was put in its place.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import sqlalchemy as sa

from grapheraser.service.database.tables import LOG

if TYPE_CHECKING:
    from sqlalchemy.engine import Connection

    from grapheraser.receipts import Receipt
    from grapheraser.service.queue import Queue


class Log:
    """What the database knows of the log of a queue's run."""

    def __init__(self, queue: Queue) -> None:
        self._queue, self._database = queue, queue.database
        self._mine = LOG.c.run == queue.run

    def size(self) -> int:
        """How many receipts are known."""
        query = sa.select(sa.func.max(LOG.c.size)).where(self._mine)
        with self._database.reading() as connection:
            return int(connection.execute(query).scalar() or 0)

    def digest(self, size: int) -> str | None:
        """The digest of one receipt, where it is known."""
        query = sa.select(LOG.c.digest).where(self._mine, LOG.c.size == size)
        with self._database.reading() as connection:
            return connection.execute(query).scalar()

    def add(self, receipts: Iterable[Receipt]) -> None:
        """Note receipts that somebody else has made."""
        with self._database.writing() as connection:
            self.note(connection, receipts)

    def note(self, connection: Connection, receipts: Iterable[Receipt]) -> None:
        """Note receipts, within a transaction."""
        rows = [
            {
                "run": self._queue.run,
                "size": receipt.sequence,
                "digest": receipt.digest,
                "envelope": receipt.to_json(),
            }
            for receipt in receipts
        ]
        if rows:
            connection.execute(self._queue.insert_new(LOG), rows)
