"""Fresh seeds for retrained shards, so that whoever compares two versions sees more than a request.

Two trainings from one seed differ in what was forgotten and in nothing else. With another seed they
differ everywhere. The seeds come from the system's randomness and are recorded, so a replay from
the remaining data still gives the same bits: S(G, P, recorded seeds). Partitions and samples keep
their keys: other ones would move nodes that nobody has asked about.
"""

from __future__ import annotations

from collections.abc import Sequence

from grapheraser.checks import one_of
from grapheraser.eraser.settings import Settings
from grapheraser.errors import ParameterError
from grapheraser.partition import Partition
from grapheraser.seeding import fresh_seed

NONE, TOUCHED, ALL = POLICIES = ("none", "touched", "all")
_NOTES = {
    TOUCHED: "refresh='touched': retrained shards have fresh seeds",
    ALL: "refresh='all': every shard was retrained from a fresh seed",
}


def shards_to_retrain(
    settings: Settings, policy: str, stale: Sequence[int], partition: Partition
) -> tuple[int, ...]:
    """The shards to retrain under a policy: the stale ones, or all."""
    one_of("refresh", "unlearn", policy, POLICIES)
    if policy != NONE and settings.training.model.closed_form:
        raise ParameterError(
            f"'refresh' of unlearn must be 'none' for a run without shards, which has no training "
            f"seeds. Got {policy!r}."
        )
    if policy == ALL:
        return tuple(partition.shard_ids.tolist())
    return tuple(stale)


def fresh_seeds(policy: str, shards: Sequence[int]) -> dict[int, int]:
    """A fresh seed for each of the shards to retrain, where the policy wants one."""
    return {} if policy == NONE else {shard: fresh_seed() for shard in shards}


def note_on(policy: str) -> tuple[str, ...]:
    """Return what a receipt says of the policy."""
    return (_NOTES[policy],) if policy in _NOTES else ()
