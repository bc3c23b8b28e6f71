"""Accepting requests: whoever comes while others are being written shares the next transaction.

A commit waits for the disk, whether it holds one request or a hundred.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

import sqlalchemy as sa

from grapheraser.errors import ConflictError, GraphEraserError, ParameterError
from grapheraser.service.database.tables import REQUESTS
from grapheraser.service.requests import Asked, Request, State, when

if TYPE_CHECKING:
    from sqlalchemy.engine import Connection

    from grapheraser.service.queue import Queue

AT_ONCE = 200  # requests in one transaction


class Submitted(NamedTuple):
    """A request that is in the queue, and whether it came in just now or was there already."""

    request: Request
    is_new: bool


@dataclass(frozen=True)
class Submission:
    """What somebody submits; see `Queue.submit`."""

    asked: Asked
    key: str | None = None
    deadline: datetime | None = None
    owner: str | None = None
    known: bool = True


class Ticket:
    """A submission that waits for its transaction, and what came of it."""

    def __init__(self, row: dict[str, Any], submission: Submission) -> None:
        self.row, self.submission = row, submission
        self.outcome: Submitted | BaseException | None = None

    def result(self) -> Submitted:
        """The request, or the error that came of it."""
        if isinstance(self.outcome, BaseException):
            raise self.outcome
        assert self.outcome is not None
        return self.outcome


class Intake:
    """Accepts requests into a queue."""

    def __init__(self, queue: Queue) -> None:
        self._queue, self._database = queue, queue.database
        self._turn = threading.Lock()  # one transaction at a time
        self._lock = threading.Lock()
        self._waiting: list[Ticket] = []

    def submit(self, submission: Submission) -> Submitted:
        """Accept one request, perhaps together with those of others."""
        ticket = self.ticket(submission)
        with self._lock:
            self._waiting.append(ticket)
        with self._turn:
            while ticket.outcome is None:  # else somebody has taken it along
                with self._lock:
                    taken = self._waiting[:AT_ONCE]
                    del self._waiting[: len(taken)]
                self._write(taken)
        return ticket.result()

    def submit_all(self, submissions: Sequence[Submission]) -> list[Submitted]:
        """Accept all of these requests, or none."""
        tickets = [self.ticket(submission) for submission in submissions]
        with self._turn, self._database.writing() as connection:
            for ticket, outcome in zip(tickets, self._accept(connection, tickets), strict=True):
                ticket.outcome = outcome
            found = [ticket.result() for ticket in tickets]
        self._queue.woken.set()
        return found

    def write(self, tickets: Sequence[Ticket]) -> None:
        """Write tickets that nobody else waits for in one transaction."""
        with self._turn:
            self._write(tickets)

    def _write(self, tickets: Sequence[Ticket]) -> None:
        outcomes: Sequence[Submitted | BaseException]
        try:
            with self._database.writing() as connection:
                outcomes = self._accept(connection, tickets)
        except BaseException as error:  # nothing was written, for nobody
            outcomes = [error] * len(tickets)
        for ticket, outcome in zip(tickets, outcomes, strict=True):
            ticket.outcome = outcome
        self._queue.woken.set()

    def _accept(
        self, connection: Connection, tickets: Sequence[Ticket]
    ) -> Sequence[Submitted | BaseException]:
        """Write what is new; says of each what came of it. A refusal is of one request alone."""
        marks = sorted({t.row["idempotency"] for t in tickets if t.row["idempotency"]})
        there = self._repeated(connection, marks)
        names: list[str | GraphEraserError] = []
        new: dict[str, dict[str, Any]] = {}
        for ticket in tickets:
            row, mark = ticket.row, ticket.row["idempotency"]
            try:
                if mark in there:
                    _check_same(there[mark], row)
                    names.append(str(there[mark]["id"]))
                    continue
                if ticket.submission.known and ticket.submission.asked.subject is not None:
                    self._queue.subjects.known(connection, ticket.submission.asked.subject)
            except GraphEraserError as error:
                names.append(error)
                continue
            names.append(row["id"])
            new[row["id"]] = row
            if mark is not None:
                there[mark] = row
        requests = self._inserted(connection, new)
        old = {name for name in names if isinstance(name, str)} - new.keys()
        requests |= self._queue.read(connection, sorted(old)) if old else {}
        return [
            Submitted(requests[name], name == ticket.row["id"]) if isinstance(name, str) else name
            for name, ticket in zip(names, tickets, strict=True)
        ]

    def _inserted(
        self, connection: Connection, new: Mapping[str, dict[str, Any]]
    ) -> dict[str, Request]:
        """Write new requests, each with its first event."""
        if not new:
            return {}
        insert = sa.insert(REQUESTS).returning(REQUESTS.c.id, REQUESTS.c.number)
        numbers = {row.id: row.number for row in connection.execute(insert, list(new.values()))}
        self._queue.record(connection, list(new), State.RECEIVED)
        return {name: _request(row, numbers[name]) for name, row in new.items()}

    def _repeated(self, connection: Connection, marks: Sequence[str]) -> dict[str, Any]:
        """The requests that were submitted with these keys, by the hash of the key."""
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

    def ticket(self, submission: Submission) -> Ticket:
        """What is to be written of a submission."""
        vault, asked, deadline = self._queue.vault, submission.asked, submission.deadline
        now, name, content = self._queue.clock(), secrets.token_hex(16), asked.to_dict()
        if deadline is not None and deadline.tzinfo is None:
            raise ParameterError.of("deadline", "Queue.submit", "a time with a zone", deadline)
        due = deadline or now + self._queue.deadline
        owner, key = submission.owner, submission.key
        row = {
            "id": name,
            "run": self._queue.run,
            "kind": asked.kind,
            "owner": owner,
            "sealed": vault.seal(content, name),
            "mark": vault.mark("asked", content),
            "idempotency": key and vault.mark("idempotency", [owner, key]),
            "counts": asked.counts,
            "state": State.RECEIVED.value,
            "received": now.timestamp(),
            "deadline": due.timestamp(),
        }
        return Ticket(row, submission)


def _check_same(known: Mapping[str, Any], given: Mapping[str, Any]) -> None:
    """Refuse another request under the same key.

    What a completed one named is destroyed: of that only is known how much it was.
    """
    if known["mark"] not in (None, given["mark"]) or known["counts"] != given["counts"]:
        raise ConflictError(
            "this idempotency key was used for another request.",
            hint="repeat the request as it was, or choose another key.",
        )


def _request(row: Mapping[str, Any], number: int) -> Request:
    """A request as it was just written."""
    return Request(
        number=number,
        id=row["id"],
        run=row["run"],
        kind=row["kind"],
        counts=row["counts"],
        state=State.RECEIVED,
        received=when(row["received"]),
        deadline=when(row["deadline"]),
        owner=row["owner"],
    )
