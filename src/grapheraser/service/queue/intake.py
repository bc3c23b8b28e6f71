"""Group commit: requests that arrive while others are being written share the next transaction.

A commit waits for the disk, whether it holds one request or a hundred. They share nothing else:
what can be refused is refused before it is gathered, and where a shared transaction fails, each
request is written alone, so that an error is told to whom it belongs.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

import sqlalchemy as sa

from grapheraser.errors import ConflictError, GraphEraserError, ParameterError
from grapheraser.service.database.tables import REQUESTS
from grapheraser.service.queue.requests import Request, RequestContent, State

if TYPE_CHECKING:
    from grapheraser.service.queue.queue import Queue

_MAX_REQUESTS = 200  # in one transaction
_ALONE_SECONDS = 30.0  # for which requests of a transaction that failed are written one by one


class Submitted(NamedTuple):
    """A request in the queue; ``is_new`` is False where its idempotency key was known."""

    request: Request
    is_new: bool


@dataclass(frozen=True)
class Submission:
    """A request on its way into the queue; see `Queue.submit`."""

    content: RequestContent
    key: str | None = None
    deadline: datetime | None = None
    owner: str | None = None
    known: bool = True


class _Ticket(NamedTuple):
    """A submission with its row, and the future that is done once the row is on the disk."""

    submission: Submission
    row: dict[str, Any]
    written: Future[Submitted]


class _Failed(NamedTuple):
    """The error of a transaction, which need not be that of each request in it."""

    error: BaseException


class Intake:
    """Accepts requests into a queue. One thread writes them, so that commits are shared."""

    def __init__(self, queue: Queue) -> None:
        self._queue, self._database = queue, queue.database
        self._lock = threading.Lock()
        self._waiting: list[_Ticket] = []
        self._writer = ThreadPoolExecutor(1, "grapheraser-intake")

    def submit(self, submission: Submission) -> Future[Submitted]:
        """Put a submission into the next transaction. Cancelling the future doesn't undo that."""
        ticket = self._ticket(submission)
        with self._lock:
            self._waiting.append(ticket)
        self._writer.submit(self._write_waiting)
        return ticket.written

    def _write_waiting(self) -> None:
        with self._lock:
            taken = self._waiting[:_MAX_REQUESTS]
            del self._waiting[: len(taken)]
        if taken:  # else an earlier transaction held them
            self._write(taken)

    def _write(self, tickets: Sequence[_Ticket]) -> None:
        outcomes = self._outcomes(tickets)
        if len(tickets) > 1 and isinstance(outcomes[0], _Failed):
            # One of them may be the reason. Where it is the database, trying ends in a while.
            until = time.monotonic() + _ALONE_SECONDS
            for place, ticket in enumerate(tickets):
                if time.monotonic() < until:
                    outcomes[place] = self._outcomes([ticket])[0]
        self._queue.woken.set()
        for ticket, outcome in zip(tickets, outcomes, strict=True):
            if isinstance(outcome, Submitted):
                ticket.written.set_result(outcome)
            else:
                ticket.written.set_exception(
                    outcome.error if isinstance(outcome, _Failed) else outcome
                )

    def _outcomes(self, tickets: Sequence[_Ticket]) -> list[Submitted | BaseException | _Failed]:
        """Write requests in one transaction; where it fails, nothing was written, for nobody."""
        try:
            with self._database.writing() as connection:
                return [*self._accept(connection, tickets)]
        except BaseException as error:
            return [_Failed(error)] * len(tickets)

    def _accept(
        self, connection: sa.Connection, tickets: Sequence[_Ticket]
    ) -> Sequence[Submitted | GraphEraserError]:
        """Write what is new; return the outcome of each. A refusal concerns one request alone."""
        marks = sorted({t.row["idempotency"] for t in tickets if t.row["idempotency"]})
        there = self._repeated(connection, marks)
        names: list[str | GraphEraserError] = []
        new: dict[str, dict[str, Any]] = {}
        for submission, row, _ in tickets:
            mark, subject = row["idempotency"], submission.content.subject
            try:
                if mark in there:
                    _check_same(there[mark], row)
                    names.append(str(there[mark]["id"]))
                    continue
                if submission.known and subject is not None:
                    self._queue.subjects.known(connection, subject)
            except GraphEraserError as error:
                names.append(error)
                continue
            names.append(row["id"])
            new[row["id"]] = row
            if mark is not None:
                there[mark] = row
        requests = self._insert(connection, new)
        old = {name for name in names if isinstance(name, str)} - new.keys()
        requests |= self._queue.read(connection, sorted(old)) if old else {}
        return [
            Submitted(requests[name], name == ticket.row["id"]) if isinstance(name, str) else name
            for name, ticket in zip(names, tickets, strict=True)
        ]

    def _insert(
        self, connection: sa.Connection, new: Mapping[str, dict[str, Any]]
    ) -> dict[str, Request]:
        """Write new requests, each with its first event."""
        if not new:
            return {}
        insert = sa.insert(REQUESTS).returning(REQUESTS.c.id, REQUESTS.c.number)
        numbers = {row.id: row.number for row in connection.execute(insert, list(new.values()))}
        self._queue.record(connection, list(new), State.RECEIVED, is_new=True)
        return {
            name: Request.from_row({**row, "number": numbers[name]}) for name, row in new.items()
        }

    def _repeated(self, connection: sa.Connection, marks: Sequence[str]) -> dict[str, Any]:
        """Return the requests that were submitted with these keys, by the hash of the key."""
        if not self._database.is_sqlite:  # two at once: the second waits for the first
            for mark in marks:
                number = int(mark[:15], 16)
                connection.execute(sa.select(sa.func.pg_advisory_xact_lock(number)))
        if not marks:
            return {}
        columns = (REQUESTS.c.idempotency, REQUESTS.c.id, REQUESTS.c.mark, REQUESTS.c.counts)
        query = sa.select(*columns).where(
            REQUESTS.c.run == self._queue.run, REQUESTS.c.idempotency.in_(marks)
        )
        return {row["idempotency"]: row for row in connection.execute(query).mappings()}

    def _ticket(self, submission: Submission) -> _Ticket:
        """Seal what a submission names, into the row that is to be written."""
        vault, deadline = self._queue.vault, submission.deadline
        now, name, content = self._queue.clock(), secrets.token_hex(16), submission.content
        if deadline is not None and deadline.tzinfo is None:
            raise ParameterError.of("deadline", "Queue.submit", "a time with a zone", deadline)
        owner, key = submission.owner, submission.key
        row = {
            "id": name,
            "run": self._queue.run,
            "kind": content.kind,
            "owner": owner,
            "sealed": vault.seal(content.to_dict(), name),
            "mark": vault.mark("asked", content.to_dict()),
            "idempotency": key and vault.mark("idempotency", [owner, key]),
            "counts": content.counts,
            "state": State.RECEIVED.value,
            "received": now.timestamp(),
            "deadline": (deadline or now + self._queue.deadline).timestamp(),
        }
        try:
            Request.from_row({**row, "number": 0})  # as it is read back, from what is stored
        except (ValueError, OverflowError, OSError):
            wanted = "a time between the years 1 and 9999, in UTC"
            raise ParameterError.of("deadline", "Queue.submit", wanted, str(deadline)) from None
        written: Future[Submitted] = Future()
        written.set_running_or_notify_cancel()  # hanging up does not take back what was sent
        return _Ticket(submission, row, written)


def _check_same(known: Mapping[str, Any], given: Mapping[str, Any]) -> None:
    """Refuse another request under the same key.

    The content of a completed one is destroyed: only its counts are left to compare.
    """
    if known["mark"] not in (None, given["mark"]) or known["counts"] != given["counts"]:
        raise ConflictError(
            "this idempotency key was used for another request.",
            hint="repeat the request as it was, or choose another key.",
        )
