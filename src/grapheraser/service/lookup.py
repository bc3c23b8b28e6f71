"""What a queue says of the requests about a run: nothing here changes any of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from grapheraser.checks import whole
from grapheraser.errors import ServiceError, UnknownRequestError
from grapheraser.service.database.tables import EVENTS, PARTS, REQUESTS, RUNS
from grapheraser.service.requests import OPEN, Event, Page, Request, State, when

if TYPE_CHECKING:
    from sqlalchemy.engine import Connection

    from grapheraser.service.database import Database
    from grapheraser.service.vault import Vault

_MOST_LISTED = 1000


class Lookup:
    """The requests about one run, to look at.

    Args:
        database: where they are kept.
        run: name of the run's log.
        vault: hides what they name.
        clock: says what time it is.
    """

    def __init__(
        self, database: Database, run: str, vault: Vault, clock: Callable[[], datetime]
    ) -> None:
        self.database, self.run, self.vault, self.clock = database, run, vault, clock

    # -- requests -----------------------------------------------------------------------------

    def find(self, key: str, owner: str | None = None) -> Request | None:
        """The request that was submitted with an idempotency key, if one was."""
        mark = self.vault.mark("idempotency", [owner, key])
        query = _select().where(REQUESTS.c.run == self.run, REQUESTS.c.idempotency == mark)
        with self.database.reading() as connection:
            row = connection.execute(query).first()
        return None if row is None else _request(row)

    def get(self, name: str, owner: str | None = None) -> Request:
        """One request by its id; with ``owner``, only one of theirs."""
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
        """Requests, newest first.

        Args:
            states: only those in one of these.
            kind: only ``erase``, or only ``update``.
            owner: only those that they submitted.
            late: only open ones whose deadline has passed.
            cursor: of the page before.
            limit: how many at the most.
        """
        limit = whole("limit", "Queue.list", limit, 1, _MOST_LISTED)
        chosen = [REQUESTS.c.run == self.run]
        if states is not None:
            chosen.append(REQUESTS.c.state.in_([State(state).value for state in states]))
        if kind is not None:
            chosen.append(REQUESTS.c.kind == kind)
        if owner is not None:
            chosen.append(REQUESTS.c.owner == owner)
        if late:
            chosen.append(REQUESTS.c.state.in_([state.value for state in OPEN]))
            chosen.append(REQUESTS.c.deadline < self.clock().timestamp())
        if cursor is not None:
            chosen.append(REQUESTS.c.number < cursor)
        query = _select().where(*chosen).order_by(REQUESTS.c.number.desc()).limit(limit + 1)
        with self.database.reading() as connection:
            found = [_request(row) for row in connection.execute(query)]
        more = len(found) > limit
        found = found[:limit]
        return Page(tuple(found), found[-1].number if more else None)

    def counts(self) -> dict[State, int]:
        """How many requests there are in each state."""
        query = sa.select(REQUESTS.c.state, sa.func.count()).where(REQUESTS.c.run == self.run)
        with self.database.reading() as connection:
            rows = connection.execute(query.group_by(REQUESTS.c.state)).all()
        return dict.fromkeys(State, 0) | {State(state): count for state, count in rows}

    def due(self, within: timedelta = timedelta(0)) -> Sequence[Request]:
        """Open requests whose deadline has passed, or will within so long; most urgent first."""
        until = (self.clock() + within).timestamp()
        chosen = [
            REQUESTS.c.run == self.run,
            REQUESTS.c.state.in_([state.value for state in OPEN]),
            REQUESTS.c.deadline <= until,
        ]
        query = _select().where(*chosen).order_by(REQUESTS.c.deadline).limit(_MOST_LISTED)
        with self.database.reading() as connection:
            return [_request(row) for row in connection.execute(query)]

    def read(self, connection: Connection, names: Sequence[str]) -> dict[str, Request]:
        """Requests by id, within a transaction."""
        query = _select().where(REQUESTS.c.run == self.run, REQUESTS.c.id.in_(names))
        return {row.id: _request(row) for row in connection.execute(query)}

    # -- events -------------------------------------------------------------------------------

    def events_after(
        self, number: int = 0, limit: int = 1000, owner: str | None = None
    ) -> Sequence[Event]:
        """Transitions of this run's requests that follow the one with this number, in order.

        Args:
            number: of the last that is known.
            limit: how many at the most.
            owner: only of requests that they submitted; None: anybody's.
        """
        chosen = (EVENTS.c.run == self.run) & (EVENTS.c.number > number)
        if owner is not None:
            theirs = sa.select(REQUESTS.c.id).where(REQUESTS.c.owner == owner)
            chosen &= EVENTS.c.request.in_(theirs)
        return self._events(chosen, limit)

    def history(self, name: str) -> Sequence[Event]:
        """All transitions of one request, in order."""
        self.get(name)
        return self._events(EVENTS.c.request == name, None)

    def last_event(self) -> int:
        """The number of the last transition, 0 where there is none."""
        query = sa.select(sa.func.max(EVENTS.c.number)).where(EVENTS.c.run == self.run)
        with self.database.reading() as connection:
            return int(connection.execute(query).scalar() or 0)

    def _events(self, chosen: sa.ColumnElement[bool], limit: int | None) -> Sequence[Event]:
        query = sa.select(EVENTS).where(chosen).order_by(EVENTS.c.number).limit(limit)
        with self.database.reading() as connection:
            rows = connection.execute(query).mappings().all()
        return [
            Event(**{**row, "state": State(row["state"]), "at": when(row["at"])}) for row in rows
        ]

    # -- restored runs -------------------------------------------------------------------------

    def check_current(self) -> None:
        """Refuse a run whose requests have gone to one that was restored from it."""
        if successors := self.successors():
            raise replaced_by(successors[-1])

    def successors(self) -> Sequence[str]:
        """Names of the runs that were restored from this one, and from those, oldest first."""
        with self.database.reading() as connection:
            rows = connection.execute(sa.select(RUNS.c.succeeds, RUNS.c.name)).all()
        following, found = dict(map(tuple, rows)), []
        name = following.get(self.run)
        while name is not None:
            found.append(name)
            name = following.get(name)
        return found

    def predecessors(self, connection: Connection) -> Sequence[str]:
        """Names of the runs that this one was restored from, oldest first."""
        rows = connection.execute(sa.select(RUNS.c.name, RUNS.c.succeeds)).all()
        before, found = dict(map(tuple, rows)), list[str]()
        name = before.get(self.run)
        while name is not None:
            found.insert(0, name)
            name = before.get(name)
        return found


def _select() -> sa.Select[Any]:
    ready = sa.select(sa.func.count()).where(PARTS.c.request == REQUESTS.c.id)
    hidden = {"sealed", "mark", "idempotency"}
    shown = [column for column in REQUESTS.c if column.name not in hidden]
    return sa.select(*shown, ready.scalar_subquery().label("receipts"))


def _request(row: Any) -> Request:
    found = dict(row._mapping)
    found["state"] = state = State(found["state"])
    for name in ("received", "deadline", "retry_at", "completed"):
        found[name] = None if found[name] is None else when(found[name])
    if state is not State.COMPLETED:
        found["receipts"] = 0
    return Request(**found)


def replaced_by(successor: str) -> ServiceError:
    """What to raise for a run whose requests another one has taken over."""
    return ServiceError(
        f"this run was replaced by one that was restored from it, {successor}.",
        hint="serve that one; if its restore was interrupted, run `grapheraser restore`.",
    )


def unknown_request(name: str) -> UnknownRequestError:
    """What to raise for an id that no request has, or one of somebody else's."""
    return UnknownRequestError(
        f"there is no request {str(name)[:64]!r}.", hint="see `grapheraser requests list`."
    )
