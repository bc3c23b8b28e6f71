"""`train_shard`: from a task to trained weights on one CPU core."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grapheraser.graph import Graph
from grapheraser.models import ModelSpec
from grapheraser.training.cpu.prepared import PreparedShard
from grapheraser.training.task import ShardTask, ShardWeights, TrainingConfig, built_in


def train_shard(
    task: ShardTask,
    config: TrainingConfig,
    *,
    start: Mapping[str, NDArray[Any]] | None = None,
) -> ShardWeights:
    """Train one shard; the result is a function of the arguments, bit for bit.

    Args:
        task: the shard.
        config: a built-in model and the number of epochs.
        start: initial weights by PyG's names; by default those that follow from the task's seed.
    """
    shard = PreparedShard(task, built_in(config, "cpu"), config.epochs, start=start)
    shard.run()
    return ShardWeights(shard.columns, shard.tensors())


def warm_up(spec: ModelSpec) -> None:
    """Compile, or read from numba's cache on disk, what training this model needs."""
    path = np.array([[0, 1], [1, 2]])
    graph = Graph.from_arrays(np.eye(3), path, np.array([0, 1, 1]), num_classes=2)
    train_shard(ShardTask(0, graph, 0), TrainingConfig(spec, epochs=1))
