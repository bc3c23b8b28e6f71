"""Assign n nodes to k shards of limited size: greedily by distance, or at the least cost.

Greedy (Algorithm 2, without sorting all n x k pairs): to take all (node, shard) pairs by rising
distance and give each node to a shard with room is a stable matching in which nodes and shards rank
each other by the same list of pairs: by distance, then by the node's rank (a random order), then by
shard. That matching is unique, so deferred acceptance finds it, whatever the order of proposals.

Optimal: a transportation problem with k sinks. Every node starts at its nearest shard, which is
optimal without the capacity; then one node at a time leaves an over-full shard along the cheapest
chain of moves that ends in a shard with room (successive shortest paths). A chain is a path in a
graph of k shards whose arc a -> b costs as much as the cheapest move of a node from a to b, so a
step takes k^2 instead of the n^2 of the Hungarian method.
"""

from __future__ import annotations

import numpy as np

from grapheraser.kernels.compiled import compiled


@compiled
def greedy_assignment(distances, rank, capacity):  # type: ignore[no-untyped-def]
    """Assign every node to a shard, greedily by rising distance.

    ``distances`` are ``[n, k]`` without NaN, ``rank`` is a permutation that breaks ties, and ``k *
    capacity >= n``.
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


@compiled
def optimal_assignment(costs, capacity):  # type: ignore[no-untyped-def]
    """Assign every node to a shard so that the sum of the finite costs ``[n, k]`` is minimal."""
    n, k = costs.shape
    labels = np.empty(n, np.int32)
    sizes = np.zeros(k, np.int64)
    first = np.full(k, -1, np.int64)  # members of each shard: doubly linked lists
    following = np.full(n, -1, np.int64)
    previous = np.full(n, -1, np.int64)
    for i in range(n):
        best = 0
        for j in range(1, k):
            if costs[i, j] < costs[i, best]:
                best = j
        labels[i] = best
        sizes[best] += 1
        _link(i, best, first, following, previous)

    arc = np.full((k, k), np.inf)  # the cheapest move from a to b, and the node that makes it
    mover = np.full((k, k), -1, np.int64)
    for i in range(n):
        _offer(costs, i, labels[i], arc, mover)

    potential = np.zeros(k)
    sink_potential = 0.0
    distance = np.empty(k)
    came_from = np.empty(k, np.int64)
    settled = np.empty(k, np.bool_)
    for source in range(k):
        while sizes[source] > capacity:
            target, sink_distance = _shortest_path(
                arc, potential, sink_potential, sizes, capacity, source,
                distance, came_from, settled,
            )  # fmt: skip
            for j in range(k):
                potential[j] += min(distance[j], sink_distance)
            sink_potential += sink_distance
            # Carry out the moves from the far end, so that every arc is used as it was found.
            b = target
            while b != source:
                a = came_from[b]
                node = mover[a, b]
                _unlink(node, a, first, following, previous)
                _link(node, b, first, following, previous)
                labels[node] = b
                for j in range(k):
                    if mover[a, j] == node:
                        _renew(costs, a, j, first, following, arc, mover)
                _offer(costs, node, b, arc, mover)
                b = a
            sizes[source] -= 1
            sizes[target] += 1
    return labels


@compiled
def _shortest_path(  # type: ignore[no-untyped-def]
    arc, potential, sink_potential, sizes, capacity, source, distance, came_from, settled
):
    """Dijkstra's algorithm over the shards, with reduced costs, until room is reached.

    Returns: the shard with room, and its distance by reduced costs; ``distance`` and ``came_from``
    are filled in.
    """
    k = len(potential)
    for j in range(k):
        distance[j] = np.inf
        settled[j] = False
    distance[source] = 0.0
    target, sink_distance = -1, np.inf
    while True:
        a = -1
        for j in range(k):
            if not settled[j] and (a < 0 or distance[j] < distance[a]):
                a = j
        if a < 0 or distance[a] >= sink_distance:
            return target, sink_distance
        settled[a] = True
        if sizes[a] < capacity:
            there = distance[a] + max(potential[a] - sink_potential, 0.0)
            if there < sink_distance:
                target, sink_distance = a, there
        for b in range(k):
            if not settled[b]:
                # Rounding may make a reduced cost slightly negative.
                step = max(arc[a, b] + potential[a] - potential[b], 0.0)
                if distance[a] + step < distance[b]:
                    distance[b] = distance[a] + step
                    came_from[b] = a


@compiled
def _offer(costs, node, shard, arc, mover):  # type: ignore[no-untyped-def]
    """Let a member of a shard compete for the cheapest move to every other shard."""
    for j in range(costs.shape[1]):
        extra = costs[node, j] - costs[node, shard]
        if j != shard and (extra < arc[shard, j] or mover[shard, j] < 0):
            arc[shard, j] = extra
            mover[shard, j] = node


@compiled
def _renew(costs, a, b, first, following, arc, mover):  # type: ignore[no-untyped-def]
    """Find the cheapest move from a to b again."""
    arc[a, b] = np.inf
    mover[a, b] = -1
    node = first[a]
    while node >= 0:
        extra = costs[node, b] - costs[node, a]
        if extra < arc[a, b] or mover[a, b] < 0:
            arc[a, b] = extra
            mover[a, b] = node
        node = following[node]


@compiled
def _link(node, shard, first, following, previous):  # type: ignore[no-untyped-def]
    following[node] = first[shard]
    previous[node] = -1
    if first[shard] >= 0:
        previous[first[shard]] = node
    first[shard] = node


@compiled
def _unlink(node, shard, first, following, previous):  # type: ignore[no-untyped-def]
    if previous[node] >= 0:
        following[previous[node]] = following[node]
    else:
        first[shard] = following[node]
    if following[node] >= 0:
        previous[following[node]] = previous[node]
