"""The queue of a run: what was asked, how far it has come, and every step on the way."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from grapheraser.errors import ConflictError
from grapheraser.service.database.tables import EVENTS, PARTS, REQUESTS, RUNS
from grapheraser.service.intake import Intake, Submission, Submitted
from grapheraser.service.lookup import Lookup, replaced_by, unknown_request
from grapheraser.service.requests import PENDING, Asked, Request, State
from grapheraser.service.subjects import Subjects

if TYPE_CHECKING:
    from sqlalchemy.engine import Connection

    from grapheraser.service.database import Database
    from grapheraser.service.vault import Vault

DEADLINE = timedelta(days=30)
GRACE = timedelta(hours=24)
# What is left of a request that is completed or cancelled, of what it named.
DESTROYED: Mapping[str, None] = {"sealed": None, "mark": None}


def utc_now() -> datetime:
    """The time; handed in, so that a test can set it back."""
    return datetime.now(UTC)


class Queue(Lookup):
    """The requests about one run, to submit and to change; `Lookup` says how far they are.

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
        super().__init__(database, run, vault, clock)
        self.deadline, self._grace = deadline, grace
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
            raise unknown_request(name)
        return found

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
            raise replaced_by(successor)
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
