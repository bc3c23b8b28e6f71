"""From two states to the receipt of the change between them."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from grapheraser.environment import versions
from grapheraser.eraser.settings import Settings
from grapheraser.eraser.snapshot import Snapshot
from grapheraser.eraser.state import State, seed_of
from grapheraser.partition.halo import task_graph
from grapheraser.receipts import Receipt, ShardRecord, digest_of
from grapheraser.receipts.claim import exactness
from grapheraser.training import joined_digest

_COUNTED = ("nodes", "edges", "features", "labels", "context", "untrained")


def counts_of(**named: int) -> dict[str, int]:
    """How much a change named, by kind; 0 where nothing is said."""
    return dict.fromkeys(_COUNTED, 0) | named


def write_receipt(
    before: Snapshot,
    after: State,
    *,
    action: str,
    request: str,
    counts: dict[str, int],
    shards: Sequence[int],
    timings: dict[str, float],
    started: float,
    notes: Sequence[str] = (),
) -> Receipt:
    """The receipt of a change.

    Args:
        before: the snapshot that the change started from.
        after: the state that it led to.
        action: "unlearn", "update" or "insert".
        request: digest of the request.
        counts: how much the request named, by kind.
        shards: ids of the shards that were retrained or emptied.
        timings: seconds by step.
        started: when the work began, on the clock of `time.perf_counter`.
        notes: what else the operator should know.
    """
    hashing = time.perf_counter()
    settings, partition = before.settings, after.partition
    notes = [*notes, *_single_rows(settings, after, shards)]
    last = before.receipts[-1] if before.receipts else None
    fields: dict[str, Any] = {
        "sequence": len(before.receipts) + 1,
        "previous": last.digest if last else None,
        "graph_before": before.state.graph.fingerprint,
        "graph_after": after.graph.fingerprint,
        "shards": tuple(_shard_record(before, after, shard) for shard in sorted(shards)),
        "aggregation": _aggregation(before, after, timings["aggregation"], notes),
        "configuration": digest_of(before.configuration),
        "engine": settings.engine.name,
        "device": settings.device,
        "versions": versions(settings.device),
        "exactness": exactness(partition.method, partition.inputs),
    }
    now = time.perf_counter()
    timings = {**timings, "digests": now - hashing, "total": now - started}
    return Receipt(
        action=action,
        request=request,
        counts=counts,
        timings={name: round(seconds, 6) for name, seconds in timings.items()},
        completed_at=datetime.now(UTC).isoformat(timespec="seconds"),
        **fields,
    )


def _shard_record(before: Snapshot, after: State, shard: int) -> ShardRecord:
    old, new = before.state.shards.get(shard), after.shards.get(shard)
    sizes = after.partition.sizes
    return ShardRecord(
        shard=shard,
        seed=seed_of(before.settings, after.seeds, shard),
        nodes=int(sizes[shard]) if shard < len(sizes) else 0,
        before=old.digest if old else None,
        after=new.digest if new else None,
    )


def _single_rows(settings: Settings, after: State, shards: Sequence[int]) -> list[str]:
    """What to know of retrained shards whose batch norms have seen a single node."""
    single = [
        shard
        for shard in sorted(shards)
        if shard in after.shards
        and after.partition.sizes[shard] == 1
        and any(name.endswith("running_var") for name in after.shards[shard].tensors)
        and task_graph(after.graph, after.partition, shard, settings.halo_key).num_nodes == 1
    ]
    return [
        f"shard {shard} was trained on a single node: its batch norms take the variance as 0"
        for shard in single
    ]


def _aggregation(
    before: Snapshot, after: State, seconds: float, notes: Sequence[str]
) -> dict[str, Any]:
    old, new = before.state.aggregator_digests, after.aggregator_digests
    return {
        **before.settings.aggregation_names,
        "before": joined_digest(old),
        "after": joined_digest(new),
        "relearned": sorted(name for name in new if old.get(name) != new[name]),
        "seconds": round(seconds, 6),
        # A user's own aggregator need not have any.
        "notes": [*getattr(after.aggregator, "notes", ()), *notes],
    }
