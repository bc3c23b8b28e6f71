"""From two states to the receipt of what lies between them."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from grapheraser.aggregation import WithExpert, relearned
from grapheraser.environment import versions
from grapheraser.eraser.snapshot import Fitted
from grapheraser.eraser.state import State
from grapheraser.receipts import Receipt, ShardRecord, digest_of
from grapheraser.receipts.claim import exactness
from grapheraser.training import digest_tensors


@dataclass(frozen=True, eq=False)
class Deed:
    """What was done, before it is written down.

    Attributes:
        action: "unlearn" or "insert".
        request: digest of the request.
        counts: how much it named, by kind.
        shards: ids of the shards that were trained again or emptied.
        timings: seconds by step.
        started: when it began, on the clock of `time.perf_counter`.
    """

    action: str
    request: str
    counts: dict[str, int]
    shards: Sequence[int]
    timings: dict[str, float]
    started: float


def write_receipt(
    deed: Deed,
    fitted: Fitted,
    after: State,
) -> Receipt:
    """The receipt of a deed that led from what was ``fitted`` to the state after it."""
    hashing = time.perf_counter()
    settings, before, earlier = fitted.settings, fitted.state, fitted.receipts
    sizes = after.partition.sizes
    records = tuple(
        ShardRecord(
            shard=shard,
            seed=settings.shard_seed(shard),
            nodes=int(sizes[shard]),
            before=before.shards[shard].digest if shard in before.shards else None,
            after=after.shards[shard].digest if shard in after.shards else None,
        )
        for shard in sorted(deed.shards)
    )
    aggregation = {
        "name": settings.aggregator.name,
        "global_expert": isinstance(settings.aggregator, WithExpert),
        "before": digest_tensors(before.aggregator.tensors),
        "after": digest_tensors(after.aggregator.tensors),
        "relearned": relearned(before.aggregator, after.aggregator),
        "seconds": round(deed.timings["aggregation"], 6),
        # A user's own aggregator need not have any.
        "notes": list(getattr(after.aggregator, "notes", ())),
    }
    fingerprints = before.graph.fingerprint, after.graph.fingerprint
    now = time.perf_counter()
    timings = {**deed.timings, "digests": now - hashing, "total": now - deed.started}
    return Receipt(
        action=deed.action,
        sequence=len(earlier) + 1,
        previous=earlier[-1].digest if earlier else None,
        request=deed.request,
        counts=deed.counts,
        graph_before=fingerprints[0],
        graph_after=fingerprints[1],
        shards=records,
        aggregation=aggregation,
        configuration=digest_of(fitted.configuration),
        engine=settings.engine.name,
        device=settings.device,
        versions=versions(settings.device),
        exactness=exactness(after.partition.method, after.partition.inputs),
        timings={name: round(seconds, 6) for name, seconds in timings.items()},
        completed_at=datetime.now(UTC).isoformat(timespec="seconds"),
    )
