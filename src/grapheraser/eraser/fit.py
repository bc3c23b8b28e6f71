"""Fitting: translate the world, partition its graph, train every shard, fit what combines them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from grapheraser.engines.graph_checks import check_all_features
from grapheraser.eraser.compiler_process import is_first_use
from grapheraser.eraser.snapshot import Snapshot
from grapheraser.eraser.state import fit_state, replayed
from grapheraser.eraser.task import Task
from grapheraser.eraser.warmup import compiling
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
