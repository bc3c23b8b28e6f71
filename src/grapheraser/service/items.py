"""What a request names, one by one: nodes, edges, feature rows and labels, by id."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from grapheraser.graph import Edges, Features, Labels, Nodes, Removal
from grapheraser.graph import Request as GraphRequest
from grapheraser.graph.ids import one_id
from grapheraser.service.requests import Asked

NODE, EDGE, FEATURES, LABEL = "node", "edge", "features", "label"
# The noun of each kind, as receipts use it, by the name of its list.
_NOUNS = {"nodes": NODE, "edges": EDGE, "features": FEATURES, "labels": LABEL}
_KINDS: dict[str, Any] = {NODE: Nodes, EDGE: Edges, FEATURES: Features, LABEL: Labels}


class Item(NamedTuple):
    """One thing that can be forgotten.

    Attributes:
        kind: node, edge, features or label.
        ids: of the node, or of both ends of the edge, the lower one first.
    """

    kind: str
    ids: tuple[int, ...]


def items_of(asked: Asked) -> list[Item]:
    """What a request names itself; a subject stands for more."""
    found = []
    for name, noun in _NOUNS.items():
        for value in getattr(asked, name):
            ends = value if noun == EDGE else (value,)
            ids = sorted(int(one_id(end, name, "Asked")) for end in ends)
            found.append(Item(noun, tuple(ids)))
    return found


def by_name(asked: Asked) -> bool:
    """Whether a request names a node by its name, which only some graphs know."""
    ends = (end for edge in asked.edges for end in edge)
    nodes = (*asked.nodes, *asked.features, *asked.labels, *ends)
    return any(isinstance(node, str) for node in nodes)


def forgotten_by(about: Mapping[str, Any]) -> Item | None:
    """What a part of a receipt says was forgotten; None where it is about something else."""
    noun = about.get("forget")
    return Item(noun, tuple(sorted(map(int, about["ids"])))) if noun in _KINDS else None


def there(removal: Removal) -> frozenset[Item]:
    """What a removal names and the graph has."""
    return frozenset(
        Item(noun, tuple(ids) if noun == EDGE else (ids,))
        for name, noun in _NOUNS.items()
        for ids in removal.named.get(name, ())
    )


def as_requests(items: Iterable[Item]) -> list[GraphRequest]:
    """Requests of the library for these items, one of each kind."""
    by_kind: dict[str, list[Any]] = {}
    for kind, ids in items:
        by_kind.setdefault(kind, []).append(ids if kind == EDGE else ids[0])
    return [_KINDS[kind](found) for kind, found in sorted(by_kind.items())]


def spelled(item: Item) -> Sequence[Any]:
    """An item as a JSON value."""
    return [item.kind, *item.ids]
