"""The fitted state as a value, and the two ways to get one: afresh, and from the one before.

Both ways must end in the same bits; that is what "exact" means here.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grapheraser.aggregation import Aggregator, Change, Ensemble, FittedAggregator
from grapheraser.execution import Executor
from grapheraser.graph import Graph
from grapheraser.models import ModelSpec
from grapheraser.partition import Partition, Partitioner
from grapheraser.progress import progress
from grapheraser.seeding import derive
from grapheraser.training import (
    Engine,
    ShardTask,
    ShardWeights,
    StackingEngine,
    TrainingConfig,
)


@dataclass(frozen=True)
class Settings:
    """A `GraphEraser`'s arguments, resolved: everything but the data.

    Attributes:
        partitioner: what cuts the graph; None where that depends on the graph (``auto``).
        device: where the engine trains.
    """

    training: TrainingConfig
    partitioner: Partitioner | None
    aggregator: Aggregator
    engine: Engine
    executor: Executor
    seed: int
    device: str = "cpu"

    def shard_seed(self, shard: int) -> int:
        """The seed of one shard's training; no other shard or node has a part in it."""
        return derive(self.seed, "train", shard)


@dataclass(frozen=True, eq=False)
class State:
    """All that fitting makes: what "bit for bit" is about.

    Attributes:
        graph: the current graph.
        partition: the shard of every training node of it.
        shards: weights by shard id, ascending.
        aggregator: with what it has learned or cached.
    """

    graph: Graph
    partition: Partition
    shards: Mapping[int, ShardWeights]
    aggregator: FittedAggregator

    def tensors(self) -> dict[str, NDArray[Any]]:
        """Every array of the state, by a name that says what it is."""
        named: dict[str, NDArray[Any]] = {
            "partition/nodes": self.partition.nodes,
            "partition/labels": self.partition.labels,
        }
        for shard, weights in self.shards.items():
            named[f"shard {shard}/columns"] = weights.columns
            for name, tensor in weights.tensors.items():
                named[f"shard {shard}/{name}"] = tensor
        for name, array in self.aggregator.tensors.items():
            named[f"aggregator/{name}"] = array
        return named


def ensemble_of(settings: Settings, state: State) -> Ensemble:
    """What the aggregator looks at when it predicts."""
    return _ensemble(settings, state.graph, state.partition, state.shards)


def fit_state(settings: Settings, graph: Graph, partition: Partition) -> State:
    """S(G, P, seed): train every shard and the aggregator on the graph."""
    shard_ids = [int(shard) for shard in partition.shard_ids]
    shards = train_shards(settings, graph, partition, shard_ids)
    aggregator = settings.aggregator.fit(_ensemble(settings, graph, partition, shards))
    return State(graph, partition, shards, aggregator)


def change_state(
    settings: Settings,
    state: State,
    graph: Graph,
    partition: Partition,
    *,
    retrain: Sequence[int],
    touched: NDArray[np.int64],
) -> tuple[State, dict[str, float]]:
    """The state after a change of the graph, and the seconds that its parts took.

    Args:
        settings: as at the time of the fit.
        state: the state before.
        graph: after the change.
        partition: after the change.
        retrain: shards whose training graph has changed; all others keep their weights.
        touched: ids of the nodes whose neighbours or features have changed.
    """
    started = time.perf_counter()
    fresh = train_shards(settings, graph, partition, retrain)
    trained = time.perf_counter()
    left = {int(shard) for shard in partition.shard_ids}
    kept = {
        shard: weights
        for shard, weights in state.shards.items()
        if shard in left and shard not in fresh
    }
    shards = dict(sorted({**kept, **fresh}.items()))
    change = Change(
        before=ensemble_of(settings, state),
        retrained=frozenset(fresh),
        touched=touched,
    )
    after = _ensemble(settings, graph, partition, shards)
    aggregator = settings.aggregator.refit(state.aggregator, after, change)
    seconds = {"training": trained - started, "aggregation": time.perf_counter() - trained}
    return State(graph, partition, shards, aggregator), seconds


def train_shards(
    settings: Settings,
    graph: Graph,
    partition: Partition,
    shard_ids: Sequence[int],
) -> dict[int, ShardWeights]:
    """Train these shards, each on its own nodes and the edges between them.

    A closed-form model has none: its aggregator does all the work.
    """
    if isinstance(settings.training.model, ModelSpec) and settings.training.model.closed_form:
        return {}
    tasks = [
        ShardTask(shard, graph.subgraph(partition.members(shard)), settings.shard_seed(shard))
        for shard in shard_ids
    ]
    if isinstance(settings.engine, StackingEngine):
        stacked = settings.engine.train_stack(tasks, settings.training)
        return dict(zip(shard_ids, stacked, strict=True))
    train = partial(settings.engine.train, config=settings.training)
    with progress("training shards", len(tasks)) as tick:
        weights = settings.executor.map(train, tasks, names=shard_ids, tick=tick)
    return dict(zip(shard_ids, weights, strict=True))


def _ensemble(
    settings: Settings, graph: Graph, partition: Partition, shards: Mapping[int, ShardWeights]
) -> Ensemble:
    return Ensemble(graph, partition, shards, settings.training.model, settings.seed)
