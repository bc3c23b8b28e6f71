"""Requests and changes of collections: whole graphs, and nodes and edges inside one.

A graph of a collection is a node whose feature row it is written in. To forget it is to forget the
node; to forget a part of it is to write the row anew, which `Rewritten` says.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from numpy.typing import ArrayLike

from grapheraser.errors import ParameterError, UnknownEdgeError, UnknownNodeError
from grapheraser.graph.changes.requests import REQUESTS, Nodes, fill
from grapheraser.graph.changes.updates import SetFeatures
from grapheraser.graph.ids import listed, one_id, shown
from grapheraser.kinds import ADD_GRAPHS, GRAPH_EDGES, GRAPH_NODES, GRAPHS, SET_GRAPHS, Kind


@dataclass(frozen=True)
class Graphs:
    """Forget these graphs of a collection, with all that they hold.

    Args:
        ids: of the graphs.
    """

    kind: ClassVar[Kind] = GRAPHS
    ids: tuple[int, ...]

    def __init__(self, ids: Iterable[int | str] | ArrayLike) -> None:
        fill(self, ids=Nodes(ids).ids)

    @property
    def named(self) -> tuple[int, ...]:
        """The graphs that the request names."""
        return self.ids

    @property
    def in_graph(self) -> Nodes:
        """The request in terms of the graph whose nodes are graphs."""
        return Nodes(list(self.ids))


@dataclass(frozen=True)
class _Parts:
    """A request that names parts of graphs, each by the graph and the nodes inside."""

    kind: ClassVar[Kind]
    parts: tuple[tuple[int, ...], ...]

    def __init__(self, parts: Iterable[Sequence[int | str]] | ArrayLike) -> None:
        owner, ends = type(self).__name__, self.kind.ends
        plain: Any = parts.tolist() if hasattr(parts, "tolist") else parts
        found = set()
        for part in plain:
            if isinstance(part, str) or not isinstance(part, Sequence) or len(part) != ends:
                wanted = f"a graph and {ends - 1} of its nodes each"
                raise ParameterError.of("parts", owner, wanted, part)
            graph, *inside = (one_id(node, "parts", owner) for node in part)
            found.add((graph, *sorted(inside)))
        fill(self, parts=tuple(sorted(found)))

    @property
    def named(self) -> tuple[tuple[int, ...], ...]:
        """The parts that the request names."""
        return self.parts


class GraphNodes(_Parts):
    """Forget these nodes of graphs of a collection; ``Nodes([4], graph=12)`` makes one.

    Args:
        parts: pairs of the id of a graph and that of one of its nodes.
    """

    kind = GRAPH_NODES


class GraphEdges(_Parts):
    """Forget these edges of graphs of a collection; ``Edges([(1, 4)], graph=12)`` makes one.

    Args:
        parts: of each the id of a graph, and those of both ends.
    """

    kind = GRAPH_EDGES


@dataclass(frozen=True, eq=False)
class AddGraphs:
    """Add graphs to a collection: training graphs where they have a label.

    Args:
        ids: of the new graphs; none may be there.
        graphs: as `CollectionEraser.predict_new` takes them.
        y: the label of each, as `AddNodes` takes them.
    """

    kind: ClassVar[Kind] = ADD_GRAPHS
    ids: Sequence[int]
    graphs: Any
    y: Any = None

    def __post_init__(self) -> None:
        fill(self, ids=tuple(listed(self.ids, "'ids' of AddGraphs")))


@dataclass(frozen=True, eq=False)
class SetGraphs:
    """Put other graphs in the place of some of a collection; their labels stay.

    Args:
        ids: of the graphs.
        graphs: what takes their place, as `CollectionEraser.predict_new` takes it.
    """

    kind: ClassVar[Kind] = SET_GRAPHS
    ids: Sequence[int]
    graphs: Any

    def __post_init__(self) -> None:
        fill(self, ids=tuple(listed(self.ids, "'ids' of SetGraphs")))


@dataclass(frozen=True, eq=False, init=False)
class Rewritten(SetFeatures):
    """The feature rows of graphs without parts that a request names."""

    # The parts, as plain lists by the name of their kind; receipts name these.
    told: Mapping[str, Any]
    absent: tuple[GraphNodes | GraphEdges, ...]  # what was named and is not there

    def __init__(
        self,
        nodes: Any,
        x: Any,
        told: Mapping[str, Any],
        absent: tuple[GraphNodes | GraphEdges, ...] = (),
    ) -> None:
        super().__init__(nodes, x)
        fill(self, told=told, absent=absent)


def absent_parts(absent: Sequence[GraphNodes | GraphEdges]) -> UnknownNodeError | UnknownEdgeError:
    """Return the error that names the first part that is not there."""
    (graph, *inside), count = absent[0].parts[0], sum(len(part.parts) for part in absent)
    what, error = ("node", UnknownNodeError) if len(inside) == 1 else ("edge", UnknownEdgeError)
    return error(
        f"graph {shown(graph)} has no {what} {'-'.join(map(str, inside))} "
        f"({count} of the parts that are named are not there)."
    )


CollectionRequest = Graphs | GraphNodes | GraphEdges
CollectionChange = CollectionRequest | AddGraphs | SetGraphs
REQUESTS |= {made.kind.name: made for made in (Graphs, GraphNodes, GraphEdges)}
