"""`partition_graph`: run a method, given by name, object or function, and check its result."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from grapheraser.checks import real, whole
from grapheraser.errors import ParameterError, PartitionError
from grapheraser.graph import Graph
from grapheraser.partition.base import (
    EVERYTHING,
    MAX_SHARDS,
    Assignment,
    Partition,
    Partitioner,
    overfull,
)
from grapheraser.partition.data_free import HashPartitioner, RandomPartitioner
from grapheraser.partition.kmeans import (
    BekmGnnPartitioner,
    BekmHungarianPartitioner,
    BekmPartitioner,
    EkmPartitioner,
)
from grapheraser.partition.label_propagation import (
    BlpaLpPartitioner,
    BlpaPartitioner,
    LpaPartitioner,
)
from grapheraser.partition.multilevel import KaminparPartitioner, MetisPartitioner
from grapheraser.partition.quality import measure_labels
from grapheraser.partition.streaming import LdgPartitioner
from grapheraser.registry import Registry

PARTITIONERS: Registry[Callable[..., Partitioner]] = Registry("partition method")
PARTITIONERS.add("random", RandomPartitioner)
PARTITIONERS.add("hash", HashPartitioner)
PARTITIONERS.add("lpa", LpaPartitioner)
PARTITIONERS.add("blpa", BlpaPartitioner)
PARTITIONERS.add("blpa-exchange", partial(BlpaPartitioner, name="blpa-exchange", exchange=True))
PARTITIONERS.add("blpa-lp", BlpaLpPartitioner)
PARTITIONERS.add("ekm", EkmPartitioner)
PARTITIONERS.add("bekm", BekmPartitioner)
PARTITIONERS.add("bekm-gnn", BekmGnnPartitioner)
PARTITIONERS.add("bekm-hungarian", BekmHungarianPartitioner)
PARTITIONERS.add("ldg", LdgPartitioner)
PARTITIONERS.add("metis", MetisPartitioner)
PARTITIONERS.add("kaminpar", KaminparPartitioner)

PartitionFunction: TypeAlias = Callable[[Graph, int, int], Any]


@dataclass(frozen=True)
class FunctionPartitioner:
    """A user's ``(graph, num_shards, seed) -> labels``, which may read all of the data."""

    function: PartitionFunction
    inputs: frozenset[str] = EVERYTHING
    strict: bool = False

    @property
    def name(self) -> str:
        return getattr(self.function, "__name__", type(self.function).__name__)

    def __call__(self, graph: Graph, num_shards: int, *, capacity: int, seed: int) -> Assignment:
        labels = np.asarray(self.function(graph, num_shards, seed))
        checked = _checked(Assignment(labels), self, graph.num_nodes, num_shards, capacity)
        return Assignment(checked, notes=overfull(checked, capacity))


def resolve_partitioner(method: str | Partitioner | PartitionFunction) -> Partitioner:
    """A partitioner from its name, itself, or a user's function."""
    if isinstance(method, str):
        return PARTITIONERS.get(method)()
    if isinstance(method, type):
        raise ParameterError(
            f"a partition method must be an instance, not a class. Got {method.__name__}.",
            hint=f"write {method.__name__}(...), with its own parameters if it has any.",
        )
    if isinstance(method, Partitioner):
        return method
    if callable(method):
        return FunctionPartitioner(method)
    raise ParameterError(
        "a partition method must be a name, a Partitioner or a function "
        f"(graph, num_shards, seed) -> labels. Got {method!r}."
    )


def shard_capacity(
    num_nodes: int,
    num_shards: int,
    *,
    gamma: float = 0.0,
    delta: int | None = None,
    owner: str = "partition_graph",
) -> int:
    """The most nodes that a shard may hold: ``delta``, or ceil(n/k) + gamma (n - ceil(n/k))."""
    smallest = math.ceil(num_nodes / num_shards)
    if delta is None:
        gamma = real("gamma", owner, gamma, 0, 1)
        return smallest + int(gamma * (num_nodes - smallest))
    delta = whole("delta", owner, delta)
    if gamma:
        raise ParameterError(f"give 'gamma' or 'delta' of {owner}, not both.")
    if delta < smallest:
        raise PartitionError(
            f"{num_shards} shards of at most {delta} nodes can't hold {num_nodes} nodes.",
            hint=f"delta must be at least {smallest}.",
        )
    return delta


def partition_graph(
    graph: Graph,
    method: str | Partitioner | PartitionFunction = "blpa",
    *,
    num_shards: int,
    seed: int = 0,
    gamma: float = 0.0,
    delta: int | None = None,
) -> Partition:
    """Partition the training graph of ``graph`` into ``num_shards`` shards.

    Args:
        graph: the method sees its `training_graph`: the training nodes and those that the graph's
            context adds, with the edges between them.
        method: a registered name, a `Partitioner`, or ``(graph, num_shards, seed) -> labels``.
        num_shards: k, between 1 and the number of those nodes; more where the method is data-free,
            so that shards may be empty from the start, as deletions may leave them.
        seed: the result is a function of the graph, the method and this.
        gamma: slack of a shard's capacity, from 0 (strictly balanced) to 1 (no limit).
        delta: the capacity itself, instead of ``gamma``.
    """
    options = {"num_shards": num_shards, "seed": seed, "gamma": gamma, "delta": delta}
    return partition_for("partition_graph", graph, method, **options)


def partition_for(
    owner: str,
    graph: Graph,
    method: str | Partitioner | PartitionFunction,
    *,
    num_shards: Any,
    seed: Any,
    gamma: Any = 0.0,
    delta: Any = None,
) -> Partition:
    """Partition like `partition_graph`; messages speak of the arguments of ``owner``."""
    if not isinstance(graph, Graph):
        raise ParameterError(
            f"'graph' of {owner} must be a Graph. Got {type(graph).__name__}.",
            hint="Graph.from_pyg makes one from a PyG Data, Graph.from_arrays from arrays.",
        )
    seed = whole("seed", owner, seed)
    training = graph.training_view()
    n = training.num_nodes
    if n == 0:
        raise PartitionError(f"graph '{graph.name}' has no training nodes to partition.")
    partitioner = resolve_partitioner(method)
    largest = n if partitioner.inputs else MAX_SHARDS
    num_shards = whole("num_shards", owner, num_shards, 1, largest)
    capacity = shard_capacity(n, num_shards, gamma=gamma, delta=delta, owner=owner)
    started = time.perf_counter()
    assignment = partitioner(training, num_shards, capacity=capacity, seed=seed)
    seconds = time.perf_counter() - started
    labels = _checked(assignment, partitioner, n, num_shards, capacity)
    return Partition(
        nodes=training.ids,
        labels=labels,
        num_shards=num_shards,
        method=partitioner.name,
        capacity=capacity,
        inputs=partitioner.inputs,
        seed=seed,
        moved=assignment.moved,
        converged=assignment.converged,
        notes=assignment.notes,
        seconds=seconds,
        quality=measure_labels(training, labels, num_shards),
    )


def _checked(
    assignment: Assignment, partitioner: Partitioner, n: int, num_shards: int, capacity: int
) -> np.ndarray[Any, np.dtype[np.int32]]:
    labels = np.asarray(assignment.labels)
    if labels.shape != (n,) or labels.dtype.kind not in "iu":
        raise PartitionError(
            f"partitioner '{partitioner.name}' must return {n} integer labels "
            f"(found shape {labels.shape}, dtype {labels.dtype})."
        )
    if labels.min() < 0 or labels.max() >= num_shards:
        raise PartitionError(
            f"partitioner '{partitioner.name}' must return labels in [0, {num_shards - 1}] "
            f"(found {labels.min()} to {labels.max()})."
        )
    largest = int(np.bincount(labels).max())
    if partitioner.strict and largest > capacity:
        raise PartitionError(
            f"partitioner '{partitioner.name}' put {largest} nodes into a shard that may hold "
            f"{capacity}."
        )
    return labels.astype(np.int32)
