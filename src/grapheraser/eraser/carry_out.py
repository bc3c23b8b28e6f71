"""From a plan to the next snapshot: retrain what it names, relearn, write the receipt."""

from __future__ import annotations

import numpy as np

from grapheraser.eraser.plan import Plan
from grapheraser.eraser.record import Work, parts_of, record
from grapheraser.eraser.refresh import ALL, NONE, fresh_seeds, note_on, shards_to_retrain
from grapheraser.eraser.seals import NO_NODES
from grapheraser.eraser.snapshot import AnySnapshot
from grapheraser.eraser.state import change_state
from grapheraser.graph import Graph
from grapheraser.partition import Partition
from grapheraser.receipts.part import About


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
    counts = plan.counts
    context, untrained = counts.pop("context"), counts.pop("untrained")
    work = Work(
        action=action,
        abouts=_abouts(now.state.graph, graph, plan),
        counts=counts,
        shards=(*retrained, *plan.emptied),
        timings={**timings, **seconds},
        started=started,
        gone=plan.removal.nodes,
        new=NO_NODES if plan.edit is None else plan.edit.nodes,
        context=context,
        untrained=untrained,
        notes=(*plan.notes, *note_on(refresh)),
        skipped=plan.removal.skipped,
    )
    return record(now, after, work)


def _abouts(before: Graph, after: Graph, plan: Plan) -> list[About]:
    """What was asked, in parts; with names where nodes have them."""
    abouts = [*parts_of(plan.removal.named if plan.edit is None else plan.edit.named)]
    if not before.named:
        return abouts
    for about in abouts:
        ids = np.array([int(node) for node in about["ids"]], dtype=np.int64)
        graphs = (before if there else after for there in before.contains(ids).tolist())
        about["names"] = [str(g.names_of([node])[0]) for g, node in zip(graphs, ids, strict=True)]
    return abouts
