"""From a request to a plan: which shards are retrained, what else it touches, and why."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grapheraser.errors import EmptyEnsembleError
from grapheraser.graph import TRAIN, Graph, Removal
from grapheraser.partition import Partition
from grapheraser.partition.halo import halo_edges, halo_edges_to
from grapheraser.reports.wording import plural

# Members of a shard that are looked at together, in search of one with a label.
_BLOCK = 4096


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
        labels: members that lose their label.
        learns: whether a member with a label is left.
    """

    shard: int
    nodes: int
    edges: int
    features: int
    size_before: int
    size_after: int
    halo: int = 0
    labels: int = 0
    learns: bool = True

    @property
    def why(self) -> str:
        """In words, e.g. ``2 nodes and 1 edge go; 107 of 109 nodes stay``."""
        gone = {"node": self.nodes, "edge": self.edges, "feature row": self.features}
        gone |= {"halo node": self.halo, "label": self.labels}
        what = " and ".join(plural(count, noun) for noun, count in gone.items() if count)
        verb = "goes" if sum(gone.values()) == 1 else "go"
        left = "" if self.learns or not self.size_after else ", none of them with a label"
        return f"{what} {verb}; {self.size_after} of {self.size_before} nodes stay{left}"

    def to_dict(self) -> dict[str, Any]:
        return {**self.__dict__, "why": self.why}


@dataclass(frozen=True, eq=False)
class Plan:
    """What forgetting takes.

    Attributes:
        removal: the checked request.
        shards: the shards that lose something, ascending.
        cut_edges: requested edges that are in no shard's training graph (they cross shards, or
            touch a node that is in none): deleting them retrains nothing.
        untrained_nodes: requested nodes, feature rows and labels that no shard was trained on.
        trained: sorted ids of the requested nodes that leave a shard.
        touched: sorted ids of the nodes left behind whose neighbours, features or labels change.
        context: requested nodes that were in a shard without a label to learn from.
        notes: what the operator should know.
    """

    removal: Removal
    shards: tuple[ShardPlan, ...]
    cut_edges: int
    untrained_nodes: int
    trained: NDArray[np.int64]
    touched: NDArray[np.int64]
    context: int = 0
    notes: tuple[str, ...] = ()

    @property
    def retrain(self) -> tuple[int, ...]:
        """Ids of the shards that are retrained."""
        return tuple(s.shard for s in self.shards if s.size_after and s.learns)

    @property
    def emptied(self) -> tuple[int, ...]:
        """Ids of the shards that are left with no member, or with none that has a label."""
        return tuple(s.shard for s in self.shards if not (s.size_after and s.learns))

    @property
    def stale(self) -> tuple[int, ...]:
        """Ids of the shards with members whose training graph changes."""
        return tuple(s.shard for s in self.shards if s.size_after)

    @property
    def counts(self) -> dict[str, int]:
        """How much the request names, by kind, and how much of it no shard was trained on."""
        return {
            "nodes": len(self.removal.nodes),
            "edges": len(self.removal.edges),
            "features": len(self.removal.features),
            "labels": len(self.removal.labels),
            "context": self.context,
            "untrained": self.untrained_nodes + self.cut_edges,
        }

    def to_dict(self) -> dict[str, Any]:
        kinds = ("nodes", "edges", "features", "labels", "context")
        counts = {kind: self.counts[kind] for kind in kinds}
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
    """Work out what a removal touches; refuses to take the last label.

    Args:
        graph: before the removal.
        partition: of its nodes in shards.
        removal: the checked request.
        halo: the key that chooses the shards' halos; None where they have none.
    """
    _refuse_the_last_label(graph, removal)
    trained = _in_shards(partition, removal.nodes)
    cleared = _in_shards(partition, removal.features)
    unlabelled = removal.labels[graph.roles(removal.labels) == TRAIN]
    ends = _shards_of_edges(partition, removal.edges)
    inside = ends[:, 0] == ends[:, 1]
    inside &= ends[:, 0] >= 0

    k = partition.num_shards
    nodes = np.bincount(partition.shard_of(trained), minlength=k)
    edges = np.bincount(ends[inside, 0], minlength=k)
    features = np.bincount(partition.shard_of(cleared), minlength=k)
    labels = np.bincount(partition.shard_of(unlabelled), minlength=k)
    context = len(trained) - int((graph.roles(trained) == TRAIN).sum())
    # Only where context nodes are in shards, a node without a label stays in one.
    leaving = np.union1d(trained, unlabelled) if graph.context == "none" else trained
    around, seen = np.zeros(k, dtype=np.int64), inside
    if halo is not None:
        around = _halo_rows(graph, partition, leaving, halo)
        features += _halo_rows(graph, partition, cleared, halo)
        from_ends = _halo_edges_named(graph, partition, removal.edges, halo)
        edges += np.bincount(ends[from_ends], minlength=k)
        seen = inside | from_ends.any(axis=1)
    sizes = partition.sizes
    left = sizes - np.bincount(partition.shard_of(leaving), minlength=k)
    counts = np.stack([nodes, edges, features, sizes, left, around, labels], axis=1)
    hit = np.flatnonzero(nodes + edges + features + around + labels)
    learns = _learning(graph, partition, hit, np.union1d(trained, unlabelled))
    shards = tuple(
        replace(ShardPlan(int(shard), *counts[shard].tolist()), learns=still)
        for shard, still in zip(hit, learns, strict=True)
    )
    return Plan(
        removal=removal,
        shards=shards,
        cut_edges=int((~seen).sum()),
        untrained_nodes=_count(removal.nodes, removal.features, removal.labels)
        - _count(trained, cleared, unlabelled),
        trained=leaving,
        touched=_touched(graph, removal, leaving),
        context=context,
    )


def _refuse_the_last_label(graph: Graph, removal: Removal) -> None:
    if graph.num_train == graph.trained_among(removal):
        raise EmptyEnsembleError(
            f"the request takes the last {graph.num_train} training nodes or their labels: no "
            "shard would be left to predict with.",
            hint="delete the run instead, or leave some training nodes in it.",
        )


def _count(*parts: NDArray[np.int64]) -> int:
    return sum(map(len, parts))


def _learning(
    graph: Graph, partition: Partition, shards: NDArray[np.int64], taken: NDArray[np.int64]
) -> list[bool]:
    """Whether each shard keeps a training node but for those taken."""
    if graph.num_train == partition.num_nodes:  # then every member is one
        lost = np.bincount(partition.shard_of(taken), minlength=partition.num_shards)
        return (partition.sizes[shards] > lost[shards]).tolist()
    return [_learns(graph, partition.members(int(shard)), taken) for shard in shards]


def _learns(graph: Graph, members: NDArray[np.int64], taken: NDArray[np.int64]) -> bool:
    """Whether a member is a training node that is not taken; mostly one of the first is."""
    for start in range(0, len(members), _BLOCK):
        block = members[start : start + _BLOCK]
        if (~np.isin(block[graph.roles(block) == TRAIN], taken)).any():
            return True
    return False


def _shards_of_edges(partition: Partition, edges: NDArray[np.int64]) -> NDArray[np.int64]:
    """The shards of both ends of each edge ``[m, 2]``; -1 for nodes that are in none."""
    return partition.shard_or_none(edges.ravel()).astype(np.int64).reshape(-1, 2)


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


def _in_shards(partition: Partition, nodes: NDArray[np.int64]) -> NDArray[np.int64]:
    return nodes[partition.contains(nodes)]


def _touched(graph: Graph, removal: Removal, leaving: NDArray[np.int64]) -> NDArray[np.int64]:
    """What changes, and the neighbours of whatever leaves a shard."""
    around = graph.around(np.union1d(removal.nodes, leaving))
    named = np.concatenate([removal.edges.ravel(), removal.features, removal.labels])
    return np.setdiff1d(np.union1d(around, named), removal.nodes)
