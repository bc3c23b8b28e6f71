"""From a request to a plan: which shards are retrained, what else it touches, and why."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grapheraser.errors import EmptyEnsembleError
from grapheraser.graph import TRAIN, Graph, Removal
from grapheraser.graph.csr import slices_of
from grapheraser.partition import Partition
from grapheraser.reports.wording import plural


@dataclass(frozen=True)
class ShardPlan:
    """What a request takes out of one shard."""

    shard: int
    nodes: int
    edges: int
    features: int
    size_before: int
    size_after: int

    @property
    def why(self) -> str:
        """In words, e.g. ``2 nodes and 1 edge go; 107 of 109 nodes stay``."""
        gone = {"node": self.nodes, "edge": self.edges, "feature row": self.features}
        what = " and ".join(plural(count, noun) for noun, count in gone.items() if count)
        verb = "goes" if sum(gone.values()) == 1 else "go"
        return f"{what} {verb}; {self.size_after} of {self.size_before} nodes stay"

    def to_dict(self) -> dict[str, Any]:
        return {**self.__dict__, "why": self.why}


@dataclass(frozen=True, eq=False)
class Plan:
    """What forgetting takes.

    Attributes:
        removal: the checked request.
        shards: the shards that lose something, ascending.
        cut_edges: requested edges that are in no shard's training graph (they cross shards, or
            touch a node that is not trained on): deleting them retrains nothing.
        untrained_nodes: requested nodes and feature rows that no shard was trained on.
        touched: sorted ids of the nodes left behind whose neighbours or features change.
        notes: what the operator should know.
    """

    removal: Removal
    shards: tuple[ShardPlan, ...]
    cut_edges: int
    untrained_nodes: int
    touched: NDArray[np.int64]
    notes: tuple[str, ...] = ()

    @property
    def retrain(self) -> tuple[int, ...]:
        """Ids of the shards that are retrained."""
        return tuple(s.shard for s in self.shards if s.size_after)

    @property
    def emptied(self) -> tuple[int, ...]:
        """Ids of the shards that leave the ensemble."""
        return tuple(s.shard for s in self.shards if not s.size_after)

    @property
    def counts(self) -> dict[str, int]:
        """How much the request names, by kind, and how much of it no shard was trained on."""
        return {
            "nodes": len(self.removal.nodes),
            "edges": len(self.removal.edges),
            "features": len(self.removal.features),
            "untrained": self.untrained_nodes + self.cut_edges,
        }

    def to_dict(self) -> dict[str, Any]:
        counts = {kind: self.counts[kind] for kind in ("nodes", "edges", "features")}
        return {
            "request": self.removal.digest,
            **counts,
            "retrain": list(self.retrain),
            "emptied": list(self.emptied),
            "shards": [s.to_dict() for s in self.shards],
            "cut_edges": self.cut_edges,
            "untrained_nodes": self.untrained_nodes,
            "touched": len(self.touched),
            "notes": list(self.notes),
        }


def plan_removal(graph: Graph, partition: Partition, removal: Removal) -> Plan:
    """Work out what a removal touches; refuses to empty the last shard."""
    trained = _trained(graph, removal.nodes)
    cleared = _trained(graph, removal.features)
    ends = _shards_of_edges(graph, partition, removal.edges)
    inside = ends[:, 0] == ends[:, 1]
    inside &= ends[:, 0] >= 0

    k = partition.num_shards
    nodes = np.bincount(partition.shard_of(trained), minlength=k)
    edges = np.bincount(ends[inside, 0], minlength=k)
    features = np.bincount(partition.shard_of(cleared), minlength=k)
    sizes = partition.sizes
    hit = np.flatnonzero(nodes + edges + features)
    shards = tuple(
        ShardPlan(int(s), int(nodes[s]), int(edges[s]), int(features[s]), int(sizes[s]), int(left))
        for s, left in zip(hit, (sizes - nodes)[hit], strict=True)
    )
    if (sizes - nodes).sum() == 0:
        raise EmptyEnsembleError(
            f"the request takes the last {int(nodes.sum())} training nodes: no shard would be "
            "left to predict with.",
            hint="delete the run instead, or leave some training nodes in it.",
        )
    return Plan(
        removal=removal,
        shards=shards,
        cut_edges=int((~inside).sum()),
        untrained_nodes=len(removal.nodes) + len(removal.features) - len(trained) - len(cleared),
        touched=_touched(graph, removal),
    )


def _shards_of_edges(
    graph: Graph, partition: Partition, edges: NDArray[np.int64]
) -> NDArray[np.int64]:
    """The shards of both ends of each edge ``[m, 2]``; -1 for nodes that are not trained on."""
    flat = edges.ravel()
    shards = np.full(len(flat), -1, dtype=np.int64)
    trained = graph.role[graph.positions(flat)] == TRAIN
    shards[trained] = partition.shard_of(flat[trained])
    return shards.reshape(-1, 2)


def _trained(graph: Graph, nodes: NDArray[np.int64]) -> NDArray[np.int64]:
    return nodes[graph.role[graph.positions(nodes)] == TRAIN]


def _touched(graph: Graph, removal: Removal) -> NDArray[np.int64]:
    gone = graph.positions(removal.nodes)
    around = graph.ids[graph.indices[slices_of(graph.indptr, gone)]]
    touched = np.union1d(np.union1d(around, removal.edges.ravel()), removal.features)
    return np.setdiff1d(touched, removal.nodes)
