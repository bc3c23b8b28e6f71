"""Requests and changes of bipartite graphs: users, items, and interactions between them.

They are spellings of requests and changes of the graph: a user or an item is a node, an interaction
an edge. A user with number 7 is node 14, an item with number 7 node 15: the two sides take turns.
Where they have names, a node is called ``user/ada`` or ``item/7``, and its id follows from that.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from grapheraser.errors import ParameterError
from grapheraser.graph.changes.requests import REQUESTS, Edges, Nodes, fill, pairs_of
from grapheraser.graph.edge_values import checked_values
from grapheraser.graph.ids import NamedId, listed, name_id
from grapheraser.kinds import (
    ADD_INTERACTIONS,
    ADD_ITEMS,
    ADD_USERS,
    INTERACTIONS,
    ITEMS,
    USERS,
    Kind,
)

LARGEST = 2**62 - 1


class SideId(NamedId):
    """The id of a node that is a user or an item with a number, by which it is printed."""

    @classmethod
    def of(cls, kind: Kind, number: int) -> SideId:
        """Return the node of the user or item with this number."""
        if not 0 <= number <= LARGEST:
            raise ParameterError(f"{kind.words} ids must be in [0, 2**62 - 1]. Got {number}.")
        return cls.called(kind.node(int(number)), f"{kind.words} {number}")

    def __str__(self) -> str:
        return self.name

    def __reduce__(self) -> tuple[Any, ...]:
        return SideId.of, ((USERS, ITEMS)[self % 2], self // 2)


class SideName(NamedId):
    """The id of a node that is a user or an item with a name, by which it is printed."""

    @classmethod
    def of(cls, name: str) -> SideName:
        """Return the node that is called so: ``user/ada``."""
        return cls.called(name_id(name), name)

    def __str__(self) -> str:
        side, name = self.name.split("/", 1)
        return f"{side} {name!r}"

    def __reduce__(self) -> tuple[Any, ...]:
        return SideName.of, (self.name,)


def side_node(kind: Kind, given: int) -> int:
    """Return the node of a user or item, given by number or as the id of its name."""
    if isinstance(given, SideId | SideName):
        return given
    if isinstance(given, NamedId):
        return SideName.of(kind.called(given.name))
    return SideId.of(kind, given)


def side_nodes(kind: Kind, given: Any) -> list[int]:
    """Return the nodes of users or items, given by numbers or names, in their order."""
    found = listed(given, f"'ids' of {kind.class_name}")
    if isinstance(found, np.ndarray):
        raise ParameterError(
            f"'ids' of {kind.class_name} must be numbers or names. Got a mask.",
            hint="give the ids: np.flatnonzero(mask).",
        )
    return [side_node(kind, node) for node in found]


def side_pairs(owner: str, given: Any) -> list[tuple[int, int]]:
    """Return the nodes of pairs of a user and an item."""
    return [(side_node(USERS, u), side_node(ITEMS, i)) for u, i in pairs_of(owner, given)]


@dataclass(frozen=True)
class _OfSide:
    """A request that names users or items; ``ids`` are those of their nodes."""

    kind: ClassVar[Kind]
    ids: tuple[int, ...]

    def __init__(self, ids: Iterable[int | str] | ArrayLike) -> None:
        fill(self, ids=tuple(sorted(set(side_nodes(self.kind, ids)))))

    @classmethod
    def of_nodes(cls, nodes: Iterable[int]) -> Self:
        """Return the request that names these nodes.

        Args:
            nodes: ids of users or items in the graph.
        """
        made = object.__new__(cls)
        fill(made, ids=tuple(sorted(set(nodes))))
        return made

    @property
    def named(self) -> tuple[int, ...]:
        """The nodes that the request names."""
        return self.ids

    @property
    def in_graph(self) -> Nodes:
        """The request in terms of the graph."""
        return Nodes(list(self.ids))


class Users(_OfSide):
    """Forget these users, with all their interactions.

    Args:
        ids: numbers or names.
    """

    kind = USERS


class Items(_OfSide):
    """Forget these items, with all interactions with them.

    Args:
        ids: numbers or names.
    """

    kind = ITEMS


@dataclass(frozen=True)
class Interactions:
    """Forget these interactions; their users and items stay.

    Args:
        pairs: of a user and an item, numbers or names.
    """

    kind: ClassVar[Kind] = INTERACTIONS
    pairs: tuple[tuple[int, int], ...]

    def __init__(self, pairs: Iterable[Iterable[int | str]] | ArrayLike) -> None:
        found = set(side_pairs(type(self).__name__, pairs))
        fill(self, pairs=tuple(sorted(found)))

    @classmethod
    def of_nodes(cls, pairs: Iterable[Sequence[int]]) -> Self:
        """Return the request that names edges between these nodes.

        Args:
            pairs: ids of both ends in the graph.
        """
        made = object.__new__(cls)
        fill(made, pairs=tuple(sorted({(u, v) for u, v in pairs})))
        return made

    @property
    def named(self) -> tuple[tuple[int, int], ...]:
        """The edges that the request names."""
        return self.pairs

    @property
    def in_graph(self) -> Edges:
        """The request in terms of the graph."""
        return Edges(list(self.pairs))


@dataclass(frozen=True)
class _AddSide:
    """Add users or items that have no interactions yet."""

    kind: ClassVar[Kind]
    nodes: tuple[int, ...]

    def __init__(self, ids: Iterable[int | str] | ArrayLike) -> None:
        nodes = side_nodes(self.kind, ids)
        if len(set(nodes)) < len(nodes):
            raise ParameterError(f"'ids' of {type(self).__name__} must name each once.")
        fill(self, nodes=tuple(nodes))


class AddUsers(_AddSide):
    """Add users that have no interactions yet; `AddInteractions` adds those that have some.

    Args:
        ids: numbers or names of users that are not there.
    """

    kind = ADD_USERS


class AddItems(_AddSide):
    """Add items that nobody has interacted with yet.

    Args:
        ids: numbers or names of items that are not there.
    """

    kind = ADD_ITEMS


@dataclass(frozen=True, eq=False)
class AddInteractions:
    """Add interactions, with the users and items that are not there yet, or give them weights.

    Args:
        pairs: of a user and an item ``[m, 2]``, ids or names.
        weight: of each, where interactions have weights; takes the place of an earlier one.
        time: of each, where interactions have times; likewise.
    """

    kind: ClassVar[Kind] = ADD_INTERACTIONS
    pairs: tuple[tuple[int, int], ...]
    weight: NDArray[np.float32] | None
    time: NDArray[Any] | None

    def __init__(
        self,
        pairs: Iterable[Iterable[int | str]] | ArrayLike,
        weight: ArrayLike | None = None,
        time: ArrayLike | None = None,
    ) -> None:
        found = side_pairs(type(self).__name__, pairs)
        if len(set(found)) < len(found):
            raise ParameterError("'pairs' of AddInteractions must name each once.")
        carried = None if weight is None else checked_values(weight, None, len(found))[1][:, 0]
        times = None if time is None else np.array(time)
        if times is not None and times.shape != (len(found),):
            raise ParameterError(f"'time' of AddInteractions must name one of each: {len(found)}.")
        fill(self, pairs=tuple(found), weight=carried, time=times)


SideRequest: TypeAlias = Users | Items | Interactions
SideChange: TypeAlias = SideRequest | AddUsers | AddItems | AddInteractions
REQUESTS |= {made.kind.name: made for made in (Users, Items, Interactions)}
