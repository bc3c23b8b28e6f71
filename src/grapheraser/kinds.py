"""The kinds of data that can be forgotten or changed, each declared once.

A `Kind` says how it is spelled wherever a request passes: in Python, on the command line, in JSON
lines, in the service's API, in receipts and their counts, and in sentences. Everything else reads
the declaration. A task that brings a kind of its own puts it into `KINDS`, and the class of its
requests into `graph.changes.requests.REQUESTS`; `Task.kinds` lists the names that a task takes.

Standard library alone, since receipts are checked with nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

FORGET, ADD, SET = "forget", "add", "set"
# How names of counts say that something came.
PARTICIPLES = {ADD: "added", SET: "set"}


@dataclass(frozen=True)
class Kind:
    """One kind of data to forget, to add or to set.

    Attributes:
        name: plural; the option of the command line, the key in JSON lines, in the service's API
            and in the counts of what goes. ``nodes``, or ``add_nodes`` for a change.
        noun: in the parts of receipts.
        words: one of it in a sentence.
        ends: ids that name one of it.
        verb: `FORGET`, `ADD` or `SET`.
        changes: the name of the kind that a change adds or sets; empty for requests to forget.
        needed, optional: keys of a change's object in JSON lines.
        in_every_digest: the digest of a request names it even where there is none of it.
        side: of a bipartite graph, where it is a node of one side: 0 or 1.
        sides: of the ends, where they are on different sides: the names of their kinds.
        inside: the first end is a graph of a collection, the others are nodes inside it.
        targets: one of several may be named by its node and a target.
    """

    name: str
    noun: str
    words: str
    ends: int = 1
    verb: str = FORGET
    changes: str = ""
    needed: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    in_every_digest: bool = False
    side: int | None = None
    sides: tuple[str, ...] = ()
    inside: bool = False
    targets: bool = False

    @property
    def class_name(self) -> str:
        """The class in Python, e.g. ``Nodes`` or ``AddNodes``."""
        return "".join(word.capitalize() for word in self.name.split("_"))

    @property
    def count(self) -> str:
        """The key in counts, e.g. ``nodes`` or ``added_nodes``."""
        return f"{PARTICIPLES[self.verb]}_{self.changes}" if self.changes else self.name

    @property
    def is_node(self) -> bool:
        """True where one of it is a node, with all that it has."""
        return self.ends == 1 and (self.noun in ("node", "graph") or self.side is not None)

    def node(self, number: int) -> int:
        """Return the node of one of it that has a number: those of two sides take turns."""
        return number if self.side is None else 2 * number + self.side

    def number(self, node: Any) -> Any:
        """Return the number of one of it, or of many: the inverse of `node`."""
        return node if self.side is None else (node - self.side) // 2

    def called(self, name: str) -> str:
        """Return the name of the node of one of it that has a name."""
        return name if self.side is None else f"{self.noun}/{name}"

    def about(self, ids: Iterable[int], **more: Any) -> dict[str, Any]:
        """Return the part of a receipt that names one of this kind; ids as text.

        One of several relations between two nodes is named by its number after them.
        """
        named = [int(node) for node in ids]
        if self.ends > 1 and len(named) > self.ends:
            more = {"relation": named.pop(), **more}
        return {self.verb: self.noun, "ids": list(map(str, named)), **more}


def _change(verb: str, kind: Kind, needed: tuple[str, ...], *optional: str) -> Kind:
    said: dict[str, Any] = {
        "verb": verb,
        "changes": kind.name,
        "needed": needed,
        "optional": optional,
    }
    return replace(kind, name=f"{verb}_{kind.name}", in_every_digest=False, **said)


NODES = Kind("nodes", "node", "node", in_every_digest=True)
EDGES = Kind("edges", "edge", "edge", ends=2, in_every_digest=True)
FEATURES = Kind("features", "features", "feature row", in_every_digest=True)
LABELS = Kind("labels", "label", "label", targets=True)
ADD_NODES = _change(ADD, NODES, ("ids", "x"), "y", "edges", "edge_weight", "edge_attr", "type")
ADD_EDGES = _change(ADD, EDGES, ("pairs",), "weight", "edge_attr", "type")
SET_FEATURES = _change(SET, FEATURES, ("nodes", "x"), "type")
SET_LABELS = _change(SET, LABELS, ("nodes", "y"), "target")
USERS = Kind("users", "user", "user", side=0)
ITEMS = Kind("items", "item", "item", side=1)
INTERACTIONS = Kind(
    "interactions", "interaction", "interaction", ends=2, sides=(USERS.name, ITEMS.name)
)
ADD_USERS = _change(ADD, USERS, ("ids",))
ADD_ITEMS = _change(ADD, ITEMS, ("ids",))
ADD_INTERACTIONS = _change(ADD, INTERACTIONS, ("pairs",), "weight", "time")
GRAPHS = Kind("graphs", "graph", "graph")
GRAPH_NODES = Kind("graph_nodes", "graph node", "node of a graph", ends=2, inside=True)
GRAPH_EDGES = Kind("graph_edges", "graph edge", "edge of a graph", ends=3, inside=True)
ADD_GRAPHS = _change(ADD, GRAPHS, ("ids", "graphs"), "y")
SET_GRAPHS = _change(SET, GRAPHS, ("ids", "graphs"))

# The kinds that every graph has, in the order in which they are listed everywhere.
GRAPH_KINDS = (NODES, EDGES, FEATURES, LABELS)
GRAPH_NAMES = tuple(kind.name for kind in GRAPH_KINDS)
GRAPH_CHANGES = (ADD_NODES, ADD_EDGES, SET_FEATURES, SET_LABELS)
# All kinds to forget, and all changes, by name.
_SIDES = USERS, ITEMS, INTERACTIONS
_COLLECTIONS = GRAPHS, GRAPH_NODES, GRAPH_EDGES
KINDS: dict[str, Kind] = {kind.name: kind for kind in (*GRAPH_KINDS, *_SIDES, *_COLLECTIONS)}
_SIDE_CHANGES = ADD_USERS, ADD_ITEMS, ADD_INTERACTIONS
CHANGES: dict[str, Kind] = {
    kind.name: kind for kind in (*GRAPH_CHANGES, *_SIDE_CHANGES, ADD_GRAPHS, SET_GRAPHS)
}


class Item(NamedTuple):
    """One thing to forget: its kind, and the ids of its nodes.

    Of an edge the lower id comes first, and after both the number of a relation where it is one of
    several. One of a node's several labels is named by the node and the number of the target.
    """

    kind: Kind
    ids: tuple[int, ...]

    @property
    def more(self) -> bool:
        """True of a relation between two nodes, and of one of a node's labels."""
        return len(self.ids) > self.kind.ends


def items_of(named: Mapping[str, Sequence[Any]]) -> Iterator[Item]:
    """List what is named by kind, such as ``{"nodes": [12], "edges": [(3, 17)]}``, one by one."""
    for kind in KINDS.values():
        for ids in named.get(kind.name, ()):
            yield Item(kind, item_ids(kind, ids if isinstance(ids, Sequence) else (ids,)))


def named_by(items: Iterable[Item]) -> dict[str, list[Any]]:
    """Return items as lists by the name of their kind: the inverse of `items_of`."""
    named: dict[str, list[Any]] = {}
    for kind, ids in items:
        named.setdefault(kind.name, []).append(ids if len(ids) > 1 else ids[0])
    return named


def forgotten_item(about: Mapping[str, Any]) -> Item | None:
    """Read what a part of a receipt says is forgotten; None where it says something else."""
    for kind in KINDS.values():
        if about.get(FORGET) == kind.noun:
            return Item(kind, item_ids(kind, nodes_of(kind, about)))
    return None


def node_forgotten(about: Mapping[str, Any]) -> int | None:
    """Return the node that a part of a receipt says is forgotten with all it has, if one is."""
    item = forgotten_item(about)
    if item is None or not item.kind.is_node:
        return None
    (node,) = item.ids
    return node


def nodes_of(kind: Kind, about: Mapping[str, Any]) -> list[int]:
    """Return the ids of the nodes that a part of a receipt is about.

    Nodes on two sides are told by their numbers there; where they have names, by their ids.
    """
    ids = [int(node) for node in about["ids"]]
    relation = [int(about["relation"])] if "relation" in about else []
    if "names" in about or relation:
        return ids + relation
    ends = [KINDS[name] for name in kind.sides] or [kind] * len(ids)
    return [end.node(number) for end, number in zip(ends, ids, strict=True)]


def item_ids(kind: Kind, ids: Sequence[Any]) -> tuple[int, ...]:
    """Return the ids of an item as whole numbers, the ends of an edge in order."""
    found = tuple(map(int, ids))
    first, last = int(kind.inside), kind.ends  # a graph comes before, a relation after the ends
    return (*found[:first], *sorted(found[first:last]), *found[last:]) if last > 1 else found


def forgotten_counts(counts: Mapping[str, int]) -> dict[str, int]:
    """Return how much went, by kind: the counts of a receipt less what was added and set."""
    names = [name for name in KINDS if name in GRAPH_NAMES or name in counts]
    went = {name: counts.get(name, 0) for name in names}
    for change in CHANGES.values():
        if change.changes in went:
            went[change.changes] -= counts.get(change.count, 0)
    return went
