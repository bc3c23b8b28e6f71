"""The shards that nodes would move to, by their neighbours' labels; see `label_propagation`."""

from __future__ import annotations

import numpy as np

from grapheraser.kernels.compiled import compiled


@compiled
def profiles(indptr, indices, labels, order, num_shards):  # type: ignore[no-untyped-def]
    """All profiles that could make a node move, by falling count, ties as in `label_propagation`.

    Args:
        indptr: where the neighbours of each node begin in ``indices``.
        indices: the neighbours of all nodes, one after the other.
        labels: the shard of each node.
        order: the nodes in this round's random order.
        num_shards: k.

    Returns:
        nodes, destinations: one entry per profile.
    """
    n = len(order)
    rank_of = np.empty(n, np.int64)
    for rank in range(n):
        rank_of[order[rank]] = rank
    starts = np.empty(n + 1, np.int64)
    destinations = np.empty(len(indices), np.int32)
    counts = np.empty(len(indices), np.int32)
    in_shard = np.zeros(num_shards, np.int32)
    highest = 0
    for u in range(n):
        highest = max(highest, indptr[u + 1] - indptr[u])
    touched = np.empty(min(highest, num_shards) + 1, np.int64)
    of_count = np.zeros(highest + 2, np.int64)
    total = 0
    for u in range(n):
        starts[u] = total
        rank = rank_of[u]
        num_touched = 0
        for e in range(indptr[u], indptr[u + 1]):
            shard = labels[indices[e]]
            if in_shard[shard] == 0:
                touched[num_touched] = shard
                num_touched += 1
            in_shard[shard] += 1
        own = in_shard[labels[u]]
        num_better = 0
        for i in range(num_touched):
            shard = touched[i]
            if in_shard[shard] > own:
                touched[num_better] = (shard - rank) % num_shards
                num_better += 1
            else:
                in_shard[shard] = 0
        in_shard[labels[u]] = 0
        _sort_few(touched, num_better)
        for i in range(num_better):
            shard = (touched[i] + rank) % num_shards
            destinations[total] = shard
            counts[total] = in_shard[shard]
            of_count[in_shard[shard]] += 1
            in_shard[shard] = 0
            total += 1
    starts[n] = total
    # A counting sort: it is stable, so nodes read by rank are in that order within a count.
    at = 0
    for count in range(highest, 0, -1):
        at += of_count[count]
        of_count[count] = at - of_count[count]
    sorted_nodes = np.empty(total, np.int32)
    sorted_destinations = np.empty(total, np.int32)
    for rank in range(n):
        u = order[rank]
        for i in range(starts[u], starts[u + 1]):
            place = of_count[counts[i]]
            of_count[counts[i]] += 1
            sorted_nodes[place] = u
            sorted_destinations[place] = destinations[i]
    return sorted_nodes, sorted_destinations


@compiled
def best_destinations(indptr, indices, labels, order, num_shards):  # type: ignore[no-untyped-def]
    """The shard that holds most neighbours of each node, ties as in `profiles`.

    Returns:
        destinations: int32 ``[n]``.
        gains: int32 ``[n]``, how many more neighbours it holds than the node's own shard.
    """
    in_shard = np.zeros(num_shards, np.int32)
    destinations = labels.copy()
    gains = np.zeros(len(labels), np.int32)
    for rank in range(len(order)):
        u = order[rank]
        for e in range(indptr[u], indptr[u + 1]):
            in_shard[labels[indices[e]]] += 1
        own = in_shard[labels[u]]
        best = labels[u]
        for e in range(indptr[u], indptr[u + 1]):
            shard = labels[indices[e]]
            if in_shard[shard] > in_shard[best] or (
                in_shard[shard] == in_shard[best]
                and best != labels[u]
                and (shard - rank) % num_shards < (best - rank) % num_shards
            ):
                best = shard
        destinations[u] = best
        gains[u] = in_shard[best] - own
        for e in range(indptr[u], indptr[u + 1]):
            in_shard[labels[indices[e]]] = 0
    return destinations, gains


@compiled
def _sort_few(values, length):  # type: ignore[no-untyped-def]
    """Sort the first ``length`` values in place; usually there are a few."""
    if length > 64:
        values[:length] = np.sort(values[:length])
        return
    for i in range(1, length):
        value = values[i]
        j = i
        while j > 0 and values[j - 1] > value:
            values[j] = values[j - 1]
            j -= 1
        values[j] = value
