"""Resharding: fit what is left afresh in another number of shards, as one more change."""

from __future__ import annotations

import time
from dataclasses import replace

from grapheraser.checks import whole
from grapheraser.eraser.record import Work, record
from grapheraser.eraser.snapshot import Snapshot
from grapheraser.eraser.state import fit_state, replayed


def reshard(now: Snapshot, num_shards: int) -> Snapshot:
    """Return the snapshot of a fresh fit on the current graph; its receipt follows the others."""
    started = time.perf_counter()
    task, graph = now.task, now.state.graph
    num_shards = whole("num_shards", f"{task.owner}.reshard", num_shards, 1)
    arguments = {**now.arguments, "num_shards": num_shards}
    settings = task.resolve(arguments, now.configuration["resolved"])
    partition = task.partition_of(arguments, settings, graph)
    partitioned = time.perf_counter()
    after = fit_state(settings, graph, partition)
    settings = replayed(settings, after)
    fitted = time.perf_counter()
    configuration = task.describe(arguments, settings)
    changed = replace(now, arguments=arguments, settings=settings, configuration=configuration)
    work = Work(
        action="reshard",
        abouts=[{"reshard": num_shards}],
        counts={},
        shards=sorted({*now.state.shards, *after.shards}),
        timings={"partition": partitioned - started, "aggregation": fitted - partitioned},
        started=started,
    )
    return record(changed, after, work)
