"""Read the requests of a run: one, lists, events and a summary. Nothing here changes them."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa
from pydantic import BaseModel, Field

from grapheraser.checks import whole
from grapheraser.errors import ServiceError, UnknownRequestError
from grapheraser.service.database.tables import EVENTS, PARTS, REQUESTS, RUNS
from grapheraser.service.queue.requests import (
    ERASE,
    OPEN,
    Event,
    Page,
    Request,
    State,
    from_timestamp,
)

if TYPE_CHECKING:
    from grapheraser.service.database import Database
    from grapheraser.service.queue.queue import Queue
    from grapheraser.service.queue.vault import Vault

_MAX_LISTED = 1000
_IS_OPEN = REQUESTS.c.state.in_([state.value for state in OPEN])


class Lookup:
    """Reads the requests about one run; see `Queue` for the arguments."""

    def __init__(
        self, database: Database, run: str, vault: Vault, clock: Callable[[], datetime]
    ) -> None:
        self.database, self.run, self.vault, self.clock = database, run, vault, clock
        self._mine = REQUESTS.c.run == run

    # -- requests -----------------------------------------------------------------------------

    def find(self, key: str, owner: str | None = None) -> Request | None:
        """Return the request that was submitted with an idempotency key, if one was."""
        mark = self.vault.mark("idempotency", [owner, key])
        with self.database.reading() as connection:
            return next(iter(self._read(connection, REQUESTS.c.idempotency == mark)), None)

    def get(self, name: str, owner: str | None = None) -> Request:
        """Return a request by its id; with ``owner``, only one of theirs."""
        with self.database.reading() as connection:
            found = self.read(connection, [name]).get(name)
        if found is None or (owner is not None and found.owner != owner):
            raise unknown_request(name)
        return found

    def list(
        self,
        *,
        states: Iterable[State] | None = None,
        kind: str | None = None,
        owner: str | None = None,
        late: bool = False,
        cursor: int | None = None,
        limit: int = 100,
    ) -> Page:
        """List requests, newest first; ``late`` ones are open past their deadline."""
        limit = whole("limit", "Queue.list", limit, 1, _MAX_LISTED)
        chosen: list[sa.ColumnElement[bool]] = []
        if states is not None:
            chosen.append(REQUESTS.c.state.in_([State(state).value for state in states]))
        if kind is not None:
            chosen.append(REQUESTS.c.kind == kind)
        if owner is not None:
            chosen.append(REQUESTS.c.owner == owner)
        if late:
            chosen += [_IS_OPEN, REQUESTS.c.deadline < self.clock().timestamp()]
        if cursor is not None:
            chosen.append(REQUESTS.c.number < cursor)
        newest = REQUESTS.c.number.desc()
        with self.database.reading() as connection:
            found = self._read(connection, *chosen, order=newest, limit=limit + 1)
        more = len(found) > limit
        found = found[:limit]
        return Page(tuple(found), found[-1].number if more else None)

    def counts(self) -> dict[State, int]:
        """Count the requests in each state."""
        query = sa.select(REQUESTS.c.state, sa.func.count()).where(self._mine)
        rows = self.database.rows(query.group_by(REQUESTS.c.state))
        return dict.fromkeys(State, 0) | {State(state): count for state, count in rows}

    def due(self, within: timedelta = timedelta(0)) -> Sequence[Request]:
        """List open requests past their deadline, or ``within`` of it; most urgent first."""
        until = (self.clock() + within).timestamp()
        chosen, order = (_IS_OPEN, REQUESTS.c.deadline <= until), REQUESTS.c.deadline
        with self.database.reading() as connection:
            return self._read(connection, *chosen, order=order, limit=_MAX_LISTED)

    def read(self, connection: sa.Connection, names: Sequence[str]) -> dict[str, Request]:
        """Read requests by id, within a transaction."""
        return {one.id: one for one in self._read(connection, REQUESTS.c.id.in_(names))}

    def _read(
        self, connection: sa.Connection, *chosen: Any, order: Any = None, limit: int | None = None
    ) -> Sequence[Request]:
        query = _select().where(self._mine, *chosen).order_by(order).limit(limit)
        return [Request.from_row(row._mapping) for row in connection.execute(query)]

    # -- events -------------------------------------------------------------------------------

    def events_after(
        self, number: int = 0, limit: int = 1000, owner: str | None = None
    ) -> Sequence[Event]:
        """List the transitions after the one with this number; with ``owner``, only theirs."""
        chosen = (EVENTS.c.run == self.run) & (EVENTS.c.number > number)
        if owner is not None:
            theirs = sa.select(REQUESTS.c.id).where(REQUESTS.c.owner == owner)
            chosen &= EVENTS.c.request.in_(theirs)
        return self._events(chosen, limit)

    def history(self, name: str) -> Sequence[Event]:
        """List all transitions of one request, in order."""
        self.get(name)
        return self._events(EVENTS.c.request == name, None)

    def last_event(self) -> int:
        """Return the number of the last transition, 0 where there is none."""
        query = sa.select(sa.func.max(EVENTS.c.number)).where(EVENTS.c.run == self.run)
        return int(self.database.scalar(query) or 0)

    def _events(self, chosen: sa.ColumnElement[bool], limit: int | None) -> Sequence[Event]:
        query = sa.select(EVENTS).where(chosen).order_by(EVENTS.c.number).limit(limit)
        rows = (row._mapping for row in self.database.rows(query))
        return [
            Event(**{**row, "state": State(row["state"]), "at": from_timestamp(row["at"])})
            for row in rows
        ]

    # -- restored runs -------------------------------------------------------------------------

    def check_current(self) -> None:
        """Refuse a run whose requests have gone to one that was restored from it."""
        if successors := self.successors():
            raise replaced_by(successors[-1])

    def successors(self) -> Sequence[str]:
        """Return the names of all runs restored from this one, or from those, oldest first."""
        with self.database.reading() as connection:
            return self._chain(connection, RUNS.c.succeeds, RUNS.c.name)

    def predecessors(self, connection: sa.Connection) -> Sequence[str]:
        """Return the names of the runs that this one was restored from, oldest first."""
        return self._chain(connection, RUNS.c.name, RUNS.c.succeeds)[::-1]

    def _chain(
        self, connection: sa.Connection, run: sa.Column[Any], other: sa.Column[Any]
    ) -> Sequence[str]:
        """Follow the runs from this one to the other, and so on."""
        following: dict[str, str] = dict(map(tuple, connection.execute(sa.select(run, other))))
        found, name = list[str](), following.get(self.run)
        while name is not None:
            found.append(name)
            name = following.get(name)
        return found


def _select() -> sa.Select[Any]:
    ready = sa.select(sa.func.count()).where(PARTS.c.request == REQUESTS.c.id)
    hidden = {"sealed", "mark", "idempotency"}
    shown = [column for column in REQUESTS.c if column.name not in hidden]
    return sa.select(*shown, ready.scalar_subquery().label("receipts"))


def replaced_by(successor: str) -> ServiceError:
    """Make the error for a run whose requests another one has taken over."""
    return ServiceError(
        f"this run was replaced by one that was restored from it, {successor}.",
        hint="serve that one; if its restore was interrupted, run `grapheraser restore`.",
    )


def unknown_request(name: str) -> UnknownRequestError:
    """Make the error for an id that no request has, or only one of somebody else."""
    return UnknownRequestError(
        f"there is no request {str(name)[:64]!r}.", hint="see `grapheraser requests list`."
    )


# Stages that people speak of; every state is in one.
STAGES: Mapping[str, tuple[State, ...]] = {
    "waiting": (State.RECEIVED,),
    "running": (State.PLANNED, State.RETRAINING, State.PUBLISHED, State.ERASED),
    "failed": (State.FAILED,),
    "completed": (State.COMPLETED,),
    "cancelled": (State.CANCELLED,),
}
_RECENT = 1000  # completed erasures to take the median of


class SummaryView(BaseModel):
    """Requests in a few numbers."""

    stages: dict[str, int] = Field(
        description="How many are waiting, running, failed, completed and cancelled."
    )
    late: int = Field(description="Open requests whose deadline has passed.")
    next_deadline: datetime | None = Field(description="Of the open requests.")
    median_seconds: float | None = Field(
        description="From receiving to completing, of the latest 1,000 erasures."
    )


def summarize(queue: Queue, owner: str | None = None) -> SummaryView:
    """Summarize the requests of a queue; with ``owner``, only theirs."""
    mine = [REQUESTS.c.run == queue.run]
    mine += [] if owner is None else [REQUESTS.c.owner == owner]
    states = sa.select(REQUESTS.c.state, sa.func.count()).where(*mine).group_by(REQUESTS.c.state)
    late = REQUESTS.c.deadline < queue.clock().timestamp()
    taken = sa.select(REQUESTS.c.completed - REQUESTS.c.received)
    done = (REQUESTS.c.completed.is_not(None), REQUESTS.c.kind == ERASE)
    latest = REQUESTS.c.number.desc()
    with queue.database.reading() as connection:
        counts = {State(state): count for state, count in connection.execute(states)}
        overdue = sa.select(sa.func.count()).where(*mine, _IS_OPEN, late)
        first = sa.select(sa.func.min(REQUESTS.c.deadline)).where(*mine, _IS_OPEN)
        number, deadline = connection.scalar(overdue), connection.scalar(first)
        recent = taken.where(*mine, *done).order_by(latest).limit(_RECENT)
        seconds = connection.execute(recent).scalars().all()
    return SummaryView(
        stages={name: sum(counts.get(s, 0) for s in states) for name, states in STAGES.items()},
        late=int(number or 0),
        next_deadline=None if deadline is None else from_timestamp(deadline),
        median_seconds=statistics.median(seconds) if seconds else None,
    )
