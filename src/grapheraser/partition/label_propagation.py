"""Label propagation: `lpa`, and the paper's balanced `blpa` (its Algorithm 1).

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
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from grapheraser.graph import Graph
from grapheraser.kernels.compiled import compiled
from grapheraser.partition.base import EDGES, MAX_ITERATIONS, NODES, Assignment, overfull
from grapheraser.partition.data_free import balanced_labels
from grapheraser.partition.profiles import profiles
from grapheraser.seeding import generator


@dataclass(frozen=True)
class BlpaPartitioner:
    """Balanced label propagation, Algorithm 1 of the paper.

    Attributes:
        max_iterations: T.
        exchange: let nodes that wish for each other's full shard change places. None: only where
            no shard has room for another node.
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
    """Run (balanced) label propagation on a CSR graph.

    Args:
        indptr: where the neighbours of each node begin in ``indices``.
        indices: the neighbours of all nodes, one after the other.
        labels: the initial shards ``[n]``, left unchanged.
        num_shards: k.
        capacity: delta.
        max_iterations: T.
        exchange: see the module's docstring.
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
def _move(nodes, destinations, labels, sizes, capacity):  # type: ignore[no-untyped-def]
    """Carry out the profiles in order; update ``labels`` and ``sizes``, return the moves."""
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
    """Like `_move`, but a profile without room waits for one in the opposite direction."""
    k = len(sizes)
    done = np.zeros(len(labels), np.bool_)
    # One queue of waiting profiles per (source, destination), in a hash table.
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
    """The slot of a pair in the table, or the free slot for it."""
    mask = len(pair_of) - 1
    slot = (pair * 0x9E3779B97F4A7C1 >> 20) & mask
    while pair_of[slot] != -1 and pair_of[slot] != pair:
        slot = (slot + 1) & mask
    return slot
