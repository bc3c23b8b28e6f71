"""Where an inserted node goes."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from grapheraser.partition import HashPartitioner, Partition
from grapheraser.partition.base import EDGES, NODES


def place_node(
    partition: Partition, node: int, neighbours: NDArray[np.int64]
) -> tuple[int, frozenset[str]]:
    """The shard of a new training node, and which of the data that choice depended on.

    It joins most of its neighbours (the lower shard id among equals). Where it has none that are
    trained on, or that shard is full, it joins the smallest shard. Under a data-free partition its
    id decides, as it would in a fresh fit, so that nothing is given away.
    """
    if partition.data_free:
        (shard,) = HashPartitioner().place([node], partition.num_shards, seed=partition.seed)
        return int(shard), frozenset()
    trained = neighbours[np.isin(neighbours, partition.nodes)]
    if len(trained):
        counts = np.bincount(partition.shard_of(trained), minlength=partition.num_shards)
        shard = int(counts.argmax())
        full = max(partition.capacity, math.ceil((len(partition.nodes) + 1) / partition.num_shards))
        if partition.sizes[shard] < full:
            return shard, frozenset({NODES, EDGES})
    return int(partition.sizes.argmin()), frozenset({NODES, EDGES})
