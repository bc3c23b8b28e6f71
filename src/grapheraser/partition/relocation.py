"""`blpa-lp`: label propagation whose moves are chosen by a linear programme.

After Ugander and Backstrom (2013). In every round each node names the one shard that holds most of
its neighbours, if that is more than its own shard does; the difference is its gain. For each pair
of shards (a, b) the nodes of a that wish for b are lined up by falling gain, so the gain of moving
the first x of them is a concave, piecewise linear function of x. The programme maximises the sum
of these functions under the condition that no shard ends above delta or empty.

Gains are integers, so every distinct gain of a pair is one variable, bounded by the number of
nodes that have it. The programme is a flow between shards: HiGHS's simplex method ends in a vertex,
and vertices are integral.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.optimize import linprog

from grapheraser.errors import PartitionError
from grapheraser.graph import Graph
from grapheraser.partition.base import EDGES, NODES, Assignment
from grapheraser.partition.data_free import balanced_labels
from grapheraser.partition.label_propagation import MAX_ITERATIONS, best_destinations
from grapheraser.seeding import generator


@dataclass(frozen=True)
class BlpaLpPartitioner:
    """Balanced label propagation with the best moves of each round, by linear programming."""

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
    labels: NDArray[np.int32],
    wishes: NDArray[np.int32],
    gains: NDArray[np.int32],
    order: NDArray[np.int64],
    num_shards: int,
    capacity: int,
) -> NDArray[np.int64]:
    """The nodes that move: the choice of largest total gain that keeps the sizes.

    Args:
        labels: the shard of each node.
        wishes: the shard that each node wishes for.
        gains: how many more neighbours it has there; those of 0 or less don't move.
        order: a permutation of the nodes; among equals of one pair the first ones move.
        num_shards: k.
        capacity: delta.
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
) -> NDArray[np.int64]:
    """How many nodes of each group move, for the largest total gain.

    Args:
        sources: the shard that each group of nodes is in.
        targets: the shard that it wishes for.
        gain: what each of its nodes gains.
        counts: its number of nodes.
        sizes: of the shards, now.
        capacity: the most that a shard may hold afterwards; the least is one node.
    """
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
