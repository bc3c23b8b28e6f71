"""Fitting: translate the world, partition its graph, train every shard, fit what combines them."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from grapheraser.checks import whole
from grapheraser.engines.graph_checks import check_all_features
from grapheraser.eraser.record import Work, record
from grapheraser.eraser.snapshot import Snapshot
from grapheraser.eraser.state import fit_state, replayed
from grapheraser.eraser.task import Task
from grapheraser.eraser.warmup import compiling, is_first_use
from grapheraser.errors import GraphError, ParameterError
from grapheraser.partition import Partition
from grapheraser.partition.placing import accept_partition


def fit(
    task: Task, arguments: Mapping[str, Any], world: Any, partition: Partition | None = None
) -> Snapshot:
    """Return the first snapshot of a run, with no receipts yet."""
    settings = task.resolve(arguments)
    if not task.takes_types and getattr(world, "types", None) is not None:
        raise GraphError(f"{task.owner} takes no typed graphs (found types of nodes).")
    graph = task.graph_of(arguments, settings, world)
    settings = task.settings_for(arguments, settings, graph)
    check_all_features(graph)
    task.warm_up(settings, graph)
    if partition is None:
        partition = task.partition_of(arguments, settings, graph)
    else:
        partition = accept_partition(partition, graph, settings.partitioner)
        if settings.training.model.closed_form and partition.num_shards > 1:
            name = settings.training.model.name
            raise ParameterError(f"'partition' of fit: model '{name}' has no shards.")
    with compiling(shown=is_first_use()):
        state = fit_state(settings, graph, partition)
    settings = replayed(settings, state)
    configuration = task.describe(arguments, settings)
    return Snapshot.first(task, arguments, settings, state, configuration)


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
