"""The queue of a run: submit, cancel and retry requests, and collect their receipts."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from grapheraser.errors import ConflictError
from grapheraser.service.database.tables import EVENTS, PARTS, REQUESTS, RUNS
from grapheraser.service.logs import log_transition
from grapheraser.service.queue.intake import Intake, Submission, Submitted
from grapheraser.service.queue.lookup import Lookup, replaced_by, unknown_request
from grapheraser.service.queue.requests import PENDING, Request, RequestContent, State
from grapheraser.service.queue.subjects import Subjects

if TYPE_CHECKING:
    from grapheraser.service.database import Database
    from grapheraser.service.queue.vault import Vault

DEADLINE = timedelta(days=30)
GRACE = timedelta(hours=24)
# The columns that hold what a request named, once it is completed or cancelled.
DESTROYED: Mapping[str, None] = {"sealed": None, "mark": None}


def utc_now() -> datetime:
    """Return the time; handed in, so that a test can set it back."""
    return datetime.now(UTC)


class Queue(Lookup):
    """Submits and changes the requests about one run; `Lookup` reads them.

    ``vault`` hides what requests name; ``run`` is the name of the run's log. The order of requests
    does not depend on the clock. A request that names no ``deadline`` has to be completed in that
    time; a receipt can be collected again for ``grace``.
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
        database.change(self.insert_new(RUNS).values(name=run, seen=clock().timestamp()))

    # -- asking -------------------------------------------------------------------------------

    def submit(
        self,
        content: RequestContent,
        *,
        key: str | None = None,
        deadline: datetime | None = None,
        owner: str | None = None,
        known: bool = True,
    ) -> Submitted:
        """Accept a request: when this returns it is on the disk, and will be carried out.

        ``key`` is the client's own for this request: submitting it again gives the request that is
        there, and with another content a `ConflictError`. With ``known`` a subject that the subject
        map does not have is refused; otherwise such a request is completed with nothing to forget.
        """
        return self.intake.submit(Submission(content, key, deadline, owner, known)).result()

    def cancel(self, name: str, owner: str | None = None) -> Request:
        """Cancel a request that waits (and has this owner, if given); destroy what it named."""
        with self.database.writing() as connection:
            found = self._locked(connection, name, owner)
            if found.state not in PENDING:
                raise ConflictError(
                    f"the request is {found.state}: only one that waits can be cancelled."
                )
            request = self._set(connection, name, State.CANCELLED, **DESTROYED)
        self.database.purge()
        return request

    def retry(self, name: str) -> Request:
        """Let a failed request be tried again at once."""
        with self.database.writing() as connection:
            found = self._locked(connection, name, None)
            if found.state is not State.FAILED:
                raise ConflictError(f"the request is {found.state}, not failed.")
            request = self._set(connection, name, State.RECEIVED, reason=None)
        self.woken.set()
        return request

    def _locked(self, connection: sa.Connection, name: str, owner: str | None) -> Request:
        """Read a request that nobody else can change until the commit."""
        row = REQUESTS.c.id == name
        connection.execute(sa.select(REQUESTS.c.id).where(row).with_for_update()).first()
        found = self.read(connection, [name]).get(name)
        if found is None or (owner is not None and found.owner != owner):
            raise unknown_request(name)
        return found

    def _set(self, connection: sa.Connection, name: str, state: State, **values: None) -> Request:
        """Bring a request that waits to a state, and record it."""
        new = {"state": state.value, "retry_at": None, **values}
        connection.execute(sa.update(REQUESTS).where(REQUESTS.c.id == name).values(new))
        self.record(connection, [name], state)
        return self.read(connection, [name])[name]

    # -- collecting ---------------------------------------------------------------------------

    def collect(self, name: str, *, owner: str | None = None) -> Sequence[str]:
        """Return the parts of the receipt that answer a completed request, as JSON.

        They are destroyed a while after they were first collected, or at the time that was set
        when they were made, whichever comes first. ``owner`` None: whoever submitted it.
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
        self.database.change(sa.delete(PARTS).where(PARTS.c.request == name))
        self.database.purge()

    # -- shared with the worker's side ----------------------------------------------------------

    def record(
        self,
        connection: sa.Connection,
        names: Sequence[str],
        state: State,
        *,
        version: int | None = None,
        reason: str | None = None,
        is_new: bool = False,
        **told: Any,
    ) -> None:
        """Add one transition per request to the events, last in a transaction.

        Refuses to write for a run that another one has replaced. Once it is committed it is logged,
        with what else is ``told``.
        """
        self.database.in_order(connection)
        following = sa.select(RUNS.c.name).where(RUNS.c.succeeds == self.run)
        if (successor := connection.execute(following).scalar()) is not None:
            raise replaced_by(successor)
        shared = {"run": self.run, "state": state.value, "version": version, "reason": reason}
        at = self.clock().timestamp()
        if names:
            connection.execute(
                sa.insert(EVENTS), [{**shared, "at": at, "request": name} for name in names]
            )
        told |= {"version": version, "reason": reason}
        self.database.after_commit(
            connection, partial(log_transition, list(names), state, is_new=is_new, **told)
        )

    def insert_new(self, table: sa.Table) -> Any:
        """Make an insertion that leaves existing rows alone."""
        dialect: Any = sqlite if self.database.is_sqlite else postgresql
        return dialect.insert(table).on_conflict_do_nothing()
