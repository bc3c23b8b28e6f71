"""`ldg`: nodes are placed one by one as they stream past (linear deterministic greedy).

A node joins the shard that holds most of its neighbours, each counted less the fuller the shard is:
``neighbours * (1 - size / capacity)``. On a tie the smaller shard wins, then the one that comes
first from a hash of the node on. A node without neighbours in a shard that has room joins the
smallest one, and so do the last nodes where as many shards are empty.

The stream passes several times in the order of the ids. A pass begins with empty shards; of the
neighbours that have not come by yet it knows where they were in the pass before. So it holds the
shard of each node and the neighbours of one block of nodes, and the graph may be larger than
memory.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from grapheraser.graph import Graph
from grapheraser.kernels.compiled import compiled
from grapheraser.kernels.hashing import paired
from grapheraser.partition.base import EDGES, NODES, Assignment
from grapheraser.seeding import derive

PASSES = 5


@dataclass(frozen=True)
class LdgPartitioner:
    """Streams the nodes past the shards, several times."""

    name: str = "ldg"
    passes: int = PASSES  # how often
    inputs: frozenset[str] = frozenset({NODES, EDGES})
    strict: bool = True

    def __call__(self, graph: Graph, num_shards: int, *, capacity: int, seed: int) -> Assignment:
        key = np.uint64(derive(seed, "partition", "ldg"))
        labels, moved = np.full(graph.num_nodes, -1, dtype=np.int32), []
        for _ in range(self.passes):
            before = labels.copy()
            sizes = np.zeros(num_shards, dtype=np.int64)
            counts = np.zeros(num_shards, dtype=np.int64)
            cursor = np.array([0, 0, num_shards, graph.num_nodes])
            for low, indptr, indices in graph.adjacency_blocks():
                ids = graph.ids[low : low + len(indptr) - 1]
                _place(low, ids, indptr, indices, labels, sizes, counts, cursor, capacity, key)
            moved.append(int((labels != before).sum()))
            if moved[-1] == 0:
                break
        return Assignment(labels, tuple(moved), converged=moved[-1] == 0)


@compiled
def _place(low, ids, indptr, indices, labels, sizes, counts, cursor, capacity, key):  # type: ignore[no-untyped-def]
    """Place the nodes of one block; updates ``labels``, ``sizes`` and ``cursor``.

    The latter is what `_smallest` goes by, how many shards are empty and how many nodes are left.
    """
    k = len(sizes)
    near = np.empty(k, dtype=np.int64)
    for row in range(len(ids)):
        found = 0
        for e in range(indptr[row], indptr[row + 1]):
            shard = labels[indices[e]]
            if shard >= 0:
                if counts[shard] == 0:
                    near[found] = shard
                    found += 1
                counts[shard] += 1
        best, score, first = np.int64(-1), np.int64(0), np.int64(0)
        start = np.int64(paired(key, np.uint64(ids[row])) % np.uint64(k))
        for i in range(found):
            shard = near[i]
            # In whole numbers: the share of room that is left, times the capacity.
            worth, order = counts[shard] * (capacity - sizes[shard]), (shard - start) % k
            counts[shard] = 0
            if worth <= 0 or worth < score:
                continue
            same = best >= 0 and worth == score
            smaller = not same or sizes[shard] < sizes[best]
            if smaller or (sizes[shard] == sizes[best] and order < first):
                best, score, first = shard, worth, order
        if best < 0 or cursor[3] <= cursor[2]:
            best = _smallest(sizes, cursor)
        cursor[2] -= sizes[best] == 0
        cursor[3] -= 1
        labels[low + row] = best
        sizes[best] += 1


@compiled
def _smallest(sizes, cursor):  # type: ignore[no-untyped-def]
    """A smallest shard; ``cursor`` has the size that it had last time, and where to look from."""
    while True:
        while cursor[1] < len(sizes):
            if sizes[cursor[1]] <= cursor[0]:
                return cursor[1]
            cursor[1] += 1
        cursor[0] += 1
        cursor[1] = 0
