"""Resharding: fit what is left afresh in another number of shards, as one more change."""

from __future__ import annotations

import time
from dataclasses import replace

from grapheraser.checks import whole
from grapheraser.eraser.fit import make_partition
from grapheraser.eraser.record import Work, record
from grapheraser.eraser.settings import describe, resolve
from grapheraser.eraser.snapshot import Snapshot
from grapheraser.eraser.state import fit_state


def reshard(now: Snapshot, num_shards: int) -> Snapshot:
    """The snapshot of a fresh fit on the current graph, with a receipt that follows the others."""
    started = time.perf_counter()
    num_shards = whole("num_shards", "GraphEraser.reshard", num_shards, 1)
    arguments = {**now.arguments, "num_shards": num_shards}
    settings = resolve(arguments, now.configuration["resolved"])
    partition = make_partition(arguments, now.state.graph)
    partitioned = time.perf_counter()
    after = fit_state(settings, now.state.graph, partition)
    fitted = time.perf_counter()
    configuration = describe(arguments, settings)
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
