"""Does the partition remember? It may have been computed from data that was deleted since.

Three questions, each asked of every method:

- How far does the partition move when it is made without the deleted nodes? (Adjusted Rand index
  between the kept labels and the new ones; the same for another seed, as the yardstick.)
- Edges: deleted ones against pairs that never had an edge. Guess "edge" where both ends are in
  the same shard of the kept partition; and, for comparison, of one made without those edges.
- Nodes: the attacker knows the graph that is left, the method and its seed, and partitions the
  graph with a candidate added. The result agrees better with the kept partition where the
  candidate was there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from grapheraser.audit.budget import UNLIMITED, Budget
from grapheraser.audit.statistics import Rates, Result, adjusted_rand_index, first_of_groups, rates
from grapheraser.errors import ParameterError
from grapheraser.graph import TEST, TRAIN, Edges, Graph, Nodes
from grapheraser.partition import Partition, Partitioner, partition_graph
from grapheraser.partition.partitioning import PartitionFunction
from grapheraser.seeding import generator

Divide = Callable[[Graph], Partition]


@dataclass(frozen=True)
class PartitionLeak(Result):
    """Leaks of one method's partition."""

    method: str  # its name
    inputs: tuple[str, ...]  # which of the data it looks at
    # Adjusted Rand index of the kept partition and one made without the deleted nodes.
    agreement: float
    reseeded: float  # the same for another seed and no deletion
    edge: Rates  # AUC of guessing deleted edges from the kept partition
    # The same from a partition that never saw them: what the rest of the graph gives away.
    edge_recut: Rates
    # AUC of telling deleted nodes from nodes never trained on; None where there was no time for it.
    node: Rates | None


def partition_leak(
    graph: Graph,
    method: str | Partitioner | PartitionFunction,
    *,
    num_shards: int,
    deleted: float = 0.05,
    candidates: int = 20,
    seed: int = 0,
    gamma: float = 0.0,
    delta: int | None = None,
    budget: Budget = UNLIMITED,
) -> PartitionLeak:
    """Measure one method on one graph.

    ``deleted`` is the share of the training nodes, and of the edges between them, that goes. The
    attack on nodes takes one partition for each of its candidates, and stops early when the budget
    is spent. The attacker knows the seed of the partition.
    """

    def divide(rest: Graph, with_seed: int = seed) -> Partition:
        k = min(num_shards, len(rest.train_nodes))
        slack = delta if delta is None or delta * k >= len(rest.train_nodes) else None
        return partition_graph(rest, method, num_shards=k, seed=with_seed, gamma=gamma, delta=slack)

    kept = divide(graph)
    rng = generator(seed, "audit", "partition")
    count = max(1, int(deleted * len(graph.train_nodes)))
    gone = np.sort(rng.permutation(graph.train_nodes)[:count])
    recut = divide(graph.without(Nodes(gone.tolist())))
    same = kept.restricted_to(recut.nodes)
    edge, edge_recut = _edges(graph, kept, divide, deleted, seed)
    return PartitionLeak(
        method=kept.method,
        inputs=tuple(sorted(kept.inputs)),
        agreement=adjusted_rand_index(same.labels, recut.labels),
        # METIS gives the same partition for seeds 0 and 1, so the other seed is not the next one.
        reseeded=adjusted_rand_index(kept.labels, divide(graph, seed + 7919).labels),
        edge=edge,
        edge_recut=edge_recut,
        node=_nodes(graph, divide, candidates, seed, budget),
    )


def _edges(
    graph: Graph, kept: Partition, divide: Divide, share: float, seed: int
) -> tuple[Rates, Rates]:
    training = graph.training_graph
    edges = training.edges
    rng = generator(seed, "audit", "partition", "ties")
    count = max(1, int(share * len(edges)))
    if len(edges) < 2:
        raise ParameterError("the training graph has no edges to delete.")
    gone = edges[np.sort(rng.permutation(len(edges))[:count])]
    pairs = rng.choice(training.ids, size=(4 * count, 2))
    strangers = pairs[(pairs[:, 0] != pairs[:, 1]) & ~training.has_edges(pairs)][:count]
    recut = divide(graph.without(Edges(map(tuple, gone.tolist()))))
    asked = np.concatenate([gone, strangers])
    truth = np.arange(len(asked)) < len(gone)

    def judged(part: Partition) -> Rates:
        shards = part.shard_of(asked.ravel()).reshape(-1, 2)
        return rates((shards[:, 0] == shards[:, 1]).astype(np.float64), truth, seed=seed)

    return judged(kept), judged(recut)


def _nodes(
    graph: Graph, divide: Divide, candidates: int, seed: int, budget: Budget
) -> Rates | None:
    """Delete one node at a time, and tell it from one that was never trained on."""
    rng = generator(seed, "audit", "partition", "nodes")
    candidates = min(candidates, len(graph.train_nodes) // 2, len(graph.test_nodes))
    if candidates < 2 or budget.left <= 0:
        return None
    members = rng.permutation(graph.train_nodes)[:candidates]
    others = rng.permutation(graph.test_nodes)[:candidates]
    kept = divide(graph)

    def agreement(rest: Graph, candidate: int) -> float:
        again = divide(_with_trained(graph, rest, candidate))
        both = np.intersect1d(again.nodes, rest.train_nodes)
        return adjusted_rand_index(
            kept.restricted_to(both).labels, again.restricted_to(both).labels
        )

    scores = []
    for number in budget.rounds(candidates, least=2):
        member, other = int(members[number]), int(others[number])
        rest = graph.without(Nodes([member]))
        scores.append((agreement(rest, member), agreement(rest, other)))
    return first_of_groups(scores, seed=seed)


def _with_trained(graph: Graph, rest: Graph, candidate: int) -> Graph:
    """Put the candidate among the training nodes of what is left."""
    if graph.role[graph.positions([candidate])[0]] == TRAIN:
        return graph
    role: NDArray[np.int8] = rest.role.copy()
    at = rest.positions([candidate])[0]
    role[at] = TRAIN if role[at] == TEST else role[at]
    return rest.with_fields(role=role)
