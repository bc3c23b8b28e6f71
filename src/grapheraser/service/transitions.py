"""How requests get from one state to the next, and what goes with it, within a transaction."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from grapheraser.errors import ServiceError
from grapheraser.service.database.tables import BATCHES, PARTS, REQUESTS
from grapheraser.service.requests import NEXT, State

if TYPE_CHECKING:
    from sqlalchemy.engine import Connection

    from grapheraser.service.claims import Batch
    from grapheraser.service.queue import Queue

DONE, OPEN = "done", "open"
_AT_ONCE = 500  # values in one statement


class Transitions:
    """The transitions of the requests of one queue."""

    def __init__(self, queue: Queue) -> None:
        self._queue, self._database, self._vault = queue, queue.database, queue.vault
        self._mine = REQUESTS.c.run == queue.run

    def _open(self, connection: Connection, name: str) -> None:
        begun = {"id": name, "run": self._queue.run, "state": OPEN}
        row = {**begun, "begun": self._queue.clock().timestamp()}
        connection.execute(sa.insert(BATCHES), [row])

    def _close(self, connection: Connection, batch: Batch) -> None:
        """Close a batch, unless some of its requests are still to be finished."""
        left = sa.select(sa.func.count()).where(
            REQUESTS.c.batch == batch.id, REQUESTS.c.state.not_in([State.COMPLETED.value])
        )
        if not connection.execute(left).scalar():
            done = sa.update(BATCHES).where(BATCHES.c.id == batch.id)
            connection.execute(done.values(state=DONE, receipt=None))

    def _advance(
        self, connection: Connection, names: Sequence[str], state: State, **values: Any
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
        said = {"version": values.get("version"), "reason": values.get("reason")}
        self._queue.record(connection, names, state, **said)

    def _explain(self, connection: Connection, reasons: Mapping[str, str]) -> None:
        by_reason: dict[str, list[str]] = {}
        for name, reason in reasons.items():
            by_reason.setdefault(reason, []).append(name)
        for reason, names in by_reason.items():
            for some in blocks(names):
                chosen = sa.update(REQUESTS).where(REQUESTS.c.id.in_(some))
                connection.execute(chosen.values(reason=reason))

    def _drop_parts(self, connection: Connection, names: Iterable[str]) -> None:
        for some in blocks(list(names)):
            connection.execute(sa.delete(PARTS).where(PARTS.c.request.in_(some)))


def blocks(names: Sequence[str]) -> Iterable[Sequence[str]]:
    """Ids in groups that fit into one statement."""
    return (names[start : start + _AT_ONCE] for start in range(0, len(names), _AT_ONCE))
