"""From a plan to the next snapshot: retrain what it names, relearn, write the receipt."""

from __future__ import annotations

from grapheraser.eraser.plan import Plan
from grapheraser.eraser.record import write_receipt
from grapheraser.eraser.refresh import ALL, NONE, fresh_seeds, note_on, shards_to_retrain
from grapheraser.eraser.snapshot import AnySnapshot
from grapheraser.eraser.state import change_state
from grapheraser.graph import Graph
from grapheraser.partition import Partition


def carry_out(
    now: AnySnapshot,
    plan: Plan,
    graph: Graph,
    partition: Partition,
    *,
    action: str,
    timings: dict[str, float],
    started: float,
    refresh: str = NONE,
) -> AnySnapshot:
    """The snapshot after a change, and its receipt.

    Args:
        now: the snapshot before.
        plan: of the change.
        graph: after it.
        partition: after it.
        action: what the receipt calls it.
        timings: seconds by step, so far.
        started: when the work began, on the clock of `time.perf_counter`.
        refresh: which shards get fresh seeds; see `refresh`.
    """
    retrain = shards_to_retrain(now.settings, refresh, plan.stale, partition)
    after, seconds = change_state(
        now.settings,
        now.state,
        graph,
        partition,
        retrain=retrain,
        touched=plan.touched,
        gone=plan.removal.nodes,
        seeds=fresh_seeds(refresh, retrain),
    )
    retrained = tuple(after.shards) if refresh == ALL else plan.retrain
    receipt = write_receipt(
        now,
        after,
        action=action,
        request=plan.digest,
        counts=plan.counts,
        shards=(*retrained, *plan.emptied),
        timings={**timings, **seconds},
        started=started,
        notes=(*plan.notes, *note_on(refresh)),
    )
    return now.then(after, receipt)
