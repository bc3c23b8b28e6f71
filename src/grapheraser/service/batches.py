"""The worker's side of the queue: requests that are carried out together, step by step.

The states of the requests say how far a batch is. Whoever holds the lock of the run is the only one
who works on its batches, so a batch that is found unfinished then was left by a crash.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import sqlalchemy as sa

from grapheraser.service.claims import Batch, Claims
from grapheraser.service.database.tables import BATCHES, PARTS, REQUESTS
from grapheraser.service.items import Item, forgotten_by
from grapheraser.service.log import Log
from grapheraser.service.queue import DESTROYED
from grapheraser.service.requests import State
from grapheraser.service.transitions import blocks

if TYPE_CHECKING:
    from sqlalchemy.engine import Connection

    from grapheraser.receipts import Part, Receipt
    from grapheraser.service.queue import Queue
    from grapheraser.service.tombstones import Tombstones


class Batches(Claims):
    """The batches of one queue: `Claims` takes them, and here they go from step to step."""

    def __init__(self, queue: Queue, tombstones: Tombstones) -> None:
        super().__init__(queue)
        self._tombstones, self._log = tombstones, Log(queue)

    # -- step by step -----------------------------------------------------------------------------

    def begin(
        self, batch: Batch, names: Sequence[str], size: int, reasons: Mapping[str, str]
    ) -> None:
        """Note that the work begins.

        Args:
            batch: the batch.
            names: ids of the requests in it that there is something to do for.
            size: of the run's log before.
            reasons: what there is to know of some of them.
        """
        with self._database.writing() as connection:
            noted = {"size": size, "receipt": None}
            connection.execute(sa.update(BATCHES).where(BATCHES.c.id == batch.id).values(noted))
            self._explain(connection, reasons)
            self._advance(connection, names, State.RETRAINING)

    def seal(
        self,
        batch: Batch,
        receipt: Receipt,
        parts: Mapping[str, Sequence[Part]],
        until: datetime,
    ) -> None:
        """Keep the receipt's digest and its parts, by request, before the run is saved.

        Whether they count is then decided by the run: by whether its log holds that receipt.
        """
        rows = [
            {
                "request": name,
                "place": place,
                "sealed": self._vault.seal(part.to_json(), name),
                "until": until.timestamp(),
            }
            for name, answer in parts.items()
            for place, part in enumerate(answer)
        ]
        with self._database.writing() as connection:
            self._drop_parts(connection, batch.states)
            if rows:
                connection.execute(sa.insert(PARTS), rows)
            noted = {"receipt": receipt.digest}
            connection.execute(sa.update(BATCHES).where(BATCHES.c.id == batch.id).values(noted))

    def publish(self, names: Sequence[str], version: int, receipt: Receipt) -> None:
        """Note that the folder of the run has been switched, with the receipt."""
        with self._database.writing() as connection:
            self._log.note(connection, [receipt])
            self._advance(connection, names, State.PUBLISHED, version=version)

    def erase(self, names: Sequence[str], version: int, reasons: Mapping[str, str]) -> None:
        """Destroy what the requests named, here and in the subject map; leave tombstones.

        Args:
            names: ids of the requests.
            version: of the run without it.
            reasons: what else there is to know of some of them.
        """
        with self._database.writing() as connection:
            items = self._forgotten(connection, names)
            self._tombstones.add(connection, version, items)
            self._queue.subjects.forget_items(connection, items)
            self._explain(connection, reasons)
            self._advance(connection, names, State.ERASED, version=version, **DESTROYED)

    def _forgotten(self, connection: Connection, names: Sequence[str]) -> set[Item]:
        """What the parts of these requests' receipts say was forgotten."""
        found = set()
        for some in blocks(names):
            query = sa.select(PARTS.c.request, PARTS.c.sealed).where(PARTS.c.request.in_(some))
            for row in connection.execute(query):
                part = json.loads(self._vault.unseal(row.sealed, row.request))
                found.add(forgotten_by(part["request"]["about"]))
        return {item for item in found if item is not None}

    def complete(self, batch: Batch) -> bool:
        """Say that nothing is left of what is erased; False where the database is not clean yet."""
        chosen = (REQUESTS.c.batch == batch.id) & (REQUESTS.c.state == State.ERASED.value)
        with self._database.reading() as connection:
            names = list(connection.execute(sa.select(REQUESTS.c.id).where(chosen)).scalars())
        if names and not self._database.purge():
            return False
        with self._database.writing() as connection:
            done = self._queue.clock().timestamp()
            self._advance(connection, names, State.COMPLETED, completed=done)
            self._close(connection, batch)
        return True

    # -- when it can't be done ------------------------------------------------------------------

    def abandon(self, batch: Batch, names: Sequence[str]) -> None:
        """Give requests back to the queue, as if they had never been begun."""
        with self._database.writing() as connection:
            self._drop_parts(connection, names)
            self._advance(connection, names, State.RECEIVED, batch=None)
            self._close(connection, batch)

    def fail(self, batch: Batch, names: Sequence[str], reason: str, wait: timedelta | None) -> None:
        """Say why requests failed, and after what time they are tried again; None: never.

        ``wait`` is for people to see: how long the worker waits does not depend on the clock.
        """
        at = None if wait is None else (self._queue.clock() + wait).timestamp()
        with self._database.writing() as connection:
            self._drop_parts(connection, names)
            values = {"reason": reason, "retry_at": at, "batch": None}
            self._advance(connection, names, State.FAILED, **values)
            self._close(connection, batch)

    # -- keeping house ----------------------------------------------------------------------------

    def destroy_expired(self) -> int:
        """Destroy parts of receipts that nobody collected in time; returns how many."""
        now = self._queue.clock().timestamp()
        finished = sa.select(REQUESTS.c.id).where(REQUESTS.c.state == State.COMPLETED.value)
        old = (PARTS.c.until < now) & PARTS.c.request.in_(finished)
        with self._database.writing() as connection:
            gone = connection.execute(sa.delete(PARTS).where(old)).rowcount
        if gone:
            self._database.purge()
        return gone
