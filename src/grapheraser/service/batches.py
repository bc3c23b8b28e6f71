"""The worker's side of the queue: requests that are carried out together, step by step.

The states of the requests say how far a batch is. Whoever holds the lock of the run is the only one
who works on its batches, so a batch that is found unfinished then was left by a crash.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from grapheraser.errors import ServiceError
from grapheraser.service.database.tables import BATCHES, PARTS, REQUESTS
from grapheraser.service.items import Item, forgotten_by
from grapheraser.service.log import Log
from grapheraser.service.queue import DESTROYED
from grapheraser.service.requests import ERASE, NEXT, Asked, State, when

if TYPE_CHECKING:
    from sqlalchemy.engine import Connection

    from grapheraser.receipts import Part, Receipt
    from grapheraser.service.queue import Queue
    from grapheraser.service.tombstones import Tombstones

_DONE, _OPEN = "done", "open"
_AT_ONCE = 500  # values in one statement


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


class Batches:
    """The batches of one queue."""

    def __init__(self, queue: Queue, tombstones: Tombstones) -> None:
        self._queue, self._database, self._vault = queue, queue.database, queue.vault
        self._tombstones, self._log = tombstones, Log(queue)
        self._mine = REQUESTS.c.run == queue.run

    # -- taking ---------------------------------------------------------------------------------

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

    def _open(self, connection: Connection, name: str) -> None:
        begun = {"id": name, "run": self._queue.run, "state": _OPEN}
        row = {**begun, "begun": self._queue.clock().timestamp()}
        connection.execute(sa.insert(BATCHES), [row])

    def _ready(self, resting: Collection[str]) -> list[sa.ColumnElement[bool]]:
        failed = (REQUESTS.c.state == State.FAILED.value) & REQUESTS.c.retry_at.is_not(None)
        ready = (REQUESTS.c.state == State.RECEIVED.value) | failed
        return [self._mine, ready, *([REQUESTS.c.id.not_in(resting)] if resting else [])]

    def unfinished(self) -> list[Batch]:
        """Batches that somebody has begun and not finished, oldest first."""
        with self._database.reading() as connection:
            chosen = (BATCHES.c.run == self._queue.run) & (BATCHES.c.state == _OPEN)
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
        for some in _blocks(names):
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

    def _close(self, connection: Connection, batch: Batch) -> None:
        """Close a batch, unless some of its requests are still to be finished."""
        left = sa.select(sa.func.count()).where(
            REQUESTS.c.batch == batch.id, REQUESTS.c.state.not_in([State.COMPLETED.value])
        )
        if not connection.execute(left).scalar():
            done = sa.update(BATCHES).where(BATCHES.c.id == batch.id)
            connection.execute(done.values(state=_DONE, receipt=None))

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

    # -- shared -----------------------------------------------------------------------------------

    def _advance(
        self, connection: Connection, names: Sequence[str], state: State, **values: Any
    ) -> None:
        """Bring requests to a state, each from one that it may follow, and record it."""
        before = [old.value for old, following in NEXT.items() if state in following]
        moved = 0
        for some in _blocks(names):
            chosen = REQUESTS.c.id.in_(some) & REQUESTS.c.state.in_(before) & self._mine
            update = sa.update(REQUESTS).where(chosen).values(state=state.value, **values)
            moved += connection.execute(update).rowcount
        if moved != len(names):
            raise ServiceError(
                f"{len(names) - moved} of {len(names)} requests can't become {state}: somebody "
                "else has changed them."
            )
        said = {"version": values.get("version"), "reason": values.get("reason")}
        self._queue.record(connection, names, state, **said)

    def _explain(self, connection: Connection, reasons: Mapping[str, str]) -> None:
        by_reason: dict[str, list[str]] = {}
        for name, reason in reasons.items():
            by_reason.setdefault(reason, []).append(name)
        for reason, names in by_reason.items():
            for some in _blocks(names):
                chosen = sa.update(REQUESTS).where(REQUESTS.c.id.in_(some))
                connection.execute(chosen.values(reason=reason))

    def _drop_parts(self, connection: Connection, names: Iterable[str]) -> None:
        for some in _blocks(list(names)):
            connection.execute(sa.delete(PARTS).where(PARTS.c.request.in_(some)))


def _together(rows: Sequence[Any]) -> Sequence[Any]:
    """The first of these requests that can be one batch."""
    erasures = 0
    while erasures < len(rows) and rows[erasures].kind == ERASE:
        erasures += 1
    return rows[: max(1, erasures)] if rows else rows


def _blocks(names: Sequence[str]) -> Iterable[Sequence[str]]:
    return (names[start : start + _AT_ONCE] for start in range(0, len(names), _AT_ONCE))
