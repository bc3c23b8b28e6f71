"""When each shard was last retrained, as far as this process has seen it.

Which shards a change retrained helps to guess whom it was about, so receipts don't say it and
nothing of it is kept: it is known from when the service was started, and in memory alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from grapheraser.receipts import Receipt


@dataclass(frozen=True)
class Retraining:
    """One retraining of a shard.

    Attributes:
        version: that it led to.
        at: when that version was complete.
        seconds: that training took, of all shards of the change together.
        shards: how many these were.
    """

    version: int
    at: datetime
    seconds: float
    shards: int


@dataclass(frozen=True)
class Retrained:
    """What is known of all shards.

    Attributes:
        since: the version from which on it is known; a shard that is not in ``last`` was last
            trained for that version or an earlier one.
        last: by shard.
    """

    since: int
    last: Mapping[int, Retraining]

    def then(self, receipt: Receipt) -> Retrained:
        """The same after a change; ``receipt`` is the one that the change returned."""
        if receipt.sequence <= self.since:
            return self
        made = Retraining(
            receipt.sequence,
            datetime.fromisoformat(receipt.completed_at),
            receipt.timings["training"],
            len(receipt.retrained),
        )
        return Retrained(self.since, {**self.last, **dict.fromkeys(receipt.retrained, made)})
