"""When each shard was last retrained, as far as this process has seen it.

Which shards a change retrained helps to guess whom it was about, so receipts don't say it and
nothing of it is kept: it is known from when the service was started, and in memory alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

import sqlalchemy as sa

from grapheraser.service.database.tables import EVENTS
from grapheraser.service.requests import State

if TYPE_CHECKING:
    from grapheraser.service.queue import Queue
    from grapheraser.service.serving import Published, Served


@dataclass(frozen=True)
class Retraining:
    """One retraining of a shard.

    Attributes:
        version: with which its new weights were served first.
        at: when that version was complete.
        shards: how many shards had new weights then.
    """

    version: int
    at: datetime
    shards: int


class Retrained:
    """What was seen of all shards; a shard that is not in ``last`` has the weights of ``since``.

    Args:
        served: what to watch.

    Attributes:
        since: the version from which on it was watched.
        last: the last retraining, by shard.
    """

    def __init__(self, served: Served) -> None:
        self.since = served.now.version
        self.last: Mapping[int, Retraining] = {}
        served.watch(self._switched)

    def _switched(self, old: Published, new: Published) -> None:
        """Compare the weights of two versions; neither is kept."""
        before, after = old.model.shards_, new.model.shards_
        changed = [
            shard
            for shard, weights in after.items()
            if shard not in before or before[shard].digest != weights.digest
        ]
        receipts = new.model.receipts_
        if changed and len(receipts):
            at = datetime.fromisoformat(receipts[-1].completed_at)
            made = Retraining(new.version, at, len(changed))
            self.last = {**self.last, **dict.fromkeys(changed, made)}


def seconds_of(queue: Queue, versions: Iterable[int]) -> dict[int, float]:
    """How long the changes took that led to these versions, where the queue has them.

    From the beginning of retraining until the version was served: retraining, combining, the
    receipt and writing the run.
    """
    begun = EVENTS.alias()
    when_begun = (
        sa.select(sa.func.max(begun.c.at))
        .where(
            begun.c.request == EVENTS.c.request,
            begun.c.state == State.RETRAINING.value,
            begun.c.number < EVENTS.c.number,
        )
        .scalar_subquery()
    )
    query = sa.select(EVENTS.c.version, sa.func.min(EVENTS.c.at - when_begun)).where(
        EVENTS.c.run == queue.run,
        EVENTS.c.state == State.PUBLISHED.value,
        EVENTS.c.version.in_(set(versions)),
    )
    with queue.database.reading() as connection:
        rows = connection.execute(query.group_by(EVENTS.c.version)).all()
    return {version: seconds for version, seconds in rows if seconds is not None}
