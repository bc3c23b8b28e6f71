"""Bring over-full shards down to the capacity, adding as little as possible to the edge cut."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from grapheraser.graph import Graph
from grapheraser.kernels.compiled import compiled
from grapheraser.seeding import generator


def repaired(
    graph: Graph, labels: NDArray[np.integer], num_shards: int, *, capacity: int, seed: int
) -> tuple[NDArray[np.int32], int]:
    """Move nodes out of over-full shards, and one node into every empty shard.

    The nodes of an over-full shard that lose the fewest neighbours move first (ties in a random
    order), each to the shard with room that holds most of its neighbours; on a tie, to the
    smallest.

    Returns:
        The new labels, and how many nodes were moved.
    """
    rank = generator(seed, "partition", "repair").permutation(graph.num_nodes)
    new = np.asarray(labels).astype(np.int32)
    sizes = np.bincount(new, minlength=num_shards)
    for shard in np.flatnonzero(sizes > capacity):
        members = np.flatnonzero(new == shard)
        losses = _losses(graph.indptr, graph.indices, new, sizes, capacity, members)
        leaving = members[np.lexsort((rank[members], losses))][: sizes[shard] - capacity]
        _move_out(graph.indptr, graph.indices, new, sizes, capacity, leaving)
    for shard in np.flatnonzero(sizes == 0):
        donor = int(sizes.argmax())
        members = np.flatnonzero(new == donor)
        own = _neighbours_inside(graph.indptr, graph.indices, new, members)
        node = members[np.lexsort((rank[members], own))[0]]
        new[node] = shard
        sizes[donor] -= 1
        sizes[shard] += 1
    return new, int((new != labels).sum())


@compiled
def _neighbours_inside(indptr, indices, labels, members):  # type: ignore[no-untyped-def]
    """How many neighbours each member has in its own shard."""
    inside = np.zeros(len(members), np.int64)
    for m in range(len(members)):
        u = members[m]
        for e in range(indptr[u], indptr[u + 1]):
            inside[m] += labels[indices[e]] == labels[u]
    return inside


@compiled
def _best_room(indptr, indices, labels, sizes, capacity, u, counts):  # type: ignore[no-untyped-def]
    """The shard with room that holds most neighbours of u; on a tie, the smallest."""
    for e in range(indptr[u], indptr[u + 1]):
        counts[labels[indices[e]]] += 1
    best = -1
    for j in range(len(sizes)):
        if sizes[j] < capacity and (
            best < 0
            or counts[j] > counts[best]
            or (counts[j] == counts[best] and sizes[j] < sizes[best])
        ):
            best = j
    loss = counts[labels[u]] - counts[best]
    for e in range(indptr[u], indptr[u + 1]):
        counts[labels[indices[e]]] = 0
    return best, loss


@compiled
def _losses(indptr, indices, labels, sizes, capacity, members):  # type: ignore[no-untyped-def]
    """How many neighbours each member would lose by moving to the best shard with room."""
    counts = np.zeros(len(sizes), np.int64)
    losses = np.empty(len(members), np.int64)
    for m in range(len(members)):
        _, losses[m] = _best_room(indptr, indices, labels, sizes, capacity, members[m], counts)
    return losses


@compiled
def _move_out(indptr, indices, labels, sizes, capacity, leaving):  # type: ignore[no-untyped-def]
    """Move these nodes one by one, each to the best shard at that moment."""
    counts = np.zeros(len(sizes), np.int64)
    for u in leaving:
        best, _ = _best_room(indptr, indices, labels, sizes, capacity, u, counts)
        sizes[labels[u]] -= 1
        sizes[best] += 1
        labels[u] = best
