"""S(G, P, seed) as a value, and the two ways to get one: afresh, and from the one before.

Both ways must end in the same bits; that is what "exact" means here.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grapheraser.aggregation import Change, Ensemble, FittedAggregator
from grapheraser.engines import ShardModels, ShardTask, ShardWeights
from grapheraser.engines.graph_checks import check_features
from grapheraser.engines.shards import train_shards
from grapheraser.eraser.missing import MissingEngine
from grapheraser.eraser.replay import compared, replay
from grapheraser.eraser.settings import Settings
from grapheraser.execution import held
from grapheraser.graph import Graph
from grapheraser.models import CustomModel, Model
from grapheraser.partition import Partition
from grapheraser.partition.halo import task_graph
from grapheraser.progress import stage
from grapheraser.receipts.claim import DIFFERENT, exactness

# Nodes whose graphs are made before they are trained on.
_GROUP = 2**19
_NO_SEEDS: Mapping[int, int] = MappingProxyType({})


@dataclass(frozen=True, eq=False)
class State:
    """S(G, P, seed): everything that "bit for bit" is about."""

    ensemble: Ensemble  # the current graph, its partition and the trained shards
    aggregator: FittedAggregator  # fitted to that ensemble
    # Of the shards whose training was seeded afresh; all others follow from the run's.
    seeds: Mapping[int, int] = field(default_factory=dict)

    @property
    def graph(self) -> Graph:
        return self.ensemble.graph

    @property
    def partition(self) -> Partition:
        return self.ensemble.partition

    @property
    def shards(self) -> ShardModels:
        return ShardModels.of(self.ensemble.shards)

    def tensors(self) -> dict[str, NDArray[Any]]:
        """Return every array of the state, by a name that says what it is."""
        named: dict[str, NDArray[Any]] = {
            "partition/nodes": self.partition.nodes,
            "partition/labels": self.partition.labels,
        }
        for shard, weights in self.shards.items():
            for name, array in weights.arrays.items():
                named[f"shard {shard}/{name}"] = array
        for name, array in self.aggregator.tensors.items():
            named[f"aggregator/{name}"] = array
        # An aggregator may hold arrays that follow from the graph, too large to digest each time.
        held = getattr(self.aggregator, "compared", None)
        if held is not None:
            named |= {f"aggregator/{name}": array for name, array in held(self.ensemble).items()}
        return named


def fit_state(
    settings: Settings, graph: Graph, partition: Partition, seeds: Mapping[int, int] = _NO_SEEDS
) -> State:
    """S(G, P, seed): train every shard and fit the aggregation; ``seeds`` are those of `State`."""
    shard_ids = [int(shard) for shard in partition.shard_ids]
    shards = train(settings, graph, partition, shard_ids, seeds)
    stage("fitting what combines the shards")
    model, seed = settings.training.model, settings.seed
    ensemble = Ensemble(graph, partition, ShardModels.of(shards), model, seed)
    return State(ensemble, settings.aggregator.fit(ensemble), _only(seeds, shards))


def change_state(
    settings: Settings,
    state: State,
    graph: Graph,
    partition: Partition,
    *,
    retrain: Sequence[int],
    touched: NDArray[np.int64],
    gone: NDArray[np.int64],
    seeds: Mapping[int, int] = _NO_SEEDS,
) -> tuple[State, dict[str, float]]:
    """The state after a change of the graph, and the seconds that its parts took.

    Graph and partition are those after the change. Shards to ``retrain`` are those whose training
    graph has changed; ``touched`` are ids of nodes that are new or whose neighbours, features or
    labels have changed, ``gone`` those of nodes that have left. ``seeds`` are fresh ones for some
    of the shards to retrain.
    """
    check_features(graph, touched)
    started = time.perf_counter()
    seeds = {**state.seeds, **seeds}
    fresh = train(settings, graph, partition, retrain, seeds)
    trained = time.perf_counter()
    emptied = np.setdiff1d(state.shards.ids, partition.shard_ids, assume_unique=True)
    shards = state.shards.changed({*retrain, *emptied.tolist()}, fresh)
    ensemble = replace(state.ensemble, graph=graph, partition=partition, shards=shards)
    change = Change(state.ensemble, frozenset(fresh), touched, gone)
    aggregator = settings.aggregator.refit(state.aggregator, ensemble, change)
    seconds = {"training": trained - started, "aggregation": time.perf_counter() - trained}
    return State(ensemble, aggregator, _only(seeds, shards)), seconds


def seed_of(settings: Settings, seeds: Mapping[int, int], shard: int) -> int:
    """Return the seed of a shard's training."""
    return seeds[shard] if shard in seeds else settings.shard_seed(shard)


def _only(seeds: Mapping[int, int], shards: Collection[int]) -> dict[int, int]:
    """A shard without weights has no seed to remember."""
    return {shard: seeds[shard] for shard in sorted(seeds) if shard in shards}


def trained_shards(graph: Graph, partition: Partition, model: Model) -> tuple[int, ...]:
    """Ids of the shards that have weights: those with a labelled node, ascending."""
    if model.closed_form:
        return ()
    return tuple(np.unique(partition.shard_of(graph.train_nodes)).tolist())


def train(
    settings: Settings,
    graph: Graph,
    partition: Partition,
    shard_ids: Sequence[int],
    seeds: Mapping[int, int] = _NO_SEEDS,
) -> dict[int, ShardWeights]:
    """Train these shards, each on its own nodes, the edges between them, and its halo if any.

    A shard without a labelled node has nothing to learn from: it gets no weights. A closed-form
    model has no shards: its aggregator does all the work.
    """
    if settings.training.model.closed_form:
        return {}
    groups = list(_groups(partition, shard_ids))
    tasks = (_tasks(settings, graph, partition, some, seeds) for some in groups)
    with held(settings.executor) if len(groups) > 1 else nullcontext():
        trained = train_shards(tasks, settings.engine, settings.executor, settings.training)
    own = isinstance(settings.training.model, CustomModel)
    if isinstance(settings.engine, MissingEngine) and own:  # what it says would have other bits
        settings.engine.refuse("what a module of your own learned")
    return trained


def replayed(settings: Settings, state: State) -> Settings:
    """The settings with how code of the user's own went twice, where that is to be told."""
    found = None
    if settings.training.own_code and len(state.shards):
        sizes, ids = state.partition.sizes, state.shards.ids
        largest = int(ids[np.argmax(sizes[ids])])
        (task,) = _tasks(settings, state.graph, state.partition, [largest], _NO_SEEDS)
        found = replay(task, settings.engine, settings.executor, settings.training)
    if len(settings.own_code) > len(settings.training.own_code) and found != DIFFERENT:
        again = settings.aggregator.fit(state.ensemble)
        found = compared(settings.aggregator, state.aggregator.tensors, again.tensors)
    return settings if found is None else replace(settings, replay=found)


def claim_of(settings: Settings, state: State) -> dict[str, Any]:
    """Return what receipts of a run may claim; see `receipts.claim`."""
    partition = state.partition
    inputs, schema = partition.inputs, state.graph.inferred
    return exactness(partition.method, inputs, schema, settings.replay)


def _tasks(
    settings: Settings,
    graph: Graph,
    partition: Partition,
    shard_ids: Sequence[int],
    seeds: Mapping[int, int],
) -> list[ShardTask]:
    """Return the training tasks of the shards that have a label to learn from."""
    made = (
        ShardTask(
            shard,
            task_graph(graph, partition, shard, settings.halo_key),
            seed_of(settings, seeds, shard),
        )
        for shard in shard_ids
    )
    tasks = [task for task in made if task.graph.labelled.any()]
    if isinstance(settings.engine, MissingEngine) and tasks:
        settings.engine.train(tasks[0], settings.training)
    return tasks


def _groups(partition: Partition, shard_ids: Sequence[int]) -> Iterator[Sequence[int]]:
    """Shards in groups that hold so few nodes that all their graphs fit into memory."""
    nodes = np.cumsum(partition.sizes[np.asarray(shard_ids, dtype=np.int64)])
    groups = np.maximum(nodes - 1, 0) // _GROUP
    for group in np.unique(groups).tolist():
        first, last = np.searchsorted(groups, [group, group + 1]).tolist()
        yield shard_ids[first:last]
