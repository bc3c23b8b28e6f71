"""Label propagation: `lpa`, the paper's balanced `blpa` (its Algorithm 1), and `blpa-lp`.

One round starts from the labels of the last:

1. Every node u has one profile ``<u, source, destination, count>`` for every shard that holds some
   of its neighbours; the count says how many.
2. Profiles are taken by falling count. A node moves if its destination holds fewer than delta
   nodes at that moment; its other profiles are then dropped.

Algorithm 1 leaves some details open. Here they are:

- A profile whose destination is the node's own shard means that the node stays: it needs no room,
  and the other profiles are dropped. On a tie, staying comes first. So only destinations with
  *more* neighbours than the own shard matter, and only those are stored.
- Ties between nodes go by a random order of the nodes, drawn anew every round; ties between
  profiles of one node go by destination, counted upwards from the node's rank (modulo k).
- The last node of a shard stays, so no shard becomes empty.
- A node without neighbours has no profile and stays in its initial shard.
- There are at most T rounds; the run ends when nothing moves.

With delta = n / k exactly, all shards are full from the start and Algorithm 1 can't move any node.
There, or where ``exchange`` is set, a profile whose destination is full waits until the end of the
round for the first profile in the opposite direction; the two nodes then change places.

`blpa-lp`, after Ugander and Backstrom (2013), chooses the moves of a round by a linear programme.
Each node wishes for the shard that holds most of its neighbours, if it holds more than the node's
own shard; the difference is the gain. For each pair of shards (a, b) the nodes of a that wish for b
are sorted by falling gain, so the gain of moving the first x of them is a concave,
piecewise linear function of x. The programme maximises the sum of these functions, subject to every
shard ending with 1 to delta nodes. Gains are integers, so every distinct gain of a pair is one
variable, bounded by the number of nodes that have it. The programme is a flow between shards:
HiGHS's simplex method ends in a vertex, and vertices are integral.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from grapheraser.arrays import Ints, Ints32
from grapheraser.errors import PartitionError
from grapheraser.graph import Graph
from grapheraser.kernels.compiled import compiled
from grapheraser.kernels.neighbourhoods import put_in_order
from grapheraser.partition.base import EDGES, MAX_ITERATIONS, NODES, Assignment, overfull
from grapheraser.partition.data_free import balanced_labels
from grapheraser.seeding import generator


@dataclass(frozen=True)
class BlpaPartitioner:
    """Balanced label propagation, Algorithm 1 of the paper."""

    name: str = "blpa"
    max_iterations: int = MAX_ITERATIONS  # T
    # Let nodes that wish for each other's full shard change places. None: only where no shard has
    # room for another node.
    exchange: bool | None = None
    inputs: frozenset[str] = frozenset({NODES, EDGES})
    strict: bool = True

    def __call__(self, graph: Graph, num_shards: int, *, capacity: int, seed: int) -> Assignment:
        stuck = capacity * num_shards == graph.num_nodes and num_shards > 1
        exchange = stuck if self.exchange is None else self.exchange
        rounds = self.max_iterations, capacity, exchange
        labels, moved = _propagated(graph, num_shards, seed, *rounds)
        notes: tuple[str, ...] = ()
        if stuck and self.exchange is None:
            notes = (
                f"{graph.num_nodes} nodes fill {num_shards} shards of {capacity} completely: "
                "nodes changed places in pairs",
            )
        return Assignment(labels, moved, converged=moved[-1:] == (0,), notes=notes)


@dataclass(frozen=True)
class LpaPartitioner:
    """Classical label propagation from k random labels: rounds without a capacity."""

    name: str = "lpa"
    max_iterations: int = MAX_ITERATIONS
    inputs: frozenset[str] = frozenset({NODES, EDGES})
    strict: bool = False

    def __call__(self, graph: Graph, num_shards: int, *, capacity: int, seed: int) -> Assignment:
        rounds = self.max_iterations, graph.num_nodes, False
        labels, moved = _propagated(graph, num_shards, seed, *rounds)
        notes = overfull(labels, capacity)
        return Assignment(labels, moved, converged=moved[-1:] == (0,), notes=notes)


def _propagated(
    graph: Graph, num_shards: int, seed: int, max_iterations: int, capacity: int, exchange: bool
) -> tuple[Ints32, tuple[int, ...]]:
    """Return the labels, and how many nodes moved in each round."""
    labels = balanced_labels(graph.num_nodes, num_shards, seed)
    sizes = np.bincount(labels, minlength=num_shards)
    moved: list[int] = []
    for step in range(max_iterations):
        order = generator(seed, "partition", "blpa", step).permutation(len(labels))
        nodes, destinations = profiles(graph.indptr, graph.indices, labels, order, num_shards)
        moved.append(int(_move(nodes, destinations, labels, sizes, capacity, exchange)))
        if moved[-1] == 0:
            break
    return labels, tuple(moved)


@compiled
def _move(nodes, destinations, labels, sizes, capacity, exchange):  # type: ignore[no-untyped-def]
    """Move nodes by their profiles, in order; update ``labels`` and ``sizes``, count the moves.

    With ``exchange`` a profile without room waits for one in the opposite direction.
    """
    k = len(sizes)
    done = np.zeros(len(labels), np.bool_)
    # One queue of waiting profiles per (source, destination), in a hash table.
    num_slots = 16
    while exchange and num_slots < 2 * len(nodes):
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
        if not exchange:
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
    """The slot of a pair in the table, or the free slot for it."""
    mask = len(pair_of) - 1
    slot = (pair * 0x9E3779B97F4A7C1 >> 20) & mask
    while pair_of[slot] != -1 and pair_of[slot] != pair:
        slot = (slot + 1) & mask
    return slot


@compiled
def profiles(indptr, indices, labels, order, num_shards):  # type: ignore[no-untyped-def]
    """All profiles that could make a node move, by falling count, ties as in the text above.

    ``order`` holds the nodes in this round's random order. Returns nodes and destinations, one
    entry per profile.
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
def _sort_few(values, length):  # type: ignore[no-untyped-def]
    """Sort the first ``length`` values in place; usually there are a few."""
    if length > 64:
        values[:length] = np.sort(values[:length])
    else:
        put_in_order(values, length)


def best_destinations(
    indptr: Ints, indices: Ints32, labels: Ints32, order: Ints, num_shards: int
) -> tuple[Ints32, Ints32]:
    """The shard with most neighbours of each node, ties as in `profiles`; and how many more."""
    movers, wishes = profiles(indptr, indices, labels, order, num_shards)
    nodes, first = np.unique(movers, return_index=True)
    destinations = labels.copy()
    destinations[nodes] = wishes[first]
    rows = np.repeat(np.arange(len(labels)), np.diff(indptr))
    around, size = labels[indices], len(labels)
    there = np.bincount(rows, around == destinations[rows], minlength=size)
    here = np.bincount(rows, around == labels[rows], minlength=size)
    return destinations, (there - here).astype(np.int32)


@dataclass(frozen=True)
class BlpaLpPartitioner:
    """Balanced label propagation whose rounds make the best moves, by linear programming."""

    name: str = "blpa-lp"
    max_iterations: int = MAX_ITERATIONS
    inputs: frozenset[str] = frozenset({NODES, EDGES})
    strict: bool = True

    def __call__(self, graph: Graph, num_shards: int, *, capacity: int, seed: int) -> Assignment:
        labels = balanced_labels(graph.num_nodes, num_shards, seed)
        moved: list[int] = []
        for step in range(self.max_iterations):
            order = generator(seed, "partition", "blpa-lp", step).permutation(graph.num_nodes)
            wishes, gains = best_destinations(
                graph.indptr, graph.indices, labels, order, num_shards
            )
            movers = chosen_moves(labels, wishes, gains, order, num_shards, capacity)
            labels[movers] = wishes[movers]
            moved.append(len(movers))
            if not len(movers):
                break
        return Assignment(labels, tuple(moved), converged=moved[-1] == 0)


def chosen_moves(
    labels: Ints32, wishes: Ints32, gains: Ints32, order: Ints, num_shards: int, capacity: int
) -> Ints:
    """The nodes that move: the choice of largest total gain under the capacity.

    ``wishes`` are the shards that nodes wish for, ``gains`` how many more neighbours they have
    there (who gains nothing stays), ``order`` breaks ties within a pair of shards.
    """
    nodes = order[gains[order] > 0]
    if not len(nodes):
        return nodes
    pairs = labels[nodes].astype(np.int64) * num_shards + wishes[nodes]
    by_group = np.lexsort((-gains[nodes], pairs))
    nodes, pairs = nodes[by_group], pairs[by_group]
    gain = gains[nodes]
    new_group = np.ones(len(nodes), dtype=bool)
    new_group[1:] = (pairs[1:] != pairs[:-1]) | (gain[1:] != gain[:-1])
    starts = np.flatnonzero(new_group)
    counts = np.diff(np.append(starts, len(nodes)))
    flows = best_flows(
        pairs[starts] // num_shards,
        pairs[starts] % num_shards,
        gain[starts],
        counts,
        np.bincount(labels, minlength=num_shards),
        capacity,
    )
    position = np.arange(len(nodes)) - np.repeat(starts, counts)
    return nodes[position < np.repeat(flows, counts)]


def best_flows(
    sources: NDArray[np.integer],
    targets: NDArray[np.integer],
    gain: NDArray[np.integer],
    counts: NDArray[np.integer],
    sizes: NDArray[np.integer],
    capacity: int,
) -> Ints:
    """Return how many nodes of each group move for the largest total gain.

    A group holds ``counts`` nodes of one shard that wish for one other and gain the same each. No
    shard ends above ``capacity``, or empty.
    """
    from scipy.optimize import linprog  # takes long to import

    num_groups, k = len(sources), len(sizes)
    columns = np.arange(num_groups)
    entries = np.concatenate([np.ones(num_groups), -np.ones(num_groups)])
    change = sp.csr_array(
        (entries, (np.concatenate([targets, sources]), np.concatenate([columns, columns]))),
        shape=(k, num_groups),
    )
    bounds: Any = np.stack([np.zeros(num_groups), counts], axis=1)
    result = linprog(
        -gain.astype(np.float64),
        A_ub=sp.vstack([change, -change], format="csr"),
        b_ub=np.concatenate([capacity - sizes, sizes - 1]),
        bounds=bounds,
        method="highs-ds",
    )
    if result.x is None:
        raise PartitionError(f"the linear programme of 'blpa-lp' failed: {result.message}")
    return np.rint(result.x).astype(np.int64)
