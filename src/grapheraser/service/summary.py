"""How requests fare: how many wait, what is due next, how long forgetting takes."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

import sqlalchemy as sa

from grapheraser.service.database.tables import REQUESTS
from grapheraser.service.requests import ERASE, OPEN, State, when

if TYPE_CHECKING:
    from grapheraser.service.queue import Queue

# Stages, as people speak of them: every state is in one.
STAGES: Mapping[str, tuple[State, ...]] = {
    "waiting": (State.RECEIVED,),
    "running": (State.PLANNED, State.RETRAINING, State.PUBLISHED, State.ERASED),
    "failed": (State.FAILED,),
    "completed": (State.COMPLETED,),
    "cancelled": (State.CANCELLED,),
}
_RECENT = 1000  # completed erasures that the median is of


@dataclass(frozen=True)
class Summary:
    """All requests of a run, or of one owner, in a few numbers.

    Attributes:
        stages: how many there are in each stage.
        late: open ones whose deadline has passed.
        next_deadline: of the open ones; None: none is open.
        median_seconds: from receiving to completing, of the latest erasures; None: none yet.
    """

    stages: Mapping[str, int]
    late: int
    next_deadline: datetime | None
    median_seconds: float | None


def summarize(queue: Queue, owner: str | None = None) -> Summary:
    """The requests of a queue; with ``owner``, only theirs."""
    mine = [REQUESTS.c.run == queue.run]
    mine += [] if owner is None else [REQUESTS.c.owner == owner]
    is_open = REQUESTS.c.state.in_([state.value for state in OPEN])
    states = sa.select(REQUESTS.c.state, sa.func.count()).where(*mine).group_by(REQUESTS.c.state)
    late = REQUESTS.c.deadline < queue.clock().timestamp()
    taken = sa.select(REQUESTS.c.completed - REQUESTS.c.received)
    done = (REQUESTS.c.completed.is_not(None), REQUESTS.c.kind == ERASE)
    latest = REQUESTS.c.number.desc()
    with queue.database.reading() as connection:
        counts = {State(state): count for state, count in connection.execute(states)}
        overdue = sa.select(sa.func.count()).where(*mine, is_open, late)
        first = sa.select(sa.func.min(REQUESTS.c.deadline)).where(*mine, is_open)
        number, deadline = connection.scalar(overdue), connection.scalar(first)
        recent = taken.where(*mine, *done).order_by(latest).limit(_RECENT)
        seconds = connection.execute(recent).scalars().all()
    return Summary(
        stages={name: sum(counts.get(s, 0) for s in states) for name, states in STAGES.items()},
        late=int(number or 0),
        next_deadline=None if deadline is None else when(deadline),
        median_seconds=statistics.median(seconds) if seconds else None,
    )
