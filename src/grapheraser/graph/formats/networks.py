"""NetworkX graphs, whose attributes are columns of tables, SciPy's sparse matrices, and back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from grapheraser.errors import GraphError
from grapheraser.graph.formats.from_tables import to_tables
from grapheraser.graph.formats.pyg import MASKS
from grapheraser.graph.ids import as_ids
from grapheraser.graph.roles import UNLABELLED

if TYPE_CHECKING:
    from grapheraser.graph.graph import Graph

READERS = {".graphml": "read_graphml", ".gml": "read_gml"}


def from_networkx(
    _cls: type[Graph], /, network: Any, *, name: str = "graph", **options: Any
) -> Graph:
    """Build a graph from a NetworkX graph, whose attributes are columns; see `from_tables`.

    Nodes are integers or strings. Features are numbers, one attribute per column, or rows of
    numbers. Without ``label`` and ``split``, PyG's ``y`` and masks are read. The edges of a
    ``DiGraph`` keep their directions, unless ``directed`` is False.
    """
    nodes, edges = _tables_in(network)
    _rename(nodes, options)
    options.setdefault("directed", bool(network.is_directed()))
    inferred = [*options.pop("inferred", ()), *_inferred_of(network, options)]
    return _cls.from_tables(nodes, edges, name=name, inferred=inferred, **options)


def _tables_in(network: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the nodes and edges of a NetworkX graph as columns."""
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


def _rename(nodes: dict[str, Any], options: Mapping[str, Any]) -> None:
    """Give labels and the split their usual names, where PyG wrote the network."""
    features = options.get("features") or ()
    masks = [mask for mask in MASKS if mask in nodes and mask not in features]
    if "y" in nodes and "y" not in features and not {"label"} & {*nodes, *options}:
        nodes["label"] = nodes.pop("y")
    if masks and not {"split"} & {*nodes, *options}:
        parts = [[MASKS[mask] if there else "" for there in nodes.pop(mask)] for mask in masks]
        nodes["split"] = [next(filter(None, row), "") for row in zip(*parts, strict=True)]


def _columns(rows: Sequence[Mapping[str, Any]], taken: str, what: str) -> dict[str, list[Any]]:
    names = dict.fromkeys(str(name) for row in rows for name in row)
    if taken in names:
        raise GraphError(f"the {what} of a network have an attribute '{taken}': rename it.")
    return {name: [row.get(name) for row in rows] for name in names}


def _inferred_of(network: Any, options: Mapping[str, Any]) -> list[str]:
    """Name what the attributes decided and fewer of them might decide otherwise."""
    orders = {tuple(row) for _, row in network.nodes(data=True)}
    weights = any("weight" in row for *_, row in network.edges(data=True))
    found = {
        "features": "features" not in options and len(orders) > 1,
        "weights": "weight" not in options and weights,
    }
    return [item for item, there in found.items() if there]


def to_networkx(graph: Graph) -> Any:
    """Make a NetworkX graph; nodes have ``x``, ``label`` and ``split``, edges what they carry."""
    import networkx

    nodes, edges = to_tables(graph)
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
    """Read a NetworkX graph from a GraphML or GML file."""
    import networkx

    try:
        return getattr(networkx, READERS[path.suffix])(path)
    except FileNotFoundError:
        raise GraphError(f"{path}: no such file.") from None
    except Exception as error:  # the readers raise whatever their parsers do
        raise GraphError(f"{path}: not a readable {path.suffix[1:]} file ({error}).") from error


# -- SciPy ----------------------------------------------------------------------------------------


def from_scipy(
    _cls: type[Graph],
    /,
    adjacency: Any,
    x: Any = None,
    y: ArrayLike | None = None,
    *,
    ids: ArrayLike | None = None,
    weighted: bool | None = None,
    **options: Any,
) -> Graph:
    """Build a graph from a sparse adjacency matrix.

    Args:
        adjacency: ``[n, n]``; an entry in row i and column j is an edge from i to j.
        x: features ``[n, num_features]``; default none.
        y: classes ``[n]``; default unknown.
        ids: of the rows; default ``0 .. n-1``.
        weighted: whether its values are weights; None: where one of them is not 1.
        options: those of `from_arrays`.
    """
    edges = _edges_of(adjacency, ids, weighted)
    found = ["weights"] if weighted is None and "edge_weight" in edges else []
    inferred = [*options.pop("inferred", ()), *found]
    n = int(adjacency.shape[0])
    x = np.zeros((n, 0)) if x is None else x
    y = np.full(n, UNLABELLED) if y is None else y
    return _cls.from_arrays(x, y=y, ids=ids, inferred=inferred, **edges, **options)


def _edges_of(matrix: Any, ids: ArrayLike | None, weighted: bool | None) -> dict[str, Any]:
    """Return the edges of an adjacency matrix, for `Graph.from_arrays`; see `from_scipy`."""
    sparse = sp.issparse(matrix)
    if not sparse or matrix.ndim != 2:
        raise GraphError(
            f"an adjacency must be a sparse matrix of SciPy (found {type(matrix).__name__})."
        )
    n, other = matrix.shape
    if n != other:
        raise GraphError(f"an adjacency must be square (found shape [{n}, {other}]).")
    entries: Any = matrix.tocoo(copy=True)
    entries.sum_duplicates()
    there = entries.data != 0
    known = np.arange(n) if ids is None else as_ids(ids)
    if len(known) != n:
        raise GraphError(f"ids must name every row of the adjacency: {n} (found {len(known)}).")
    ends = np.stack([entries.row, entries.col])[:, there].astype(np.int64)
    values = entries.data[there]
    if weighted is None:
        weighted = bool((values != 1).any())
    return {"edge_index": known[ends]} | ({"edge_weight": values} if weighted else {})


def to_scipy(graph: Graph) -> sp.csr_array:
    """Return the adjacency ``[n, n]`` by position, from sources to targets, with weights or 1."""
    at, n = graph.edge_index, graph.num_nodes
    weights = np.ones(at.shape[1], np.float32) if graph.edge_weight is None else graph.edge_weight
    return sp.csr_array((weights, (at[0], at[1])), shape=(n, n))
