"""`random` and `hash`: partitioners that read no features, edges or labels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from grapheraser.graph import Graph
from grapheraser.graph.ids import as_ids
from grapheraser.partition.base import NODES, Assignment, overfull
from grapheraser.seeding import derive, generator, keyed_hash


@dataclass(frozen=True)
class RandomPartitioner:
    """Deals a random permutation round the shards: sizes differ by at most one node."""

    name: str = "random"
    inputs: frozenset[str] = frozenset({NODES})
    strict: bool = True

    def __call__(self, graph: Graph, num_shards: int, *, capacity: int, seed: int) -> Assignment:
        del capacity  # sizes differ by at most one node, which no capacity forbids
        return Assignment(balanced_labels(graph.num_nodes, num_shards, seed))


@dataclass(frozen=True)
class HashPartitioner:
    """Takes a keyed hash of the node id for its shard, so nothing of a deleted node remains.

    Sizes are balanced on average only.
    """

    name: str = "hash"
    inputs: frozenset[str] = frozenset()
    strict: bool = False

    def __call__(self, graph: Graph, num_shards: int, *, capacity: int, seed: int) -> Assignment:
        labels = self.place(graph.ids, num_shards, seed=seed)
        return Assignment(labels, notes=overfull(labels, capacity))

    def place(self, nodes: ArrayLike, num_shards: int, *, seed: int) -> NDArray[np.int32]:
        """The shard of each node id, whether or not a graph has it."""
        hashes = keyed_hash(as_ids(nodes), derive(seed, "partition", "hash"))
        return (hashes % np.uint64(num_shards)).astype(np.int32)


def balanced_labels(num_nodes: int, num_shards: int, seed: int) -> NDArray[np.int32]:
    """A random assignment whose shard sizes differ by at most one."""
    order = generator(seed, "partition", "random").permutation(num_nodes)
    labels = np.empty(num_nodes, dtype=np.int32)
    labels[order] = np.arange(num_nodes) % num_shards
    return labels
