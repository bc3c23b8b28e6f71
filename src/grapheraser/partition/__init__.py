"""The partition stage: from a training graph to shards."""

from grapheraser.partition.api import (
    PARTITIONERS,
    partition_graph,
    resolve_partitioner,
    shard_capacity,
)
from grapheraser.partition.base import Assignment, Partition, Partitioner
from grapheraser.partition.quality import PartitionQuality, measure
from grapheraser.partition.simple import HashPartitioner, RandomPartitioner

__all__ = [
    "PARTITIONERS",
    "Assignment",
    "HashPartitioner",
    "Partition",
    "PartitionQuality",
    "Partitioner",
    "RandomPartitioner",
    "measure",
    "partition_graph",
    "resolve_partitioner",
    "shard_capacity",
]
