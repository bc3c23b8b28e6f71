"""The queue of a run: what was asked, how far it has come, and every step on the way."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from grapheraser.checks import whole
from grapheraser.errors import ConflictError, ServiceError, UnknownRequestError
from grapheraser.service.database.tables import EVENTS, PARTS, REQUESTS, RUNS
from grapheraser.service.intake import Intake, Submission, Submitted
from grapheraser.service.requests import (
    OPEN,
    PENDING,
    Asked,
    Event,
    Page,
    Request,
    State,
    when,
)
from grapheraser.service.subjects import Subjects

if TYPE_CHECKING:
    from sqlalchemy.engine import Connection

    from grapheraser.service.database import Database
    from grapheraser.service.vault import Vault

DEADLINE = timedelta(days=30)
GRACE = timedelta(hours=24)
_MOST_LISTED = 1000
# What is left of a request that is completed or cancelled, of what it named.
DESTROYED: Mapping[str, None] = {"sealed": None, "mark": None}


def utc_now() -> datetime:
    """The time; handed in, so that a test can set it back."""
    return datetime.now(UTC)


class Queue:
    """The requests about one run.

    Args:
        database: where they are kept.
        run: name of the run's log.
        vault: hides what they name.
        clock: says what time it is. The order of requests does not depend on it.
        deadline: by when a request is to be completed unless it says so itself.
        grace: for how long a receipt can be collected again.
    """

    def __init__(
        self,
        database: Database,
        run: str,
        vault: Vault,
        *,
        clock: Callable[[], datetime] = utc_now,
        deadline: timedelta = DEADLINE,
        grace: timedelta = GRACE,
    ) -> None:
        self.database, self.run, self.vault = database, run, vault
        self.clock, self.deadline, self._grace = clock, deadline, grace
        self.subjects = Subjects(self)
        self.intake = Intake(self)
        self.woken = threading.Event()  # set when there is something new to do
        with database.writing() as connection:
            seen = {"name": run, "seen": clock().timestamp()}
            connection.execute(self.insert_new(RUNS), [seen])

    # -- asking -------------------------------------------------------------------------------

    def submit(
        self,
        asked: Asked,
        *,
        key: str | None = None,
        deadline: datetime | None = None,
        owner: str | None = None,
        known: bool = True,
    ) -> Submitted:
        """Accept a request: when this returns it is on the disk, and will be carried out.

        Args:
            asked: what it names.
            key: the client's own for this request. Submitting it again gives the request that is
                there; with another content it is a `ConflictError`.
            deadline: until when it has to be completed.
            owner: who submits it.
            known: refuse a subject that the subject map does not have; otherwise such a request
                is accepted, and completed with nothing to forget.
        """
        return self.intake.submit(Submission(asked, key, deadline, owner, known))

    def submit_many(
        self,
        asked: Sequence[Asked],
        *,
        keys: Sequence[str | None] | None = None,
        deadline: datetime | None = None,
        owner: str | None = None,
        known: bool = True,
    ) -> list[Submitted]:
        """Accept all of these requests, or none; see `submit`."""
        keys = [None] * len(asked) if keys is None else keys
        return self.intake.submit_all(
            [
                Submission(one, key, deadline, owner, known)
                for one, key in zip(asked, keys, strict=True)
            ]
        )

    def find(self, key: str, owner: str | None = None) -> Request | None:
        """The request that was submitted with an idempotency key, if one was."""
        mark = self.vault.mark("idempotency", [owner, key])
        query = _select().where(REQUESTS.c.run == self.run, REQUESTS.c.idempotency == mark)
        with self.database.reading() as connection:
            row = connection.execute(query).first()
        return None if row is None else _request(row)

    def cancel(self, name: str, owner: str | None = None) -> Request:
        """Cancel a request that waits; what it named is destroyed.

        Args:
            name: its id.
            owner: whose it has to be; None: anybody's.
        """
        with self.database.writing() as connection:
            found = self._locked(connection, name, owner)
            if found.state not in PENDING:
                raise ConflictError(
                    f"the request is {found.state}: only one that waits can be cancelled."
                )
            done = {"state": State.CANCELLED.value, "retry_at": None, **DESTROYED}
            connection.execute(sa.update(REQUESTS).where(REQUESTS.c.id == name).values(done))
            self.record(connection, [name], State.CANCELLED)
            request = self.read(connection, [name])[name]
        self.database.purge()
        return request

    def retry(self, name: str) -> Request:
        """Let a failed request be tried again at once."""
        with self.database.writing() as connection:
            found = self._locked(connection, name, None)
            if found.state is not State.FAILED:
                raise ConflictError(f"the request is {found.state}, not failed.")
            anew = {"state": State.RECEIVED.value, "retry_at": None, "reason": None}
            connection.execute(sa.update(REQUESTS).where(REQUESTS.c.id == name).values(anew))
            self.record(connection, [name], State.RECEIVED)
            request = self.read(connection, [name])[name]
        self.woken.set()
        return request

    def _locked(self, connection: Connection, name: str, owner: str | None) -> Request:
        """A request that nobody else changes until the commit."""
        row = REQUESTS.c.id == name
        connection.execute(sa.select(REQUESTS.c.id).where(row).with_for_update()).first()
        found = self.read(connection, [name]).get(name)
        if found is None or (owner is not None and found.owner != owner):
            raise _unknown(name)
        return found

    # -- looking ------------------------------------------------------------------------------

    def get(self, name: str, owner: str | None = None) -> Request:
        """One request by its id; with ``owner``, only one of theirs."""
        with self.database.reading() as connection:
            found = self.read(connection, [name]).get(name)
        if found is None or (owner is not None and found.owner != owner):
            raise _unknown(name)
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

    def events_after(self, number: int = 0, limit: int = 1000) -> Sequence[Event]:
        """Transitions of this run's requests that follow the one with this number, in order."""
        chosen = (EVENTS.c.run == self.run) & (EVENTS.c.number > number)
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

    # -- collecting ---------------------------------------------------------------------------

    def collect(self, name: str, *, owner: str | None = None) -> Sequence[str]:
        """The parts of the receipt that answer a completed request, as JSON.

        They are destroyed a while after they were first collected, or at the time that was set
        when they were made, whichever comes first.

        Args:
            name: id of the request.
            owner: whose it has to be; None: anybody's.
        """
        if self.get(name, owner).state is not State.COMPLETED:
            return []
        until = (self.clock() + self._grace).timestamp()
        mine = PARTS.c.request == name
        with self.database.writing() as connection:
            connection.execute(
                sa.update(PARTS).where(mine, PARTS.c.until > until).values(until=until)
            )
            query = sa.select(PARTS.c.sealed).where(mine).order_by(PARTS.c.place)
            sealed = connection.execute(query).scalars().all()
        return [self.vault.unseal(part, name) for part in sealed]

    def destroy_receipt(self, name: str, owner: str | None = None) -> None:
        """Destroy the parts of a request's receipt, collected or not."""
        self.get(name, owner)
        with self.database.writing() as connection:
            connection.execute(sa.delete(PARTS).where(PARTS.c.request == name))
        self.database.purge()

    # -- restored runs -------------------------------------------------------------------------

    def check_current(self) -> None:
        """Refuse a run whose requests have gone to one that was restored from it."""
        if successors := self.successors():
            raise _replaced(successors[-1])

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

    # -- shared with the worker's side ----------------------------------------------------------

    def record(
        self,
        connection: Connection,
        names: Sequence[str],
        state: State,
        *,
        version: int | None = None,
        reason: str | None = None,
    ) -> None:
        """Add one transition per request to the events, last in a transaction.

        Refuses whatever would be written for a run that another one has taken the place of.
        """
        self.database.in_order(connection)
        following = sa.select(RUNS.c.name).where(RUNS.c.succeeds == self.run)
        if (successor := connection.execute(following).scalar()) is not None:
            raise _replaced(successor)
        shared: dict[str, Any] = {
            "run": self.run,
            "state": state.value,
            "at": self.clock().timestamp(),
        }
        shared |= {"version": version, "reason": reason}
        if names:
            connection.execute(sa.insert(EVENTS), [{**shared, "request": name} for name in names])

    def insert_new(self, table: sa.Table) -> Any:
        """An insertion that leaves rows alone that are there already."""
        dialect: Any = sqlite if self.database.is_sqlite else postgresql
        return dialect.insert(table).on_conflict_do_nothing()

    def read(self, connection: Connection, names: Sequence[str]) -> dict[str, Request]:
        """Requests by id, within a transaction."""
        query = _select().where(REQUESTS.c.run == self.run, REQUESTS.c.id.in_(names))
        return {row.id: _request(row) for row in connection.execute(query)}


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


def _replaced(successor: str) -> ServiceError:
    return ServiceError(
        f"this run was replaced by one that was restored from it, {successor}.",
        hint="serve that one; if its restore was interrupted, run `grapheraser restore`.",
    )


def _unknown(name: str) -> UnknownRequestError:
    return UnknownRequestError(
        f"there is no request {str(name)[:64]!r}.", hint="see `grapheraser requests list`."
    )
