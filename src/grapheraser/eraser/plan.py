"""From a request or a list of changes to a plan: which shards are retrained, and why."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grapheraser.eraser.seen import Named, Seen, seen_by_shards
from grapheraser.graph import TRAIN, Edit, Graph, Removal
from grapheraser.kernels.sets import ranks
from grapheraser.kinds import ADD, GRAPH_CHANGES, GRAPH_KINDS, GRAPH_NAMES, LABELS, SET
from grapheraser.partition import Partition
from grapheraser.reports.wording import listed, plural

# Members of a shard that are looked at together, in search of one with a label.
_BLOCK = 4096
_WORDS = {kind.name: kind.words for kind in GRAPH_KINDS} | {"halo": "halo node"}
_ADDED = tuple(kind.changes for kind in GRAPH_CHANGES if kind.verb == ADD)
_SET = tuple(kind.changes for kind in GRAPH_CHANGES if kind.verb == SET)

Ids = NDArray[np.int64]


@dataclass(frozen=True)
class ShardPlan:
    """Effect of a change on the graph that one shard trains on."""

    shard: int  # its id
    nodes: int  # members that go
    edges: int  # edges of its training graph that the request names
    features: int  # feature rows of its training graph that are cleared
    # size_before, size_after: members.
    size_before: int
    size_after: int
    halo: int = 0  # nodes in its halo that go
    labels: int = 0  # members that lose their label
    learns: bool = True  # whether a member with a label is left
    elsewhere: bool = False  # whether it was trained where bits are others, which alone retrains it
    # What comes or is set instead, under the same names.
    gains: Mapping[str, int] = field(default_factory=dict)

    @property
    def why(self) -> str:
        """In words, e.g. ``2 nodes and 1 edge go; 107 of 109 nodes stay``."""
        gone = {name: getattr(self, name) for name in _WORDS}
        parts = [_counted(gone, _WORDS, "goes", "go")]
        parts += [_counted(self.gains, (*_ADDED, "halo"), "comes", "come")]
        parts += [_counted(self.gains, _SET, "is set", "are set")]
        parts += ["trained elsewhere"] if self.elsewhere else []
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
    words = [plural(count, _WORDS[name]) for name, count in found.items() if count]
    verb = one if sum(found.values()) == 1 else several
    return f"{listed(words)} {verb}" if words else ""


@dataclass(frozen=True, eq=False)
class Plan:
    """Plan of a request to forget, or of a list of changes.

    Attributes:
        removal: the checked request.
        shards: the shards that lose or gain something, or were trained elsewhere, ascending.
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
        """Ids of the shards with members whose weights can't stay."""
        return tuple(s.shard for s in self.shards if s.size_after)

    @property
    def counts(self) -> dict[str, int]:
        """How much is named, by kind; how much of it no shard is trained on, and what is new."""
        counts = {name: len(getattr(self.removal, name)) for name in GRAPH_NAMES}
        counts[LABELS.name] = self.removal.num_labels
        more: dict[str, int] = {}
        if self.edit is not None and not self.edit.only_forgets:
            more = self.edit.counts
            for kind in GRAPH_CHANGES:
                counts[kind.changes] += more[kind.count]
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
    """Work out what a removal touches; ``halo`` is the key of the halos, if there are any."""
    gone = _gone(graph, partition, removal, halo)
    moving = np.bincount(partition.shard_of(gone.named.moving), minlength=partition.num_shards)
    sizes = partition.sizes, partition.sizes - moving
    taken = np.union1d(gone.named.nodes, gone.named.labels)
    return _planned(removal, gone, None, sizes, (graph, partition, taken))


def plan_edit(
    before: tuple[Graph, Partition],
    after: tuple[Graph, Partition],
    edit: Edit,
    entering: Ids,
    halo: int | None = None,
) -> Plan:
    """Work out what a list of changes touches.

    ``before`` and ``after`` are graph and partition. ``entering`` are sorted ids of the nodes that
    are in a shard now, and were in none.
    """
    gone = _gone(*before, edit.removal, halo)
    come = _come(*after, edit, entering, halo)
    sizes = before[1].sizes, after[1].sizes
    return _planned(edit.removal, gone, come, sizes, (*after, entering[:0]), edit)


def with_all_shards(plan: Plan, trained: Iterable[int], sizes: Ids) -> Plan:
    """The plan that retrains all shards, also those that lose and gain nothing.

    ``trained`` are ids of the shards that have weights, ``sizes`` how many members each has.
    """
    hit = {shard.shard for shard in plan.shards}
    members = {shard: int(sizes[shard]) for shard in trained if shard not in hit}
    others = [
        ShardPlan(shard, 0, 0, 0, size_before=size, size_after=size, elsewhere=True)
        for shard, size in members.items()
    ]
    shards = sorted((*plan.shards, *others), key=lambda each: each.shard)
    return replace(plan, shards=tuple(shards))


def leaving_shards(graph: Graph, partition: Partition, removal: Removal) -> Ids:
    """Sorted ids of the nodes that a removal takes out of a shard.

    Only where context nodes are in shards, a node without a label stays in one.
    """
    trained = _in_shards(partition, removal.nodes)
    if graph.context != "none":
        return trained
    bare = removal.unlabelled(graph)
    return np.union1d(trained, bare[graph.roles(bare) == TRAIN])


@dataclass(frozen=True, eq=False)
class _Part:
    """One side of a change: all that goes, or all that comes."""

    named: Named  # in shards
    seen: Seen  # by them
    touched: Ids  # sorted ids
    context: int  # see `Plan`
    outside: int  # named nodes, feature rows and labels that no shard is trained on


def _gone(graph: Graph, partition: Partition, removal: Removal, halo: int | None) -> _Part:
    """Work out what a removal takes from the graph before it."""
    lose = removal.relabelled
    named = Named(
        _in_shards(partition, removal.nodes),
        removal.edges,
        _in_shards(partition, removal.features),
        lose[graph.roles(lose) == TRAIN],
        leaving_shards(graph, partition, removal),
    )
    around = graph.around(np.concatenate([removal.nodes, named.moving]))
    changed = np.concatenate([around, removal.edges.ravel(), removal.features, lose])
    asked = len(removal.nodes) + len(removal.features) + len(lose)
    return _Part(
        named,
        seen_by_shards(graph, partition, named, halo),
        _without(np.unique(changed), removal.nodes),
        _context_among(graph, named.nodes),
        asked - len(named.nodes) - len(named.features) - len(named.labels),
    )


def _come(graph: Graph, partition: Partition, edit: Edit, entering: Ids, halo: int | None) -> _Part:
    """Work out what an edit puts into the graph after it."""
    labels = edit.labels[graph.roles(edit.labels) == TRAIN]
    new = np.intersect1d(edit.nodes, entering)
    features = _in_shards(partition, edit.features)
    named = Named(new, edit.pairs, features, labels, entering)
    own = np.setdiff1d(edit.features, edit.relearned, assume_unique=True)  # that somebody named
    asked, inside = len(edit.nodes) + len(own) + len(edit.labels), _in_shards(partition, own)
    return _Part(
        named,
        seen_by_shards(graph, partition, named, halo),
        np.union1d(edit.touched, graph.around(entering)),
        _context_among(graph, new),
        asked - len(new) - len(inside) - len(labels),
    )


def _context_among(graph: Graph, nodes: Ids) -> int:
    return len(nodes) - int((graph.roles(nodes) == TRAIN).sum())


def _planned(
    removal: Removal,
    gone: _Part,
    come: _Part | None,
    sizes: tuple[Ids, Ids],
    left: tuple[Graph, Partition, Ids],
    edit: Edit | None = None,
) -> Plan:
    """Put a plan together from both sides of a change.

    ``sizes`` are members of the shards before and after; ``left`` is a graph and a partition, and
    the nodes of these that nothing is learned from any more.
    """
    parts = [gone] if come is None else [gone, come]
    shards = np.flatnonzero(np.any([part.seen.any for part in parts], axis=0))

    def counts(seen: Seen, shard: int) -> dict[str, int]:
        return {name: int(getattr(seen, name)[shard]) for name in _WORDS}

    return Plan(
        removal=removal,
        shards=tuple(
            ShardPlan(
                shard,
                **counts(gone.seen, shard),
                size_before=int(sizes[0][shard]),
                size_after=int(sizes[1][shard]),
                learns=still,
                elsewhere=False,
                gains={} if come is None else counts(come.seen, shard),
            )
            for shard, still in zip(shards.tolist(), _learning(*left, shards), strict=True)
        ),
        cut_edges=sum(part.seen.cut_edges for part in parts),
        untrained_nodes=sum(part.outside for part in parts),
        trained=gone.named.moving,
        touched=np.unique(np.concatenate([part.touched for part in parts])),
        context=sum(part.context for part in parts),
        edit=edit,
    )


def _learning(graph: Graph, partition: Partition, taken: Ids, shards: Ids) -> list[bool]:
    """Tell of each shard whether it keeps a training node but for those taken."""
    if graph.num_train == partition.num_nodes:  # then every member is one
        lost = np.bincount(partition.shard_of(taken), minlength=partition.num_shards)
        return (partition.sizes[shards] > lost[shards]).tolist()
    return [_learns(graph, partition.members(int(shard)), taken) for shard in shards]


def _learns(graph: Graph, members: Ids, taken: Ids) -> bool:
    """Tell whether a member is a training node that is not taken; mostly one of the first is."""
    if graph.types is not None:  # those of the target type alone, which come first
        members = members[: np.searchsorted(members, 1 << graph.types.shift)]
    for start in range(0, len(members), _BLOCK):
        block = members[start : start + _BLOCK]
        if (~np.isin(block[graph.roles(block) == TRAIN], taken)).any():
            return True
    return False


def _without(nodes: Ids, others: Ids) -> Ids:
    """Return sorted ids without those that are among others, sorted likewise."""
    return nodes[ranks(nodes, others) < 0]


def _in_shards(partition: Partition, nodes: NDArray[np.int64]) -> NDArray[np.int64]:
    return nodes[partition.contains(nodes)]
