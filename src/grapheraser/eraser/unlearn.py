"""Forgetting: plan, take the data out, retrain what saw it, relearn, write the receipt."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from grapheraser.eraser.change import NONE, change, completed
from grapheraser.eraser.plan import Plan, leaving_shards, plan_edit, plan_removal
from grapheraser.eraser.snapshot import Snapshot
from grapheraser.graph import Edit, as_requests, coalesce, edit_of
from grapheraser.graph.changes.edit import relearning
from grapheraser.graph.changes.parts import Rewritten
from grapheraser.graph.changes.requests import as_tuple


def unlearn(
    now: Snapshot,
    request: Any,
    *,
    missing: str = "raise",
    refresh: str = NONE,
) -> Snapshot:
    """Return the snapshot without what a request names, with its receipt.

    ``missing`` is "raise" or "skip", for what the graph does not have; ``refresh`` says which
    shards get fresh seeds.
    """
    started = time.perf_counter()
    requests = now.task.changes_of(now, as_tuple(request))
    plan = plan_request(now, requests, missing=missing)
    planned = time.perf_counter()
    before = now.state.graph
    graph = before.without(plan.removal) if plan.edit is None else before.updated(plan.edit)
    partition = now.state.partition.without(plan.trained)
    timings = {"planning": planned - started, "graph": time.perf_counter() - planned}
    return change(
        now,
        plan,
        graph,
        partition,
        action="unlearn",
        timings=timings,
        started=started,
        refresh=refresh,
    )


def plan_request(now: Snapshot, requests: Sequence[Any], *, missing: str = "raise") -> Plan:
    """Work out what forgetting takes; refuse what leaves nothing to learn from."""
    graph, partition = now.state.graph, now.state.partition
    if any(isinstance(part, Rewritten) for part in requests):
        edit: Edit | None = edit_of(graph, requests, missing=missing)
        assert edit is not None
        removal = edit.removal
    else:
        removal = coalesce(graph, as_requests(requests), missing=missing)
        edit = relearning(graph, removal)
    now.task.check_removal(graph, removal)
    halo = now.settings.halo_key
    if edit is None:
        plan = plan_removal(graph, partition, removal, halo)
    else:
        rest = partition.without(leaving_shards(graph, partition, removal))
        after = graph.updated(edit), rest
        plan = plan_edit((graph, partition), after, edit, removal.nodes[:0], halo)
    return completed(now, plan, partition.num_nodes - len(plan.trained))
