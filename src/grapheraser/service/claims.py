"""Which requests are carried out together: those that wait, and those that a crash has left."""

from __future__ import annotations

import secrets
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from grapheraser.service.database.tables import BATCHES, REQUESTS
from grapheraser.service.requests import ERASE, Asked, State, when
from grapheraser.service.transitions import OPEN, Transitions

if TYPE_CHECKING:
    from sqlalchemy.engine import Connection


@dataclass(frozen=True)
class Waiting:
    """What waits to be carried out.

    Attributes:
        count: how many requests.
        deadline: the earliest of theirs.
    """

    count: int
    deadline: datetime


@dataclass(frozen=True)
class Batch:
    """Requests that are carried out together, those about the same run and of one kind.

    Attributes:
        id: chosen at random.
        kind: ``erase`` or ``update``.
        asked: what each asks for, by the request's id, in the order of the queue; nothing of those
            whose data is destroyed already.
        states: of each request, by id.
        size: of the run's log before the batch; None where it was not begun.
        receipt: digest of its receipt, which may be in the log or not; None where there is none.
    """

    id: str
    kind: str
    asked: Mapping[str, Asked]
    states: Mapping[str, State]
    size: int | None = None
    receipt: str | None = None

    def those(self, *states: State) -> list[str]:
        """Ids of the requests in one of these states."""
        return [name for name, state in self.states.items() if state in states]


class Claims(Transitions):
    """Takes requests of one queue, in batches."""

    def waiting(self, resting: Collection[str] = ()) -> Waiting | None:
        """What waits, but for failed requests that rest; None where nothing does."""
        query = sa.select(sa.func.count(), sa.func.min(REQUESTS.c.deadline))
        with self._database.reading() as connection:
            count, deadline = connection.execute(query.where(*self._ready(resting))).one()
        return Waiting(count, when(deadline)) if count else None

    def failed(self) -> dict[str, int]:
        """Failed requests that are to be tried again, with the number of attempts so far."""
        chosen = (REQUESTS.c.state == State.FAILED.value) & REQUESTS.c.retry_at.is_not(None)
        query = sa.select(REQUESTS.c.id, REQUESTS.c.attempts).where(self._mine, chosen)
        with self._database.reading() as connection:
            return {row.id: row.attempts for row in connection.execute(query)}

    def attempts(self, names: Sequence[str]) -> int:
        """How often the first of these requests was begun."""
        query = sa.select(REQUESTS.c.attempts).where(REQUESTS.c.id == names[0])
        with self._database.reading() as connection:
            return int(connection.execute(query).scalar_one())

    def claim(self, most: int, resting: Collection[str] = ()) -> Batch | None:
        """Take the requests that come first and can be carried out together; None if none waits.

        Erasures are taken together up to the first update, an update alone.
        """
        columns = (REQUESTS.c.id, REQUESTS.c.kind, REQUESTS.c.sealed)
        query = sa.select(*columns).where(*self._ready(resting)).order_by(REQUESTS.c.number)
        name = secrets.token_hex(16)
        with self._database.writing() as connection:
            rows = connection.execute(query.limit(most).with_for_update(skip_locked=True)).all()
            rows = _together(rows)
            if not rows:
                return None
            self._open(connection, name)
            names = [row.id for row in rows]
            taken = {"batch": name, "attempts": REQUESTS.c.attempts + 1, "retry_at": None}
            self._advance(connection, names, State.PLANNED, **taken, reason=None)
        asked = {row.id: self._opened(row) for row in rows}
        return Batch(name, rows[0].kind, asked, dict.fromkeys(names, State.PLANNED))

    def halves(self, batch: Batch, names: Sequence[str]) -> list[Batch]:
        """Two batches of these requests of one, which can't be carried out together."""
        made = []
        with self._database.writing() as connection:
            self._drop_parts(connection, names)
            for some in (names[: len(names) // 2], names[len(names) // 2 :]):
                new = secrets.token_hex(16)
                self._open(connection, new)
                self._advance(connection, some, State.PLANNED, batch=new)
                asked = {name: batch.asked[name] for name in some}
                made.append(Batch(new, batch.kind, asked, dict.fromkeys(some, State.PLANNED)))
            self._close(connection, batch)
        return made

    def _ready(self, resting: Collection[str]) -> list[sa.ColumnElement[bool]]:
        failed = (REQUESTS.c.state == State.FAILED.value) & REQUESTS.c.retry_at.is_not(None)
        ready = (REQUESTS.c.state == State.RECEIVED.value) | failed
        return [self._mine, ready, *([REQUESTS.c.id.not_in(resting)] if resting else [])]

    def unfinished(self) -> list[Batch]:
        """Batches that somebody has begun and not finished, oldest first."""
        with self._database.reading() as connection:
            chosen = (BATCHES.c.run == self._queue.run) & (BATCHES.c.state == OPEN)
            query = sa.select(BATCHES).where(chosen).order_by(BATCHES.c.begun, BATCHES.c.id)
            return [self._read(connection, row) for row in connection.execute(query)]

    def _read(self, connection: Connection, batch: Any) -> Batch:
        query = sa.select(REQUESTS).where(REQUESTS.c.batch == batch.id).order_by(REQUESTS.c.number)
        rows = connection.execute(query).all()
        return Batch(
            batch.id,
            rows[0].kind if rows else ERASE,
            {row.id: self._opened(row) for row in rows if row.sealed is not None},
            {row.id: State(row.state) for row in rows},
            batch.size,
            batch.receipt,
        )

    def _opened(self, row: Any) -> Asked:
        return Asked.from_dict(self._vault.unseal(row.sealed, row.id))


def _together(rows: Sequence[Any]) -> Sequence[Any]:
    """The first of these requests that can be one batch."""
    erasures = 0
    while erasures < len(rows) and rows[erasures].kind == ERASE:
        erasures += 1
    return rows[: max(1, erasures)] if rows else rows
