"""Forgetting: plan, take the data out, retrain what saw it, relearn, write the receipt."""

from __future__ import annotations

import time
from collections.abc import Sequence

from grapheraser.eraser.record import Work, forgotten, record
from grapheraser.eraser.snapshot import AnySnapshot
from grapheraser.eraser.state import change_state
from grapheraser.graph import Request


def unlearn(now: AnySnapshot, request: Request | Sequence[Request]) -> AnySnapshot:
    """The snapshot without the nodes, edges, features or labels of a request, and its receipt."""
    started = time.perf_counter()
    plan = now.plan(request)
    planned = time.perf_counter()
    graph = now.state.graph.without(plan.removal)
    partition = now.state.partition.without(plan.trained)
    removed = time.perf_counter()
    after, seconds = change_state(
        now.settings,
        now.state,
        graph,
        partition,
        retrain=plan.stale,
        touched=plan.touched,
        gone=plan.removal.nodes,
    )
    work = Work(
        action="unlearn",
        abouts=[*forgotten(plan.removal.named)],
        counts=plan.counts,
        shards=(*plan.retrain, *plan.emptied),
        timings={"planning": planned - started, "graph": removed - planned, **seconds},
        started=started,
        gone=plan.removal.nodes,
        context=plan.counts["context"],
        untrained=plan.counts["untrained"],
        notes=plan.notes,
    )
    return record(now, after, work)
