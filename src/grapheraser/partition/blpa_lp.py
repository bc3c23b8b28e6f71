"""`blpa-lp`: label propagation whose moves are chosen by a linear programme.

After Ugander and Backstrom (2013). In every round each node wishes for the shard that holds most of
its neighbours, if it holds more than the node's own shard; the difference is the gain. For each
pair of shards (a, b) the nodes of a that wish for b are sorted by falling gain, so the gain of
moving the first x of them is a concave, piecewise linear function of x. The programme maximises the
sum of these functions, subject to every shard ending with 1 to delta nodes.

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

from grapheraser.errors import PartitionError
from grapheraser.graph import Graph
from grapheraser.partition.base import EDGES, MAX_ITERATIONS, NODES, Assignment
from grapheraser.partition.data_free import balanced_labels
from grapheraser.partition.profiles import best_destinations
from grapheraser.seeding import generator


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
    labels: NDArray[np.int32],
    wishes: NDArray[np.int32],
    gains: NDArray[np.int32],
    order: NDArray[np.int64],
    num_shards: int,
    capacity: int,
) -> NDArray[np.int64]:
    """The nodes that move: the choice of largest total gain under the capacity.

    Args:
        labels: the shard of each node.
        wishes: the shard that each node wishes for.
        gains: how many more neighbours it has there; nodes that gain nothing stay.
        order: a permutation of the nodes that breaks ties within a pair of shards.
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
    """How many nodes of each group move for the largest total gain.

    Args:
        sources: the shard of each group of nodes.
        targets: the shard that the group wishes for.
        gain: the gain of each node of the group.
        counts: the number of nodes in the group.
        sizes: the shard sizes before the moves.
        capacity: the most nodes that a shard may hold afterwards; the least is one.
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
