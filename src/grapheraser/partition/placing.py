"""Which shard a node belongs to, as a fresh cut or an insertion has it."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from grapheraser.errors import ParameterError, PartitionError
from grapheraser.graph import Graph
from grapheraser.partition import (
    PARTITIONERS,
    HashPartitioner,
    Partition,
    Partitioner,
    resolve_partitioner,
)
from grapheraser.partition.base import EDGES, EVERYTHING, NODES


def place_node(
    partition: Partition, graph: Graph, node: int, partitioner: Partitioner | None = None
) -> tuple[int, frozenset[str]]:
    """The shard of a new training node, and which of the data that choice depended on.

    It joins most of its neighbours (the lower shard id among equals). Where it has none that are
    trained on, or that shard is full, it joins the smallest shard. Under a data-free partition its
    id decides, as it would in a fresh fit, so that nothing is given away.

    Args:
        partition: without the node.
        graph: with the node.
        node: its id.
        partitioner: the run's own.
    """
    if partition.data_free:
        return _place_by_id(partition, graph, node, partitioner), frozenset()
    neighbours = graph.neighbours(node)
    trained = neighbours[np.isin(neighbours, partition.nodes)]
    if len(trained):
        counts = np.bincount(partition.shard_of(trained), minlength=partition.num_shards)
        shard = int(counts.argmax())
        full = max(partition.capacity, math.ceil((len(partition.nodes) + 1) / partition.num_shards))
        if partition.sizes[shard] < full:
            return shard, frozenset({NODES, EDGES})
    return int(partition.sizes.argmin()), frozenset({NODES, EDGES})


def partition_afresh(
    partitioner: Partitioner | None, graph: Graph, partition: Partition
) -> NDArray[np.integer]:
    """The shards that a graph's training nodes get when they are cut like ``partition`` was."""
    return _rule(partitioner, partition)(
        graph.training_graph,
        partition.num_shards,
        capacity=partition.capacity,
        seed=partition.seed,
    ).labels


def given(partition: Partition, graph: Graph, partitioner: Partitioner | None) -> Partition:
    """A partition that was handed in, restricted to the training nodes of a graph.

    It counts as data-free only where its partitioner is at hand and cuts the same shards again;
    else nobody knows what went into it.
    """
    if not isinstance(partition, Partition):
        raise ParameterError(
            f"'partition' of fit must be a Partition. Got {partition!r}.",
            hint="a method is named in the constructor: GraphEraser(partition=...).",
        )
    restricted = partition.restricted_to(graph.train_nodes)
    missing = np.setdiff1d(graph.train_nodes, restricted.nodes)
    if len(missing):
        raise PartitionError(
            f"the given partition has no shard for {len(missing)} training nodes "
            f"(the first is {missing[0]})."
        )
    if restricted.data_free:
        try:
            again = partition_afresh(partitioner, graph, restricted)
        except PartitionError:
            again = np.zeros(0, dtype=np.int32)
        if not np.array_equal(again, restricted.labels):
            return replace(restricted, inputs=EVERYTHING)
    return restricted


def _place_by_id(
    partition: Partition, graph: Graph, node: int, partitioner: Partitioner | None
) -> int:
    rule = _rule(partitioner, partition)
    if type(rule) is HashPartitioner:  # needs no look at the other nodes; a subclass may
        (shard,) = rule.place([node], partition.num_shards, seed=partition.seed)
    else:
        labels = partition_afresh(partitioner, graph, partition)
        (shard,) = labels[graph.train_nodes == node]
    return int(shard)


def _rule(partitioner: Partitioner | None, partition: Partition) -> Partitioner:
    """What made a partition: the run's own partitioner, or the registered one of that name."""
    if partitioner is not None and partitioner.name == partition.method:
        return partitioner
    if partition.method in PARTITIONERS:
        return resolve_partitioner(partition.method)
    raise PartitionError(
        f"the cut was made by a partitioner '{partition.method}' that is not at hand.",
        hint="pass it: GraphEraser(partition=...).",
    )
