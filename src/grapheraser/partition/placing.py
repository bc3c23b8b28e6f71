"""Apply a partition to another graph: place new nodes, partition afresh, accept a given one."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from grapheraser.arrays import Ints, Ints32
from grapheraser.errors import ParameterError, PartitionError
from grapheraser.graph import Graph
from grapheraser.kernels.paged import neighbour_rows
from grapheraser.kernels.sets import ranks
from grapheraser.partition.base import EDGES, EVERYTHING, NODES, Partition, Partitioner
from grapheraser.partition.data_free import HashPartitioner
from grapheraser.partition.partitioning import PARTITIONERS, resolve_partitioner


def place_nodes(
    partition: Partition, graph: Graph, nodes: Ints, partitioner: Partitioner | None = None
) -> tuple[Ints32, frozenset[str]]:
    """The shards of nodes that are in none yet, and the data that the choice depends on.

    Nodes are placed one by one, in the order of their ids. Each joins the shard of most of its
    neighbours; on a tie, the one with the lowest id. Where that shard is full, or no neighbour is
    in a shard, it joins the smallest shard. Under a data-free partition its id decides, as in a
    fresh fit.
    """
    if partition.data_free or not len(nodes):
        return _place_by_id(partition, graph, nodes, partitioner), frozenset()
    indptr, around = neighbour_rows(graph.table, graph.places(nodes))
    known = partition.shard_or_none(around)
    new = ranks(around, nodes)
    sizes, shards = partition.sizes.copy(), np.full(len(nodes), -1, dtype=np.int32)
    for i in range(len(nodes)):
        row = slice(indptr[i], indptr[i + 1])
        near = np.where(new[row] >= 0, shards[new[row]], known[row])
        near = near[near >= 0]
        shards[i] = sizes.argmin()
        if len(near):
            most = np.bincount(near, minlength=partition.num_shards).argmax()
            full = max(partition.capacity, math.ceil((sizes.sum() + 1) / partition.num_shards))
            if sizes[most] < full:
                shards[i] = most
        sizes[shards[i]] += 1
    return shards, frozenset({NODES, EDGES})


def partition_afresh(
    partitioner: Partitioner | None, graph: Graph, partition: Partition
) -> NDArray[np.integer]:
    """The shards of a graph's nodes when it is partitioned as ``partition`` was."""
    return _rule(partitioner, partition)(
        graph.training_view(),
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
    partition: Partition, graph: Graph, nodes: Ints, partitioner: Partitioner | None
) -> Ints32:
    if not len(nodes):
        return np.zeros(0, dtype=np.int32)
    rule = _rule(partitioner, partition)
    if type(rule) is HashPartitioner:  # reads no other node; a subclass may
        return rule.place(nodes, partition.num_shards, seed=partition.seed)
    labels = partition_afresh(partitioner, graph, partition)
    return labels[np.searchsorted(graph.sharded_nodes, nodes)].astype(np.int32)


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
