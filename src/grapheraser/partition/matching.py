"""The greedy assignment of Algorithm 2, without sorting all n x k pairs.

To take all (node, shard) pairs by rising distance and give each node to a shard with room is a
stable matching in which nodes and shards rank each other by the same list of pairs. That matching
is unique, so deferred acceptance finds it, whatever the order of the proposals.

The list is ordered by distance, then by the node's rank (a random order), then by shard.
"""

from __future__ import annotations

import numpy as np

from grapheraser.kernels.compiled import compiled


@compiled
def greedy_assignment(distances, rank, capacity):  # type: ignore[no-untyped-def]
    """Assign every node to a shard, greedily by rising distance.

    Args:
        distances: float ``[n, k]``, no NaN.
        rank: int ``[n]``, a permutation that breaks ties.
        capacity: the most nodes that a shard may hold; ``k * capacity >= n``.

    Returns:
        int32 ``[n]``, the shard of each node.
    """
    n, k = distances.shape
    labels = np.full(n, -1, np.int32)
    sizes = np.zeros(k, np.int64)
    # A shard with room keeps its members in a linked list, a full one in a heap, worst on top.
    newest = np.full(k, -1, np.int64)
    older = np.full(n, -1, np.int64)
    heaps = np.empty(n, np.int64)
    heap_at = np.full(k, -1, np.int64)
    heaps_used = 0
    for node in range(n):
        free = node
        while free >= 0:
            j = _best_willing(distances, rank, free, heap_at, heaps)
            labels[free] = j
            if heap_at[j] < 0:
                older[free] = newest[j]
                newest[j] = free
                sizes[j] += 1
                free = -1
                if sizes[j] == capacity:
                    # Full shards stay full, so all heaps together hold at most n nodes.
                    heap_at[j] = heaps_used
                    member = newest[j]
                    while member >= 0:
                        heaps[heaps_used] = member
                        heaps_used += 1
                        member = older[member]
                    heap = heaps[heap_at[j] : heaps_used]
                    for top in range(capacity // 2, -1, -1):
                        _sift_down(heap, top, distances, rank, j)
            else:
                heap = heaps[heap_at[j] : heap_at[j] + capacity]
                rejected = heap[0]
                heap[0] = free
                _sift_down(heap, 0, distances, rank, j)
                labels[rejected] = -1
                free = rejected
    return labels


@compiled
def _best_willing(distances, rank, node, heap_at, heaps):  # type: ignore[no-untyped-def]
    """The nearest shard that has room, or whose worst member the node beats.

    A shard's worst member only improves, so a shard that rejects a node rejects it for good.
    """
    best = -1
    for j in range(distances.shape[1]):
        distance = distances[node, j]
        if best >= 0 and distance >= distances[node, best]:
            continue
        if heap_at[j] < 0:
            best = j
        else:
            worst = heaps[heap_at[j]]
            if distance < distances[worst, j] or (
                distance == distances[worst, j] and rank[node] < rank[worst]
            ):
                best = j
    return best


@compiled
def _sift_down(heap, top, distances, rank, shard):  # type: ignore[no-untyped-def]
    """Restore the heap below ``top``: the largest (distance, rank) comes first."""
    size = len(heap)
    while True:
        largest = top
        for child in (2 * top + 1, 2 * top + 2):
            if child < size:
                a, b = heap[child], heap[largest]
                if distances[a, shard] > distances[b, shard] or (
                    distances[a, shard] == distances[b, shard] and rank[a] > rank[b]
                ):
                    largest = child
        if largest == top:
            return
        heap[top], heap[largest] = heap[largest], heap[top]
        top = largest
