"""From a plan to the next snapshot: retrain what it names, relearn, write the receipt."""

from __future__ import annotations

from grapheraser.eraser.plan import Plan
from grapheraser.eraser.record import write_receipt
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
    """
    after, seconds = change_state(
        now.settings,
        now.state,
        graph,
        partition,
        retrain=plan.stale,
        touched=plan.touched,
        gone=plan.removal.nodes,
    )
    receipt = write_receipt(
        now,
        after,
        action=action,
        request=plan.digest,
        counts=plan.counts,
        shards=(*plan.retrain, *plan.emptied),
        timings={**timings, **seconds},
        started=started,
        notes=plan.notes,
    )
    return now.then(after, receipt)
