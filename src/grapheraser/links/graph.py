"""The graph of a link run: nodes, edges and features, and the sides of a bipartite graph.

Labels and the split into training and test nodes have no part in links: a link run keeps neither.
Every node is a training node of class 0, or of its side. Where there are shards, the number of
classes is the width of the encoders' output.
"""

from __future__ import annotations

import warnings
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from grapheraser.checks import whole
from grapheraser.errors import GraphError, ParameterError
from grapheraser.graph import TRAIN, Graph
from grapheraser.graph.edge_values import EdgeKind, Values
from grapheraser.graph.labels import LabelKind, require_classes
from grapheraser.graph.pages.packing import NO_TARGETS
from grapheraser.graph.pages.pages import Pages

Sides: TypeAlias = str | int | None
BY_LABEL = "labels"
# Far beyond what any weight should be; products of three still have squares.
LARGEST_WEIGHT = 1e12


def check_sides(sides: Sides) -> Sides:
    """Refuse anything but a rule for the sides of a bipartite graph."""
    if sides is None or (isinstance(sides, str) and sides == BY_LABEL):
        return sides
    try:
        return whole("sides", "LinkEraser", sides)
    except ParameterError:
        wanted = "None, 'labels', or the smallest id of the second side"
        raise ParameterError.of("sides", "LinkEraser", wanted, sides) from None


def link_graph(graph: Graph, sides: Sides = None, width: int = 1) -> Graph:
    """Return what a link run keeps of a graph; for ``sides`` see `LinkEraser`.

    ``width`` is that of the encoders' output; 1 without shards.
    """
    graph = _plain(graph)
    if sides == BY_LABEL:
        require_classes(graph, "sides='labels'")
    check_weights(graph.edge_values, graph.edge_kind)
    y = _sides(graph, sides)
    if sides is not None:
        within = y[graph.sources] == y[graph.indices]
        if within.any():
            at = int(np.flatnonzero(within)[0])
            u, v = graph.ids[graph.sources[at]], graph.ids[graph.indices[at]]
            raise GraphError(
                f"edge {u}-{v} is between two nodes of one side "
                f"({int(within.sum()) // 2} of {graph.num_edges} edges are).",
                hint="check 'sides', or leave it out if the graph is not bipartite.",
            )
    role = np.full(graph.num_nodes, TRAIN, dtype=np.int8)
    rows = graph.pages.rows()._replace(y=y, role=role, targets=NO_TARGETS)
    classes = max(width, 1 if sides is None else 2)
    # Labels have a part in a link run only where they tell the sides.
    inferred = tuple(item for item in graph.inferred if item != "classes" or sides == BY_LABEL)
    pages = Pages.of(rows, graph.edge_kind)
    named: dict[str, Any] = {"name": graph.name, "notes": graph.notes, "inferred": inferred}
    made = Graph.of_pages(pages, LabelKind(count=classes), **named)
    return made.with_encoding(graph.encoding)


def check_weights(values: Values, kind: EdgeKind) -> None:
    """Refuse weights of edges that can't be counted; ``values`` is what the edges carry."""
    weights = kind.weights(values)
    if weights is None or not len(weights):
        return
    if weights.min() < 0 or weights.max() > LARGEST_WEIGHT:
        found = weights.min() if weights.min() < 0 else weights.max()
        raise GraphError(
            f"an edge counts by the root of its weight, so weights must be in "
            f"[0, {LARGEST_WEIGHT:g}] (found {found:g}).",
            hint="scale or clip them, so that 1 is the weight of an ordinary edge; or "
            "graph.without_weights().",
        )


def given_side(sides: Sides, side: int | None) -> list[int] | None:
    """The label of a new node: its side, where labels tell that."""
    if sides == BY_LABEL:
        return [whole("side", "LinkEraser.insert", side, 0, 1)]
    if side is not None:
        raise ParameterError(
            "'side' of LinkEraser.insert has no part in a run whose sides are not told by labels. "
            f"Got {side!r}."
        )
    return None


def sides_of(nodes: NDArray[np.int64], sides: str | int | None) -> NDArray[np.int64]:
    """The side of each of some nodes, as their ids say."""
    if sides is None:
        return np.zeros(len(nodes), dtype=np.int64)
    return (nodes >= int(sides)).astype(np.int64)


def _plain(graph: Graph) -> Graph:
    """The graph without the features of its edges; says that they are left out."""
    if not graph.edge_kind.columns:
        return graph
    note = "links are learned without the features of edges"
    warnings.warn(f"graph '{graph.name}': {note}.", stacklevel=7)
    plain = graph.without_edge_attr()
    notes = (*plain.notes, note)
    return plain.with_fields(notes=notes)


def _sides(graph: Graph, sides: Sides) -> NDArray[np.int64]:
    if sides == BY_LABEL:
        if ((graph.y != 0) & (graph.y != 1)).any():
            raise GraphError(
                "sides='labels' needs the class 0 or 1 of every node "
                f"(found {np.unique(graph.y)[:5].tolist()})."
            )
        return graph.y.astype(np.int64)
    if graph.named and sides is not None:
        raise GraphError(
            f"ids that follow from names don't tell sides (found sides={sides}).",
            hint="give every node the class 0 or 1, and sides='labels'.",
        )
    return sides_of(graph.ids, sides)
