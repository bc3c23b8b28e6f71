"""The optimal assignment of n nodes to k shards of limited size.

This is a transportation problem with k sinks. Every node starts at its nearest shard, which is
optimal without the capacity; then one node at a time leaves an over-full shard along the cheapest
chain of moves that ends in a shard with room (successive shortest paths). A chain is a path in a
graph of k shards whose arc a -> b costs as much as the cheapest move of a node from a to b, so a
step takes k^2 instead of the n^2 of the Hungarian method.
"""

from __future__ import annotations

import numpy as np

from grapheraser.kernels.compiled import compiled


@compiled
def optimal_assignment(costs, capacity):  # type: ignore[no-untyped-def]
    """Assign every node to a shard so that the sum of the costs is minimal.

    Args:
        costs: float64 ``[n, k]``, finite.
        capacity: the most nodes that a shard may hold; ``k * capacity >= n``.

    Returns:
        int32 ``[n]``, the shard of each node.
    """
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
