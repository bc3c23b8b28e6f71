"""Forgetting: plan, take the data out, retrain what saw it, relearn, write the receipt."""

from __future__ import annotations

import time
from collections.abc import Sequence

from grapheraser.eraser.carry_out import carry_out
from grapheraser.eraser.refresh import NONE
from grapheraser.eraser.snapshot import AnySnapshot
from grapheraser.graph import Request


def unlearn(
    now: AnySnapshot,
    request: Request | Sequence[Request],
    *,
    missing: str = "raise",
    refresh: str = NONE,
) -> AnySnapshot:
    """The snapshot without what a request names, with its receipt.

    Args:
        now: the snapshot.
        request: nodes, edges, features or labels.
        missing: "raise" or "skip", for what the graph does not have.
        refresh: which shards get fresh seeds; see `refresh`.
    """
    started = time.perf_counter()
    plan = now.plan(request, missing=missing)
    planned = time.perf_counter()
    graph = now.state.graph.without(plan.removal)
    partition = now.state.partition.without(plan.trained)
    timings = {"planning": planned - started, "graph": time.perf_counter() - planned}
    return carry_out(
        now,
        plan,
        graph,
        partition,
        action="unlearn",
        timings=timings,
        started=started,
        refresh=refresh,
    )
