"""NetworkX graphs: their attributes are columns of tables, and back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from grapheraser.errors import GraphError
from grapheraser.graph.from_tables import tables_of

if TYPE_CHECKING:
    from grapheraser.graph.graph import Graph

READERS = {".graphml": "read_graphml", ".gml": "read_gml"}


def tables_in(network: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """The nodes and edges of a NetworkX graph as columns."""
    if not all(hasattr(network, part) for part in ("nodes", "edges", "is_directed")):
        raise GraphError(f"not a NetworkX graph (found {type(network).__name__}).")
    keys = list(network.nodes)
    other = [key for key in keys if not isinstance(key, str | int) or isinstance(key, bool)]
    if other:
        raise GraphError(
            f"the nodes of a network must be integers or strings (found {other[0]!r}).",
            hint="networkx.relabel_nodes(network, str) makes strings of them.",
        )
    mixed = len({isinstance(key, str) for key in keys}) > 1
    if mixed:
        raise GraphError("the nodes of a network must be integers, or strings, and not both.")
    nodes = {"id": keys} | _columns([network.nodes[key] for key in keys], "id", "nodes")
    pairs = list(network.edges(data=True))
    edges = {"source": [u for u, _, _ in pairs], "target": [v for _, v, _ in pairs]}
    return nodes, edges | _columns([data for *_, data in pairs], "source", "edges")


def _columns(rows: Sequence[Mapping[str, Any]], taken: str, what: str) -> dict[str, list[Any]]:
    names = dict.fromkeys(str(name) for row in rows for name in row)
    if taken in names:
        raise GraphError(f"the {what} of a network have an attribute '{taken}': rename it.")
    return {name: [row.get(name) for row in rows] for name in names}


def network_of(graph: Graph) -> Any:
    """A NetworkX graph with the features of nodes and edges as attributes."""
    import networkx

    nodes, edges = tables_of(graph)
    made = networkx.DiGraph() if graph.directed else networkx.Graph()
    x = graph.x.toarray()
    for row, key in enumerate(nodes["id"]):
        made.add_node(key, x=x[row], label=nodes["label"][row], split=nodes["split"][row])
    carried = [name for name in edges if name not in ("source", "target")]
    values = np.array([edges[name] for name in carried], dtype=np.float64).T
    for row, (u, v) in enumerate(zip(edges["source"], edges["target"], strict=True)):
        own = dict(zip(carried, values[row].tolist(), strict=True)) if carried else {}
        made.add_edge(u, v, **own)
    return made


def read_network(path: Path) -> Any:
    """A NetworkX graph from a GraphML or GML file."""
    import networkx

    try:
        return getattr(networkx, READERS[path.suffix])(path)
    except FileNotFoundError:
        raise GraphError(f"{path}: no such file.") from None
    except Exception as error:  # the readers raise whatever their parsers do
        raise GraphError(f"{path}: not a readable {path.suffix[1:]} file ({error}).") from error
