"""The worker's side of the queue: requests that are carried out together, step by step.

The states of the requests say how far a batch is. Only the holder of the run's lock works on its
batches, so an unfinished batch found under that lock was left by a crash.
"""

from __future__ import annotations

import secrets
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from grapheraser.errors import ServiceError
from grapheraser.kinds import Item, forgotten_item
from grapheraser.service.database.engine import blocks
from grapheraser.service.database.tables import BATCHES, LOG, PARTS, REQUESTS
from grapheraser.service.queue.queue import DESTROYED
from grapheraser.service.queue.requests import ERASE, NEXT, RequestContent, State, from_timestamp
from grapheraser.untrusted import parse_json

if TYPE_CHECKING:
    from grapheraser.receipts import Part, Receipt
    from grapheraser.service.queue.queue import Queue
    from grapheraser.service.queue.tombstones import Tombstones

_DONE, _OPEN = "done", "open"  # states of a batch


@dataclass(frozen=True)
class Batch:
    """Requests of one kind that are carried out together."""

    id: str  # chosen at random
    kind: str  # ``erase`` or ``update``
    # What each request names, by its id, in the order of the queue; without those whose data is
    # destroyed already.
    contents: Mapping[str, RequestContent]
    states: Mapping[str, State]  # of each request, by id
    size: int | None = None  # of the run's log before the batch; None where it was not begun
    # Digest of its receipt, which may be in the log or not; None where there is none.
    receipt: str | None = None

    def in_state(self, state: State) -> list[str]:
        """Return the ids of the requests in this state."""
        return [name for name, found in self.states.items() if found is state]


class Batches:
    """The batches of one queue."""

    def __init__(self, queue: Queue, tombstones: Tombstones) -> None:
        self._queue, self._database, self._vault = queue, queue.database, queue.vault
        self._tombstones, self._log = tombstones, PublishedLog(queue)
        self._mine = REQUESTS.c.run == queue.run

    # -- claiming -------------------------------------------------------------------------------

    def waiting(self, resting: Collection[str] = ()) -> tuple[int, datetime] | None:
        """Count requests that wait and don't rest, with their first deadline; None: none does."""
        query = sa.select(sa.func.count(), sa.func.min(REQUESTS.c.deadline))
        ((count, deadline),) = self._database.rows(query.where(*self._ready(resting)))
        return (count, from_timestamp(deadline)) if count else None

    def failed(self) -> dict[str, int]:
        """Return failed requests that are to be tried again, with the attempts so far."""
        query = sa.select(REQUESTS.c.id, REQUESTS.c.attempts).where(self._mine, _retried())
        return {row.id: row.attempts for row in self._database.rows(query)}

    def attempts(self, names: Sequence[str]) -> int:
        """Return how often the first of these requests was begun."""
        query = sa.select(REQUESTS.c.attempts).where(REQUESTS.c.id == names[0])
        return int(self._database.scalar(query))

    def claim(self, limit: int, resting: Collection[str] = ()) -> Batch | None:
        """Take the requests that come first and can be carried out together; None if none waits.

        Erasures are taken together up to the first update, an update alone.
        """
        columns = (REQUESTS.c.id, REQUESTS.c.kind, REQUESTS.c.sealed)
        query = sa.select(*columns).where(*self._ready(resting)).order_by(REQUESTS.c.number)
        with self._database.writing() as connection:
            rows = connection.execute(query.limit(limit).with_for_update(skip_locked=True)).all()
            kinds = [row.kind for row in rows]
            erasures = next((n for n, kind in enumerate(kinds) if kind != ERASE), len(rows))
            rows = rows[: max(1, erasures)]
            if not rows:
                return None
            contents = {row.id: self._unsealed(row) for row in rows}
            taken = {"attempts": REQUESTS.c.attempts + 1, "retry_at": None, "reason": None}
            return self._open(connection, rows[0].kind, contents, **taken)

    def halves(self, batch: Batch, names: Sequence[str]) -> list[Batch]:
        """Make two batches of these requests of one, which can't be carried out together."""
        middle = len(names) // 2
        with self._database.writing() as connection:
            self._drop_parts(connection, names)
            made = [
                self._open(connection, batch.kind, {name: batch.contents[name] for name in half})
                for half in (names[:middle], names[middle:])
            ]
            self._close(connection, batch)
        return made

    def unfinished(self) -> list[Batch]:
        """Return the batches that were begun and not finished, oldest first."""
        chosen = (BATCHES.c.run == self._queue.run) & (BATCHES.c.state == _OPEN)
        query = sa.select(BATCHES).where(chosen).order_by(BATCHES.c.begun, BATCHES.c.id)
        with self._database.reading() as connection:
            return [self._read(connection, row) for row in connection.execute(query)]

    def _read(self, connection: sa.Connection, batch: Any) -> Batch:
        query = sa.select(REQUESTS).where(REQUESTS.c.batch == batch.id).order_by(REQUESTS.c.number)
        rows = connection.execute(query).all()
        kind = rows[0].kind if rows else ERASE
        contents = {row.id: self._unsealed(row) for row in rows if row.sealed is not None}
        states = {row.id: State(row.state) for row in rows}
        return Batch(batch.id, kind, contents, states, batch.size, batch.receipt)

    def _ready(self, resting: Collection[str]) -> list[sa.ColumnElement[bool]]:
        ready = (REQUESTS.c.state == State.RECEIVED.value) | _retried()
        return [self._mine, ready, *([REQUESTS.c.id.not_in(resting)] if resting else [])]

    def _unsealed(self, row: Any) -> RequestContent:
        return RequestContent(**self._vault.unseal(row.sealed, row.id))

    # -- step by step -----------------------------------------------------------------------------

    def begin(
        self, batch: Batch, names: Sequence[str], size: int, reasons: Mapping[str, str]
    ) -> None:
        """Note that work on these requests begins, with the size of the run's log before it."""
        with self._database.writing() as connection:
            self._note(connection, batch, size=size, receipt=None)
            self._explain(connection, reasons)
            self._advance(connection, names, State.RETRAINING)

    def seal(
        self, batch: Batch, receipt: Receipt, parts: Mapping[str, Sequence[Part]], until: datetime
    ) -> None:
        """Store the receipt's digest and its parts, by request, before the run is saved.

        They count if the log of the run holds that receipt afterwards.
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
            self._note(connection, batch, receipt=receipt.digest)

    def publish(self, names: Sequence[str], version: int, receipt: Receipt) -> None:
        """Note that the folder of the run has been switched, with the receipt."""
        with self._database.writing() as connection:
            self._log.note(connection, [receipt])
            self._advance(connection, names, State.PUBLISHED, version=version)

    def erase(self, names: Sequence[str], version: int, reasons: Mapping[str, str]) -> None:
        """Destroy what the requests named, here and in the subject map; leave tombstones.

        ``version`` is that of the run without it.
        """
        with self._database.writing() as connection:
            items = self._forgotten(connection, names)
            self._tombstones.add(connection, version, items)
            self._queue.subjects.forget_items(connection, items)
            self._explain(connection, reasons)
            self._advance(connection, names, State.ERASED, version=version, **DESTROYED)

    def _forgotten(self, connection: sa.Connection, names: Sequence[str]) -> set[Item]:
        """Read from the parts of these requests' receipts what was forgotten."""
        found = set()
        for some in blocks(names):
            query = sa.select(PARTS.c.request, PARTS.c.sealed).where(PARTS.c.request.in_(some))
            for row in connection.execute(query):
                part = parse_json(self._vault.unseal(row.sealed, row.request))
                found.add(forgotten_item(part["request"]["about"]))
        return {item for item in found if item is not None}

    def complete(self, batch: Batch) -> bool:
        """Complete what is erased; return False where the database still holds remains of it."""
        chosen = (REQUESTS.c.batch == batch.id) & (REQUESTS.c.state == State.ERASED.value)
        names = [row.id for row in self._database.rows(sa.select(REQUESTS.c.id).where(chosen))]
        if names and not self._database.purge():
            return False
        with self._database.writing() as connection:
            done = self._queue.clock().timestamp()
            self._advance(connection, names, State.COMPLETED, completed=done)
            self._close(connection, batch)
        return True

    def abandon(self, batch: Batch, names: Sequence[str]) -> None:
        """Give requests back to the queue, as if they had never been begun."""
        with self._database.writing() as connection:
            self._drop_parts(connection, names)
            self._advance(connection, names, State.RECEIVED, batch=None)
            self._close(connection, batch)

    def fail(self, batch: Batch, names: Sequence[str], reason: str, wait: timedelta | None) -> None:
        """Say why requests failed, and after what time they are tried again; None: never.

        ``wait`` is for people to see: the worker's own waiting does not depend on the clock.
        """
        at = None if wait is None else (self._queue.clock() + wait).timestamp()
        with self._database.writing() as connection:
            self._drop_parts(connection, names)
            values = {"reason": reason, "retry_at": at, "batch": None}
            self._advance(connection, names, State.FAILED, **values)
            self._close(connection, batch)

    def destroy_expired(self) -> int:
        """Destroy parts of receipts that nobody collected in time; returns how many."""
        now = self._queue.clock().timestamp()
        finished = sa.select(REQUESTS.c.id).where(REQUESTS.c.state == State.COMPLETED.value)
        old = (PARTS.c.until < now) & PARTS.c.request.in_(finished)
        gone = self._database.change(sa.delete(PARTS).where(old))
        if gone:
            self._database.purge()
        return gone

    # -- within a transaction ---------------------------------------------------------------------

    def _open(
        self,
        connection: sa.Connection,
        kind: str,
        contents: Mapping[str, RequestContent],
        **values: Any,
    ) -> Batch:
        """Make a batch of these requests."""
        name, begun = secrets.token_hex(16), self._queue.clock().timestamp()
        row = {"id": name, "run": self._queue.run, "state": _OPEN, "begun": begun}
        connection.execute(sa.insert(BATCHES), [row])
        self._advance(connection, list(contents), State.PLANNED, batch=name, **values)
        return Batch(name, kind, contents, dict.fromkeys(contents, State.PLANNED))

    def _close(self, connection: sa.Connection, batch: Batch) -> None:
        """Close a batch, unless some of its requests are still to be finished."""
        left = sa.select(sa.func.count()).where(
            REQUESTS.c.batch == batch.id, REQUESTS.c.state.not_in([State.COMPLETED.value])
        )
        if not connection.execute(left).scalar():
            self._note(connection, batch, state=_DONE, receipt=None)

    def _note(self, connection: sa.Connection, batch: Batch, **values: Any) -> None:
        connection.execute(sa.update(BATCHES).where(BATCHES.c.id == batch.id).values(values))

    def _advance(
        self, connection: sa.Connection, names: Sequence[str], state: State, **values: Any
    ) -> None:
        """Bring requests to a state, each from one that it may follow, and record it."""
        before = [old.value for old, following in NEXT.items() if state in following]
        moved = 0
        for some in blocks(names):
            chosen = REQUESTS.c.id.in_(some) & REQUESTS.c.state.in_(before) & self._mine
            update = sa.update(REQUESTS).where(chosen).values(state=state.value, **values)
            moved += connection.execute(update).rowcount
        if moved != len(names):
            raise ServiceError(
                f"{len(names) - moved} of {len(names)} requests can't become {state}: somebody "
                "else has changed them."
            )
        said: dict[str, Any] = {n: values.get(n) for n in ("version", "reason", "batch")}
        if (at := values.get("retry_at")) is not None:
            said["retry_at"] = from_timestamp(at).isoformat(timespec="seconds")
        self._queue.record(connection, names, state, **said)

    def _explain(self, connection: sa.Connection, reasons: Mapping[str, str]) -> None:
        for reason in set(reasons.values()):
            for some in blocks([name for name, its in reasons.items() if its == reason]):
                chosen = sa.update(REQUESTS).where(REQUESTS.c.id.in_(some))
                connection.execute(chosen.values(reason=reason))

    def _drop_parts(self, connection: sa.Connection, names: Iterable[str]) -> None:
        for some in blocks(list(names)):
            connection.execute(sa.delete(PARTS).where(PARTS.c.request.in_(some)))


def _retried() -> sa.ColumnElement[bool]:
    """Choose failed requests that are to be tried again."""
    return (REQUESTS.c.state == State.FAILED.value) & REQUESTS.c.retry_at.is_not(None)


class PublishedLog:
    """The receipts of a run as rows that the database lets nobody change or delete.

    The run itself keeps its log. These rows tell when an old copy of the run took its place.
    """

    def __init__(self, queue: Queue) -> None:
        self._queue, self._database = queue, queue.database
        self._mine = LOG.c.run == queue.run

    def latest(self) -> tuple[int, str | None]:
        """Return how many receipts are known, and the digest of the last of them."""
        query = sa.select(LOG.c.size, LOG.c.digest).where(self._mine).order_by(LOG.c.size.desc())
        size, digest = next(iter(self._database.rows(query.limit(1))), (0, None))
        return size, digest

    def note(self, connection: sa.Connection, receipts: Iterable[Receipt]) -> None:
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
