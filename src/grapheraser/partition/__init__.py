"""The partition stage: from a training graph to shards."""

from grapheraser.partition.base import Assignment, Partition, Partitioner
from grapheraser.partition.contract import BrokenContractError, check_case, check_partitioner
from grapheraser.partition.data_free import HashPartitioner, RandomPartitioner
from grapheraser.partition.kmeans import (
    BekmHungarianPartitioner,
    BekmPartitioner,
    EkmPartitioner,
    smoothed_features,
)
from grapheraser.partition.label_propagation import (
    BlpaLpPartitioner,
    BlpaPartitioner,
    LpaPartitioner,
)
from grapheraser.partition.multilevel import KaminparPartitioner, MetisPartitioner
from grapheraser.partition.partitioning import (
    PARTITIONERS,
    partition_graph,
    resolve_partitioner,
    shard_capacity,
)
from grapheraser.partition.quality import PartitionQuality, measure

__all__ = [
    "PARTITIONERS",
    "Assignment",
    "BekmHungarianPartitioner",
    "BekmPartitioner",
    "BlpaLpPartitioner",
    "BlpaPartitioner",
    "BrokenContractError",
    "EkmPartitioner",
    "HashPartitioner",
    "KaminparPartitioner",
    "LpaPartitioner",
    "MetisPartitioner",
    "Partition",
    "PartitionQuality",
    "Partitioner",
    "RandomPartitioner",
    "check_case",
    "check_partitioner",
    "measure",
    "partition_graph",
    "resolve_partitioner",
    "shard_capacity",
    "smoothed_features",
]
