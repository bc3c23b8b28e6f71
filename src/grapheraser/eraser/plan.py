"""From a request or a list of changes to a plan: which shards are retrained, and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grapheraser.eraser.seen import Named, Seen, seen_by_shards
from grapheraser.errors import EmptyEnsembleError
from grapheraser.graph import TRAIN, Edit, Graph, Removal
from grapheraser.kernels.sets import ranks
from grapheraser.partition import Partition
from grapheraser.reports.wording import listed, plural

# Members of a shard that are looked at together, in search of one with a label.
_BLOCK = 4096
_COUNTED = ("nodes", "edges", "features", "labels")
_NOUNS = {
    "nodes": "node",
    "edges": "edge",
    "features": "feature row",
    "halo": "halo node",
    "labels": "label",
}

Ids = NDArray[np.int64]


@dataclass(frozen=True)
class ShardPlan:
    """What a change does to the graph that one shard trains on.

    Attributes:
        shard: its id.
        nodes: members that go.
        edges: edges of its training graph that the request names.
        features: feature rows of its training graph that are cleared.
        size_before, size_after: members.
        halo: nodes in its halo that go.
        labels: members that lose their label.
        learns: whether a member with a label is left.
        gains: what comes or is set instead, under the same names.
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
    gains: Mapping[str, int] = field(default_factory=dict)

    @property
    def why(self) -> str:
        """In words, e.g. ``2 nodes and 1 edge go; 107 of 109 nodes stay``."""
        gone = {name: getattr(self, name) for name in _NOUNS}
        parts = [_counted(gone, _NOUNS, "goes", "go")]
        parts += [_counted(self.gains, ("nodes", "edges", "halo"), "comes", "come")]
        parts += [_counted(self.gains, ("features", "labels"), "is set", "are set")]
        what = ", ".join(part for part in parts if part)
        left = "" if self.learns or not self.size_after else ", none of them with a label"
        sizes = f"{self.size_after} of {self.size_before} nodes stay"
        if any(self.gains.values()):
            sizes = f"{plural(self.size_after, 'node')} instead of {self.size_before}"
        return f"{what}; {sizes}{left}"

    def to_dict(self) -> dict[str, Any]:
        return {**self.__dict__, "gains": dict(self.gains), "why": self.why}


def _counted(counts: Mapping[str, int], names: Any, one: str, several: str) -> str:
    found = {name: counts.get(name, 0) for name in names}
    words = [plural(count, _NOUNS[name]) for name, count in found.items() if count]
    verb = one if sum(found.values()) == 1 else several
    return f"{listed(words)} {verb}" if words else ""


@dataclass(frozen=True, eq=False)
class Plan:
    """What forgetting, or a list of changes, takes.

    Attributes:
        removal: the checked request.
        shards: the shards that lose or gain something, ascending.
        cut_edges: named edges that are in no shard's training graph (they cross shards, or touch
            a node that is in none): they retrain nothing.
        untrained_nodes: named nodes, feature rows and labels that no shard is trained on.
        trained: sorted ids of the requested nodes that leave a shard.
        touched: sorted ids of the nodes left behind whose neighbours, features or labels change.
        context: named nodes that are in a shard without a label to learn from.
        notes: what the operator should know.
        edit: all that changes, where that is more than a request to forget.
    """

    removal: Removal
    shards: tuple[ShardPlan, ...]
    cut_edges: int
    untrained_nodes: int
    trained: NDArray[np.int64]
    touched: NDArray[np.int64]
    context: int = 0
    notes: tuple[str, ...] = ()
    edit: Edit | None = None

    @property
    def digest(self) -> str:
        """SHA-256 of what was asked for."""
        return self.removal.digest if self.edit is None else self.edit.digest

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
        """How much is named, by kind; how much of it no shard is trained on, and what is new."""
        counts = {name: len(getattr(self.removal, name)) for name in _COUNTED}
        more: dict[str, int] = {}
        if self.edit is not None:
            more = self.edit.counts
            for name, count in zip(_COUNTED, more.values(), strict=True):
                counts[name] += count
        counts["context"] = self.context
        counts["untrained"] = self.untrained_nodes + self.cut_edges
        if self.removal.skipped:
            more["skipped"] = self.removal.num_skipped
        return counts | more

    def to_dict(self) -> dict[str, Any]:
        counts = {kind: count for kind, count in self.counts.items() if kind != "untrained"}
        return {
            "request": self.digest,
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
    if graph.num_train == graph.trained_among(removal):
        raise no_label_left(graph.num_train)
    gone = _gone(graph, partition, removal, halo)
    sizes = partition.sizes
    left = sizes - np.bincount(partition.shard_of(gone.named.moving), minlength=len(sizes))
    hit = np.flatnonzero(gone.seen.any)
    named = gone.named
    learns = _learning(graph, partition, hit, np.union1d(named.nodes, named.labels))
    return Plan(
        removal=removal,
        shards=_shard_plans(hit, gone.seen, None, sizes, left, learns),
        cut_edges=gone.seen.cut_edges,
        untrained_nodes=gone.outside,
        trained=named.moving,
        touched=gone.touched,
        context=gone.context,
    )


def plan_edit(
    before: tuple[Graph, Partition],
    after: tuple[Graph, Partition],
    edit: Edit,
    entering: Ids,
    halo: int | None = None,
) -> Plan:
    """Work out what a list of changes touches.

    Args:
        before: the graph and its partition.
        after: both with all changes.
        edit: the checked changes.
        entering: sorted ids of the nodes that are in a shard now, and were in none.
        halo: as for `plan_removal`.
    """
    graph, partition = after
    gone = _gone(*before, edit.removal, halo)
    come = _come(graph, partition, edit, entering, halo)
    hit = np.flatnonzero(gone.seen.any | come.seen.any)
    sizes = before[1].sizes, partition.sizes
    learns = _learning(graph, partition, hit, entering[:0])
    return Plan(
        removal=edit.removal,
        shards=_shard_plans(hit, gone.seen, come.seen, *sizes, learns),
        cut_edges=gone.seen.cut_edges + come.seen.cut_edges,
        untrained_nodes=gone.outside + come.outside,
        trained=gone.named.moving,
        touched=np.union1d(gone.touched, come.touched),
        context=gone.context + come.context,
        edit=edit,
    )


def leaving_shards(graph: Graph, partition: Partition, removal: Removal) -> Ids:
    """Sorted ids of the nodes that a removal takes out of a shard.

    Only where context nodes are in shards, a node without a label stays in one.
    """
    trained = _in_shards(partition, removal.nodes)
    if graph.context != "none":
        return trained
    return np.union1d(trained, removal.labels[graph.roles(removal.labels) == TRAIN])


def no_label_left(num_train: int) -> EmptyEnsembleError:
    """The error for changes that take the last label."""
    return EmptyEnsembleError(
        f"the request takes the last {num_train} training nodes or their labels: no shard would be "
        "left to predict with.",
        hint="delete the run instead, or leave some training nodes in it.",
    )


@dataclass(frozen=True, eq=False)
class _Part:
    """What goes, or what comes.

    Attributes:
        named: in shards.
        seen: by them.
        touched: sorted ids.
        context: see `Plan`.
        outside: named nodes, feature rows and labels that no shard is trained on.
    """

    named: Named
    seen: Seen
    touched: Ids
    context: int
    outside: int


def _gone(graph: Graph, partition: Partition, removal: Removal, halo: int | None) -> _Part:
    """What a removal takes from the graph before it."""
    named = Named(
        _in_shards(partition, removal.nodes),
        removal.edges,
        _in_shards(partition, removal.features),
        removal.labels[graph.roles(removal.labels) == TRAIN],
        leaving_shards(graph, partition, removal),
    )
    around = graph.around(np.concatenate([removal.nodes, named.moving]))
    changed = np.concatenate([around, removal.edges.ravel(), removal.features, removal.labels])
    asked = len(removal.nodes) + len(removal.features) + len(removal.labels)
    return _Part(
        named,
        seen_by_shards(graph, partition, named, halo),
        _without(np.unique(changed), removal.nodes),
        _context_among(graph, named.nodes),
        asked - len(named.nodes) - len(named.features) - len(named.labels),
    )


def _come(graph: Graph, partition: Partition, edit: Edit, entering: Ids, halo: int | None) -> _Part:
    """What an edit puts into the graph after it."""
    labels = edit.labels[graph.roles(edit.labels) == TRAIN]
    new = np.intersect1d(edit.nodes, entering)
    features = _in_shards(partition, edit.features)
    named = Named(new, edit.pairs, features, labels, entering)
    asked = len(edit.nodes) + len(edit.features) + len(edit.labels)
    return _Part(
        named,
        seen_by_shards(graph, partition, named, halo),
        np.union1d(edit.touched, graph.around(entering)),
        _context_among(graph, new),
        asked - len(new) - len(features) - len(labels),
    )


def _context_among(graph: Graph, nodes: Ids) -> int:
    return len(nodes) - int((graph.roles(nodes) == TRAIN).sum())


def _shard_plans(
    shards: Ids, gone: Seen, come: Seen | None, before: Ids, after: Ids, learns: list[bool]
) -> tuple[ShardPlan, ...]:
    def counts(seen: Seen, shard: int) -> dict[str, int]:
        return {name: int(getattr(seen, name)[shard]) for name in _NOUNS}

    return tuple(
        ShardPlan(
            shard,
            **counts(gone, shard),
            size_before=int(before[shard]),
            size_after=int(after[shard]),
            learns=still,
            gains={} if come is None else counts(come, shard),
        )
        for shard, still in zip(shards.tolist(), learns, strict=True)
    )


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


def _without(nodes: Ids, others: Ids) -> Ids:
    """Those of sorted ids that are not among others, sorted likewise."""
    return nodes[ranks(nodes, others) < 0]


def _in_shards(partition: Partition, nodes: NDArray[np.int64]) -> NDArray[np.int64]:
    return nodes[partition.contains(nodes)]
