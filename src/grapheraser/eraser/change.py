"""From a plan to the next snapshot: retrain what it names, relearn, write the receipt."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from grapheraser.checks import one_of
from grapheraser.eraser.plan import Plan, with_all_shards
from grapheraser.eraser.record import Work, parts_of, record
from grapheraser.eraser.settings import Settings, trained_elsewhere
from grapheraser.eraser.snapshot import NO_NODES, Snapshot
from grapheraser.eraser.state import change_state
from grapheraser.errors import ParameterError
from grapheraser.graph import Graph
from grapheraser.kinds import LABELS
from grapheraser.partition import Partition
from grapheraser.receipts.part import About
from grapheraser.reports.wording import plural
from grapheraser.seeding import fresh_seed

# Two trainings from one seed differ in what was forgotten and in nothing else. With another seed
# they differ everywhere. The seeds come from the system's randomness and are recorded, so a
# replay from the remaining data still gives the same bits: S(G, P, recorded seeds). Partitions
# and samples keep their keys: other ones would move nodes that nobody has asked about.
NONE, TOUCHED, ALL = POLICIES = ("none", "touched", "all")
_NOTES = {
    NONE: (),
    TOUCHED: ("refresh='touched': retrained shards have fresh seeds",),
    ALL: ("refresh='all': every shard was retrained from a fresh seed",),
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


_RETRAINS_ALL = "every shard is retrained, for last bits depend on what trains it"
_MOVED = (
    "the centre or spread of a number has moved, in which shards learn it: every shard is retrained"
)


def completed(now: Snapshot, plan: Plan, nodes: int) -> Plan:
    """Add to a plan the shards that are retrained whatever it names, and notes for the operator.

    ``nodes`` is how many are left in shards.
    """
    notes, why = now.task.notes(now, nodes), trained_elsewhere(now.settings, now.seals.versions)
    follow = 0 if plan.edit is None else len(plan.edit.relearned)
    if follow:
        notes += (f"{plural(follow, 'row')} with a gap get another mean",)
    follow = len(plan.removal.followers)
    if follow:
        notes += (f"{plural(follow, 'node')} that exist only through those named go as well",)
    if why is None:
        return replace(plan, notes=notes)
    plan = with_all_shards(plan, now.state.shards, now.state.partition.sizes)
    return replace(plan, notes=(*notes, f"{_RETRAINS_ALL}: {why}"))


def change(
    now: Snapshot,
    plan: Plan,
    graph: Graph,
    partition: Partition,
    *,
    action: str,
    timings: dict[str, float],
    started: float,
    refresh: str = NONE,
) -> Snapshot:
    """Return the snapshot after a change, with its receipt.

    Graph and partition are those after it. ``timings`` are seconds by step so far; the work began
    at ``started``, on the clock of `time.perf_counter`; ``refresh`` says which shards get fresh
    seeds.
    """
    if _moves_numbers(now, graph):
        plan = with_all_shards(plan, now.state.shards, now.state.partition.sizes)
        plan = replace(plan, notes=(*plan.notes, _MOVED))
    retrain = shards_to_retrain(now.settings, refresh, plan.stale, partition)
    after, seconds = change_state(
        now.settings,
        now.state,
        graph,
        partition,
        retrain=retrain,
        touched=plan.touched,
        gone=plan.removal.nodes,
        seeds={} if refresh == NONE else {shard: fresh_seed() for shard in retrain},
    )
    retrained = tuple(after.shards) if refresh == ALL else plan.retrain
    abouts = [now.task.spelled(about) for about in _abouts(now.state.graph, graph, plan)]
    counts = plan.counts
    context, untrained = counts.pop("context"), counts.pop("untrained")
    work = Work(
        action=action,
        abouts=abouts,
        counts=now.task.counted(counts, abouts),
        shards=(*retrained, *plan.emptied),
        timings={**timings, **seconds},
        started=started,
        gone=plan.removal.nodes,
        new=NO_NODES if plan.edit is None else plan.edit.nodes,
        context=context,
        untrained=untrained,
        notes=(*plan.notes, *_NOTES[refresh]),
        skipped=now.task.requests_of(plan.removal.skipped),
    )
    return record(now, after, work)


def _moves_numbers(now: Snapshot, graph: Graph) -> bool:
    """Return whether shards learned numbers in another frame than the changed graph has."""
    before = now.state.graph
    if not before.label_kind.is_numbers or not len(now.state.shards):
        return False
    return not graph.label_frame.same(before.label_frame)


def _abouts(before: Graph, after: Graph, plan: Plan) -> list[About]:
    """Return what was asked, in parts; with names where nodes have them."""
    abouts = [*parts_of(plan.removal.named if plan.edit is None else plan.edit.named)]
    if not before.named and before.types is None:
        return abouts
    for about in abouts:
        # One of a node's labels is named by the node and a target.
        named = about["ids"][: 1 if LABELS.noun in about.values() else None]
        ids = np.array([int(node) for node in named], dtype=np.int64)
        graphs = (before if there else after for there in before.contains(ids).tolist())
        about["names"] = [str(g.names_of([node])[0]) for g, node in zip(graphs, ids, strict=True)]
        if before.types is not None:
            about.update(before.types.about(ids, about.get("relation")))
    return abouts
