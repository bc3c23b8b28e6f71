"""Label propagation: `lpa`, and the paper's balanced `blpa` (its Algorithm 1).

One round, from the labels that the last one left:

1. For every node u and every shard that holds one of its neighbours there is a profile
   ``<u, source, destination, count>``.
2. Profiles are taken by falling count. A node moves if its destination holds fewer than delta
   nodes at that moment; then its other profiles are void.

What Algorithm 1 leaves open is fixed here as follows.

- A profile whose destination is the node's own shard means that it stays, which needs no room and
  voids its other profiles. At equal counts staying comes first. So only destinations with *more*
  neighbours than the own shard matter, and only those are stored.
- Equal counts: by a random order of the nodes that is drawn afresh every round; for one node, by
  the destination, counted upwards from the node's rank in that order (modulo k).
- The last node of a shard stays, so that no shard is ever empty.
- A node without neighbours has no profile and stays where it was put at first.
- T rounds at the most; it ends sooner when nothing moves.

With delta = n / k exactly, all shards are full from the start and Algorithm 1 can't move a single
node. There, or wherever ``exchange`` is set, a profile whose destination is full waits until the
end of the round, and is carried out together with the first later one in the opposite direction.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from grapheraser.graph import Graph
from grapheraser.kernels.compiled import compiled
from grapheraser.partition.base import EDGES, NODES, Assignment
from grapheraser.partition.data_free import balanced_labels
from grapheraser.seeding import generator

MAX_ITERATIONS = 30


@dataclass(frozen=True)
class BlpaPartitioner:
    """Balanced label propagation, Algorithm 1 of the paper.

    Attributes:
        max_iterations: T.
        exchange: let nodes that wish for each other's full shard change places. None does so only
            where no shard has room for even one more node.
    """

    name: str = "blpa"
    max_iterations: int = MAX_ITERATIONS
    exchange: bool | None = None
    inputs: frozenset[str] = frozenset({NODES, EDGES})
    strict: bool = True

    def __call__(self, graph: Graph, num_shards: int, *, capacity: int, seed: int) -> Assignment:
        stuck = capacity * num_shards == graph.num_nodes and num_shards > 1
        exchange = stuck if self.exchange is None else self.exchange
        labels, moved = propagate(
            graph.indptr,
            graph.indices,
            balanced_labels(graph.num_nodes, num_shards, seed),
            num_shards,
            capacity=capacity,
            max_iterations=self.max_iterations,
            exchange=exchange,
            seed=seed,
        )
        notes: tuple[str, ...] = ()
        if stuck and self.exchange is None:
            notes = (
                f"{num_shards} shards of {capacity} have no room to spare for "
                f"{graph.num_nodes} nodes: nodes changed places in pairs",
            )
        return Assignment(labels, moved, converged=moved[-1:] == (0,), notes=notes)


@dataclass(frozen=True)
class LpaPartitioner:
    """Classical label propagation from k random labels: the same rounds without a capacity."""

    name: str = "lpa"
    max_iterations: int = MAX_ITERATIONS
    inputs: frozenset[str] = frozenset({NODES, EDGES})
    strict: bool = False

    def __call__(self, graph: Graph, num_shards: int, *, capacity: int, seed: int) -> Assignment:
        labels, moved = propagate(
            graph.indptr,
            graph.indices,
            balanced_labels(graph.num_nodes, num_shards, seed),
            num_shards,
            capacity=graph.num_nodes,
            max_iterations=self.max_iterations,
            exchange=False,
            seed=seed,
        )
        return Assignment(
            labels, moved, converged=moved[-1:] == (0,), notes=overfull(labels, capacity)
        )


def overfull(labels: NDArray[np.integer], capacity: int) -> tuple[str, ...]:
    """The note of a partition whose largest shard is above the capacity; empty where none is."""
    sizes = np.bincount(labels)
    if sizes.max() <= capacity:
        return ()
    return (
        f"{int((sizes > capacity).sum())} shards hold more than {capacity} nodes; "
        f"the largest holds {sizes.max()}",
    )


def propagate(
    indptr: NDArray[np.int64],
    indices: NDArray[np.int32],
    labels: NDArray[np.int32],
    num_shards: int,
    *,
    capacity: int,
    max_iterations: int,
    exchange: bool,
    seed: int,
) -> tuple[NDArray[np.int32], tuple[int, ...]]:
    """Rounds of (balanced) label propagation over a CSR graph.

    Args:
        indptr: where the neighbours of each node begin in ``indices``.
        indices: the neighbours of all nodes, one after the other.
        labels: the initial shards ``[n]``; not changed.
        num_shards: k.
        capacity: delta.
        max_iterations: T.
        exchange: see the module's text.
        seed: of the order of the nodes.

    Returns:
        The labels, and how many nodes moved in each round.
    """
    labels = labels.copy()
    sizes = np.bincount(labels, minlength=num_shards)
    moved: list[int] = []
    for step in range(max_iterations):
        order = generator(seed, "partition", "blpa", step).permutation(len(labels))
        nodes, destinations = profiles(indptr, indices, labels, order, num_shards)
        carry_out = _move_or_exchange if exchange else _move
        moved.append(int(carry_out(nodes, destinations, labels, sizes, capacity)))
        if moved[-1] == 0:
            break
    return labels, tuple(moved)


@compiled
def profiles(indptr, indices, labels, order, num_shards):  # type: ignore[no-untyped-def]
    """All profiles that could make a node leave, by falling count, ties as the module says.

    Args:
        indptr: where the neighbours of each node begin in ``indices``.
        indices: the neighbours of all nodes, one after the other.
        labels: the shard of each node.
        order: the nodes in this round's random order.
        num_shards: k.

    Returns:
        nodes, destinations: one entry for each profile.
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
    # A counting sort. It is stable, so reading nodes by rank makes that the order among equals.
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
    """The shard other than its own that holds most neighbours of each node, ties as in `profiles`.

    Returns:
        destinations: int32 ``[n]``.
        gains: int32 ``[n]``, how many more neighbours there are than in the own shard.
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
    """Sort the first ``length`` values in place; there are seldom more than a handful."""
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


@compiled
def _move(nodes, destinations, labels, sizes, capacity):  # type: ignore[no-untyped-def]
    """Carry out the profiles in order; changes ``labels`` and ``sizes``, returns the moves."""
    done = np.zeros(len(labels), np.bool_)
    moves = 0
    for i in range(len(nodes)):
        u, to = nodes[i], destinations[i]
        if not done[u] and sizes[to] < capacity and sizes[labels[u]] > 1:
            sizes[to] += 1
            sizes[labels[u]] -= 1
            labels[u] = to
            done[u] = True
            moves += 1
    return moves


@compiled
def _move_or_exchange(nodes, destinations, labels, sizes, capacity):  # type: ignore[no-untyped-def]
    """As `_move`; a profile without room waits for the first one in the opposite direction."""
    k = len(sizes)
    done = np.zeros(len(labels), np.bool_)
    # Queues of waiting profiles, one for each (source, destination), in a hash table.
    num_slots = 16
    while num_slots < 2 * len(nodes):
        num_slots *= 2
    pair_of = np.full(num_slots, -1, np.int64)
    first = np.full(num_slots, -1, np.int32)
    last = np.full(num_slots, -1, np.int32)
    following = np.full(len(nodes), -1, np.int32)
    moves = 0
    for i in range(len(nodes)):
        u, to = nodes[i], destinations[i]
        if done[u]:
            continue
        source = labels[u]
        if sizes[to] < capacity and sizes[source] > 1:
            sizes[to] += 1
            sizes[source] -= 1
            labels[u] = to
            done[u] = True
            moves += 1
            continue
        slot = _slot(pair_of, np.int64(to) * k + source)
        j = first[slot]
        while j >= 0 and done[nodes[j]]:
            j = following[j]
        first[slot] = j
        if j >= 0:
            v = nodes[j]
            first[slot] = following[j]
            labels[u], labels[v] = to, source
            done[u] = done[v] = True
            moves += 2
            continue
        slot = _slot(pair_of, np.int64(source) * k + to)
        pair_of[slot] = np.int64(source) * k + to
        if first[slot] < 0:
            first[slot] = i
        else:
            following[last[slot]] = i
        last[slot] = i
    return moves


@compiled
def _slot(pair_of, pair):  # type: ignore[no-untyped-def]
    """Where a pair is in the table, or the free place where it belongs."""
    mask = len(pair_of) - 1
    slot = (pair * 0x9E3779B97F4A7C1 >> 20) & mask
    while pair_of[slot] != -1 and pair_of[slot] != pair:
        slot = (slot + 1) & mask
    return slot
