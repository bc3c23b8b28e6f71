"""From a request to a plan: which shards are retrained, what else it touches, and why."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grapheraser.errors import EmptyEnsembleError
from grapheraser.graph import TRAIN, Graph, Removal
from grapheraser.partition import Partition
from grapheraser.partition.halo import halo_edges, halo_edges_to
from grapheraser.reports.wording import plural


@dataclass(frozen=True)
class ShardPlan:
    """What a request takes out of the graph that one shard trains on.

    Attributes:
        shard: its id.
        nodes: members that go.
        edges: edges of its training graph that the request names.
        features: feature rows of its training graph that are cleared.
        size_before, size_after: members.
        halo: nodes in its halo that go.
    """

    shard: int
    nodes: int
    edges: int
    features: int
    size_before: int
    size_after: int
    halo: int = 0

    @property
    def why(self) -> str:
        """In words, e.g. ``2 nodes and 1 edge go; 107 of 109 nodes stay``."""
        gone = {"node": self.nodes, "edge": self.edges, "feature row": self.features}
        gone |= {"halo node": self.halo}
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
        trained: sorted ids of the requested nodes that leave a shard.
        touched: sorted ids of the nodes left behind whose neighbours or features change.
        notes: what the operator should know.
    """

    removal: Removal
    shards: tuple[ShardPlan, ...]
    cut_edges: int
    untrained_nodes: int
    trained: NDArray[np.int64]
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


def plan_removal(
    graph: Graph, partition: Partition, removal: Removal, halo: int | None = None
) -> Plan:
    """Work out what a removal touches; refuses to empty the last shard.

    Args:
        graph: before the removal.
        partition: of its training nodes.
        removal: the checked request.
        halo: the key that chooses the shards' halos; None where they have none.
    """
    trained = _trained(graph, removal.nodes)
    cleared = _trained(graph, removal.features)
    ends = _shards_of_edges(graph, partition, removal.edges)
    inside = ends[:, 0] == ends[:, 1]
    inside &= ends[:, 0] >= 0

    k = partition.num_shards
    nodes = np.bincount(partition.shard_of(trained), minlength=k)
    edges = np.bincount(ends[inside, 0], minlength=k)
    features = np.bincount(partition.shard_of(cleared), minlength=k)
    around, seen = np.zeros(k, dtype=np.int64), inside
    if halo is not None:
        around = _halo_rows(graph, partition, trained, halo)
        features += _halo_rows(graph, partition, cleared, halo)
        from_ends = _halo_edges_named(graph, partition, removal.edges, halo)
        edges += np.bincount(ends[from_ends], minlength=k)
        seen = inside | from_ends.any(axis=1)
    sizes = partition.sizes
    left = sizes - nodes
    counts = np.stack([nodes, edges, features, sizes, left, around], axis=1)
    hit = np.flatnonzero(nodes + edges + features + around)
    shards = tuple(ShardPlan(int(shard), *counts[shard].tolist()) for shard in hit)
    if left.sum() == 0:
        raise EmptyEnsembleError(
            f"the request takes the last {int(nodes.sum())} training nodes: no shard would be "
            "left to predict with.",
            hint="delete the run instead, or leave some training nodes in it.",
        )
    return Plan(
        removal=removal,
        shards=shards,
        cut_edges=int((~seen).sum()),
        untrained_nodes=len(removal.nodes) + len(removal.features) - len(trained) - len(cleared),
        trained=trained,
        touched=_touched(graph, removal),
    )


def _shards_of_edges(
    graph: Graph, partition: Partition, edges: NDArray[np.int64]
) -> NDArray[np.int64]:
    """The shards of both ends of each edge ``[m, 2]``; -1 for nodes that are not trained on."""
    flat = edges.ravel()
    shards = np.full(len(flat), -1, dtype=np.int64)
    trained = graph.roles(flat) == TRAIN
    shards[trained] = partition.shard_of(flat[trained])
    return shards.reshape(-1, 2)


def _halo_rows(
    graph: Graph, partition: Partition, nodes: NDArray[np.int64], key: int
) -> NDArray[np.int64]:
    """How many of these nodes are in the halo of each shard ``[num_shards]``."""
    pairs = halo_edges_to(graph, partition, nodes, key)
    shards = partition.shard_of(pairs[:, 0]).astype(np.int64)
    once = np.unique(np.stack([shards, pairs[:, 1]]), axis=1)
    return np.bincount(once[0], minlength=partition.num_shards)


def _halo_edges_named(
    graph: Graph, partition: Partition, edges: NDArray[np.int64], key: int
) -> NDArray[np.bool_]:
    """Of each edge ``[m, 2]``, whether it is a halo edge of the shard of each of its ends."""
    ends = np.unique(edges)
    pairs = halo_edges(graph, partition, ends[partition.contains(ends)], key)
    known = set(map(tuple, pairs.tolist()))
    named = [[(u, v) in known, (v, u) in known] for u, v in edges.tolist()]
    return np.array(named, dtype=bool).reshape(-1, 2)


def _trained(graph: Graph, nodes: NDArray[np.int64]) -> NDArray[np.int64]:
    return nodes[graph.roles(nodes) == TRAIN]


def _touched(graph: Graph, removal: Removal) -> NDArray[np.int64]:
    around = graph.around(removal.nodes)
    touched = np.union1d(np.union1d(around, removal.edges.ravel()), removal.features)
    return np.setdiff1d(touched, removal.nodes)
