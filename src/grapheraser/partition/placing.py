"""Apply a partition to another graph: place a new node, partition afresh, accept a given one."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from grapheraser.errors import ParameterError, PartitionError
from grapheraser.graph import Graph
from grapheraser.partition.base import EDGES, EVERYTHING, NODES, Partition, Partitioner
from grapheraser.partition.data_free import HashPartitioner
from grapheraser.partition.partitioning import PARTITIONERS, resolve_partitioner


def place_node(
    partition: Partition, graph: Graph, node: int, partitioner: Partitioner | None = None
) -> tuple[int, frozenset[str]]:
    """The shard of a new training node, and the data that the choice depends on.

    The node joins the shard of most of its neighbours; on a tie, the one with the lowest id. Where
    that shard is full, or no neighbour is in a shard, it joins the smallest shard. Under a
    data-free partition its id decides, as in a fresh fit.

    Args:
        partition: the partition without the node.
        graph: the graph with the node.
        node: its id.
        partitioner: the run's own.
    """
    if partition.data_free:
        return _place_by_id(partition, graph, node, partitioner), frozenset()
    neighbours = graph.neighbours(node)
    trained = neighbours[partition.contains(neighbours)]
    if len(trained):
        counts = np.bincount(partition.shard_of(trained), minlength=partition.num_shards)
        shard = int(counts.argmax())
        full = max(partition.capacity, math.ceil((partition.num_nodes + 1) / partition.num_shards))
        if partition.sizes[shard] < full:
            return shard, frozenset({NODES, EDGES})
    return int(partition.sizes.argmin()), frozenset({NODES, EDGES})


def partition_afresh(
    partitioner: Partitioner | None, graph: Graph, partition: Partition
) -> NDArray[np.integer]:
    """The shards of a graph's nodes when it is partitioned as ``partition`` was."""
    return _rule(partitioner, partition)(
        graph.training_graph,
        partition.num_shards,
        capacity=partition.capacity,
        seed=partition.seed,
    ).labels


def accept_partition(
    partition: Partition, graph: Graph, partitioner: Partitioner | None
) -> Partition:
    """Check a partition that the user passes to ``fit``, and restrict it to the nodes in shards.

    It counts as data-free only if its partitioner is known and returns the same shards; otherwise
    it may have been computed from all of the data.
    """
    if not isinstance(partition, Partition):
        raise ParameterError(
            f"'partition' of fit must be a Partition. Got {partition!r}.",
            hint="name a method in the constructor instead: GraphEraser(partition=...).",
        )
    restricted = partition.restricted_to(graph.sharded_nodes)
    missing = np.setdiff1d(graph.sharded_nodes, restricted.nodes)
    if len(missing):
        raise PartitionError(
            f"the given partition has no shard for {len(missing)} nodes that context="
            f"{graph.context!r} puts into one (the first is {missing[0]}).",
            hint="partition graph.with_context(...), with the context of the GraphEraser.",
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
    if type(rule) is HashPartitioner:  # reads no other node; a subclass may
        (shard,) = rule.place([node], partition.num_shards, seed=partition.seed)
    else:
        labels = partition_afresh(partitioner, graph, partition)
        (shard,) = labels[graph.sharded_nodes == node]
    return int(shard)


def _rule(partitioner: Partitioner | None, partition: Partition) -> Partitioner:
    """The partitioner of a partition: the run's own, or the registered one of that name."""
    if partitioner is not None and partitioner.name == partition.method:
        return partitioner
    if partition.method in PARTITIONERS:
        return resolve_partitioner(partition.method)
    raise PartitionError(
        f"the partition was made by a partitioner '{partition.method}' that is not registered.",
        hint="pass it: GraphEraser(partition=...).",
    )
