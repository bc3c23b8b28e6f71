"""The two partitioners that never look at the data: random and hash."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from grapheraser.graph import Graph
from grapheraser.graph.arrays import as_ids
from grapheraser.partition.base import NODES, Assignment
from grapheraser.seeding import derive, generator, keyed_hash


@dataclass(frozen=True)
class RandomPartitioner:
    """A random permutation dealt round the shards: sizes differ by one node at the most."""

    name: str = "random"
    inputs: frozenset[str] = frozenset({NODES})
    strict: bool = True

    def __call__(self, graph: Graph, num_shards: int, *, capacity: int, seed: int) -> Assignment:
        del capacity  # dealing is balanced to within one node, whatever is allowed
        return Assignment(balanced_labels(graph.num_nodes, num_shards, seed))


@dataclass(frozen=True)
class HashPartitioner:
    """The shard is a keyed hash of the node id, so deletions leave nothing behind to know.

    The price is that sizes are balanced only on average.
    """

    name: str = "hash"
    inputs: frozenset[str] = frozenset()
    strict: bool = False

    def __call__(self, graph: Graph, num_shards: int, *, capacity: int, seed: int) -> Assignment:
        labels = self.place(graph.ids, num_shards, seed=seed)
        largest = int(np.bincount(labels, minlength=num_shards).max())
        notes: tuple[str, ...] = ()
        if largest > capacity:
            notes = (
                f"hash balances on average only: the largest shard holds {largest} nodes, "
                f"{largest - capacity} above {capacity}",
            )
        return Assignment(labels, notes=notes)

    def place(self, nodes: ArrayLike, num_shards: int, *, seed: int) -> NDArray[np.int32]:
        """The shard of any node id, present or not."""
        hashes = keyed_hash(as_ids(nodes), derive(seed, "partition", "hash"))
        return (hashes % np.uint64(num_shards)).astype(np.int32)


def balanced_labels(num_nodes: int, num_shards: int, seed: int) -> NDArray[np.int32]:
    """A random assignment whose shard sizes differ by one at the most."""
    order = generator(seed, "partition", "random").permutation(num_nodes)
    labels = np.empty(num_nodes, dtype=np.int32)
    labels[order] = np.arange(num_nodes) % num_shards
    return labels
