"""Forgetting: plan, take the data out, retrain what saw it, relearn, write the receipt."""

from __future__ import annotations

import time
from collections.abc import Sequence

from grapheraser.eraser.record import write_receipt
from grapheraser.eraser.refresh import ALL, NONE, fresh_seeds, note_on, shards_to_retrain
from grapheraser.eraser.snapshot import AnySnapshot
from grapheraser.eraser.state import change_state
from grapheraser.graph import Request


def unlearn(
    now: AnySnapshot, request: Request | Sequence[Request], *, refresh: str = NONE
) -> AnySnapshot:
    """The snapshot without the nodes, edges, features or labels of a request, and its receipt.

    Args:
        now: the snapshot before.
        request: what to forget.
        refresh: which shards get fresh seeds; see `refresh`.
    """
    started = time.perf_counter()
    plan = now.plan(request)
    planned = time.perf_counter()
    graph = now.state.graph.without(plan.removal)
    partition = now.state.partition.without(plan.trained)
    retrain = shards_to_retrain(now.settings, refresh, plan.stale, partition)
    removed = time.perf_counter()
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
    records = (*plan.retrain, *plan.emptied) if refresh != ALL else (*after.shards, *plan.emptied)
    receipt = write_receipt(
        now,
        after,
        action="unlearn",
        request=plan.removal.digest,
        counts=plan.counts,
        shards=records,
        timings={"planning": planned - started, "graph": removed - planned, **seconds},
        started=started,
        notes=(*plan.notes, *note_on(refresh)),
    )
    return now.then(after, receipt)
