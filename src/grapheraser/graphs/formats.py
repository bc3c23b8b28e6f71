"""Collections in other formats: PyG, NetworkX, SMILES, TU folders, tables, as flat arrays."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from grapheraser.errors import GraphError, MissingExtraError
from grapheraser.graph.formats.tables import Table, table_of

Arrays = dict[str, Any]
# What is read of a PyG Data.
_PYG = ("num_nodes", "node_label", "z", "x", "edge_index", "edge_label", "edge_attr", "y")
_KEYS = ("num_nodes", "node_id", "node_label", "x", "edges", "edge_label", "edge_attr")


def several(graphs: Any) -> list[Any]:
    """Return graphs as a list, batches taken apart; refuse one graph alone."""
    if hasattr(graphs, "to_data_list"):
        return _each(graphs)
    one = isinstance(graphs, str | Mapping) or hasattr(graphs, "is_directed")
    if one or not hasattr(graphs, "__getitem__") | hasattr(graphs, "__iter__"):
        found = type(graphs).__name__
        raise GraphError(f"graphs must come as a list (found {found}).", hint="of one: [graph].")
    return [one for part in graphs for one in _each(part)]


def _each(part: Any) -> list[Any]:
    return list(part.to_data_list()) if hasattr(part, "to_data_list") else [part]


def arrays_of(graphs: Sequence[Any]) -> Arrays:
    """Put graphs of any form one after the other: PyG's, NetworkX's, SMILES strings, mappings."""
    first = graphs[0] if len(graphs) else {}
    if isinstance(first, str):
        return of_smiles(graphs)
    if isinstance(first, Mapping):
        return of_mappings(graphs)
    if hasattr(first, "edge_index"):
        return of_pyg(graphs, np.zeros(len(graphs), dtype=np.int64))
    if hasattr(first, "is_directed") and hasattr(first, "nodes"):
        return of_networkx(graphs, "label", "label")
    raise GraphError(
        "a graph must be a PyG Data, a NetworkX graph, a SMILES string or a mapping "
        f"(found {type(first).__name__})."
    )


def of_mappings(graphs: Sequence[Any]) -> Arrays:
    """Put graphs such as ``{"node_label": [6, 8], "edges": [[0, 1]], "edge_label": [2]}`` together.

    One without ``node_label`` and ``x`` says ``num_nodes``.
    """
    sizes, edges, first = [], [], 0
    for at, graph in enumerate(graphs):
        odd = sorted(graph.keys() - {*_KEYS}) if isinstance(graph, Mapping) else ["?"]
        if odd:
            raise GraphError(f"graph {at} has a key '{odd[0]}': a graph has {', '.join(_KEYS)}.")
        nodes = graph.get("node_label", graph.get("x"))
        if nodes is None and "num_nodes" not in graph:
            raise GraphError(f"graph {at} needs 'node_label', 'x' or 'num_nodes'.")
        sizes.append(int(graph["num_nodes"]) if nodes is None else len(nodes))
        if sizes[-1] != graph.get("num_nodes", sizes[-1]):
            raise GraphError(f"graph {at} has {sizes[-1]} labels of {graph['num_nodes']} nodes.")
        pairs = np.array(graph.get("edges", ()), dtype=np.int64).reshape(-1, 2)
        if pairs.size and (pairs.min() < 0 or pairs.max() >= sizes[-1]):
            raise GraphError(f"'edges' of graph {at} must be in [0, {sizes[-1] - 1}].")
        edges.append(pairs + first)
        first += sizes[-1]
    parts = {
        key: _joined([None if g.get(key) is None else np.array(g[key]) for g in graphs], f"'{key}'")
        for key in _KEYS
        if key not in ("num_nodes", "edges")
    }
    return {
        "node_offset": np.append(0, np.cumsum(sizes)).astype(np.int64),
        "edges": np.concatenate([np.zeros((0, 2), np.int64), *edges]),
        **{key: part for key, part in parts.items() if part is not None},
    }


def of_tables(graphs: Any, nodes: Any, edges: Any, label: str) -> Arrays:
    """Read a table of graphs, one of nodes and one of edges, which name their graph.

    Graphs are numbered by their ``graph``; nodes by their ``node`` within a graph.
    """
    whole, inside, joined = (
        table_of(source, name)
        for source, name in ((graphs, "graphs"), (nodes, "nodes"), (edges, "edges"))
    )

    def numbers(table: Table, name: str) -> NDArray[np.int64]:
        found = table.numbers(name).ravel()
        if not (np.isfinite(found) & (found == np.floor(found)) & (found >= 0)).all():
            raise GraphError(f"column '{name}' must be whole numbers of at least 0.")
        return found.astype(np.int64)

    ids, at = np.unique(numbers(whole, "graph"), return_index=True)
    if len(ids) < len(whole):
        raise GraphError("column 'graph' of the graphs must name each once.")
    owner = _found(ids, numbers(inside, "graph"), "a graph")
    rows = np.lexsort((numbers(inside, "node"), owner))
    keys = owner * 2**32 + numbers(inside, "node")
    if len(np.unique(keys)) < len(keys):
        raise GraphError("column 'node' of the nodes must name each once in its graph.")
    of = _found(ids, numbers(joined, "graph"), "a graph") * 2**32
    ends = [_found(keys[rows], of + numbers(joined, end), "a node") for end in ("source", "target")]
    made: Arrays = {
        "ids": ids,
        "node_offset": np.append(0, np.cumsum(np.bincount(owner, minlength=len(ids)))),
        "edges": np.stack(ends, axis=1),
        "y": _as_labels(np.array(whole.column(label, "label"))[at]),
        "node_id": numbers(inside, "node")[rows],
    }
    if "label" in inside.columns:
        made["node_label"] = numbers(inside, "label")[rows]
    if "label" in joined.columns:
        made["edge_label"] = numbers(joined, "label")
    for key, table, order, known in (
        ("x", inside, rows, ("graph", "node", "label")),
        ("edge_attr", joined, slice(None), ("graph", "source", "target", "label")),
    ):
        if more := [name for name in table.columns if name not in known]:
            made[key] = np.hstack([table.numbers(name) for name in more])[order]
    if over := sorted({*whole.columns} - {"graph", label}):
        raise GraphError(f"column '{over[0]}' of the graphs is not used.", hint="drop it.")
    return made


def _as_labels(column: NDArray[Any]) -> NDArray[Any]:
    """Read labels of a table: whole numbers are classes, other numbers are numbers, words names."""
    try:
        found = column.astype(np.float64)
    except ValueError:
        return column
    return found.astype(np.int64) if (found == np.floor(found)).all() else found


def _found(known: NDArray[np.int64], asked: NDArray[np.int64], what: str) -> NDArray[np.int64]:
    """Return the places of what is asked for in a sorted array."""
    at = np.minimum(np.searchsorted(known, asked), max(len(known) - 1, 0))
    if len(asked) and (not len(known) or (known[at] != asked).any()):
        raise GraphError(f"the tables name {what} that is not there.")
    return at


def of_pyg(graphs: Sequence[Any], y: ArrayLike | None) -> Arrays:
    """Put the arrays of PyG ``Data`` objects one after the other; warn of what is left out."""
    made, targets = [], []
    for at, data in enumerate(graphs):
        if not hasattr(data, "edge_index"):
            raise GraphError(
                f"graph {at} has no 'edge_index' (found {type(data).__name__}).",
                hint="other forms: Collection.from_networkx, from_smiles, from_tables.",
            )
        count, ends = int(data.num_nodes), data.edge_index
        pairs = np.zeros((0, 2), np.int64) if ends is None else _array(ends).T
        label, x = _split(data, ("node_label", "z"), "x", count)
        kind, attr = _split(data, ("edge_label",), "edge_attr", len(pairs))
        parts = {"node_label": label, "x": x, "edge_label": kind, "edge_attr": attr}
        made.append({"num_nodes": count, "edges": pairs, **parts})
        if y is None:
            if getattr(data, "y", None) is None:
                raise GraphError(f"graph {at} has no label 'y'.", hint="hand them in: y=[...].")
            targets.append(_array(data.y))
    for key in [*graphs[0].keys()] if graphs else ():
        if key not in _PYG and (graphs[0].is_node_attr(key) or graphs[0].is_edge_attr(key)):
            hint = "make it part of 'x' or 'edge_attr' if it should be"
            warnings.warn(f"'{key}' of the graphs is not used: {hint}.", stacklevel=4)
    return {**of_mappings(made), "y": _targets(targets) if y is None else y}


def of_networkx(graphs: Sequence[Any], label: str, edge_label: str) -> Arrays:
    """Number the nodes of NetworkX graphs in their order; other attributes are refused."""
    made, directed = [], {bool(graph.is_directed()) for graph in graphs}
    if len(directed) > 1:
        raise GraphError("a collection's graphs are all directed, or none of them is.")
    for at, graph in enumerate(graphs):
        nodes, edges = list(graph.nodes(data=True)), list(graph.edges(data=True))
        for some, known in ((nodes, label), (edges, edge_label)):
            if over := sorted({key for *_, found in some for key in found} - {known}):
                raise GraphError(
                    f"graph {at} has an attribute '{over[0]}' that is not used.",
                    hint=f"name the one to use: label='{over[0]}', or drop it.",
                )
        places = {node: i for i, (node, _) in enumerate(nodes)}
        made.append(
            {
                "node_label": _flat([found.get(label, 0) for _, found in nodes]),
                "edges": [(places[u], places[v]) for u, v, _ in edges],
                "edge_label": _flat([found.get(edge_label, 0) for *_, found in edges]),
            }
        )
    return {**of_mappings(made), "directed": directed == {True}}


def of_smiles(smiles: Sequence[str]) -> Arrays:
    """Read molecules: atomic numbers, and twice the order of bonds."""
    chem, made = _rdkit(), []
    for at, text in enumerate(smiles):
        molecule = chem.MolFromSmiles(text)
        if molecule is None:
            raise GraphError(f"molecule {at} is not a SMILES string (found {text!r}).")
        bonds = list(molecule.GetBonds())
        made.append(
            {
                "node_label": _flat([atom.GetAtomicNum() for atom in molecule.GetAtoms()]),
                "edges": [(bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()) for bond in bonds],
                "edge_label": _flat([round(2 * bond.GetBondTypeAsDouble()) for bond in bonds]),
            }
        )
    return of_mappings(made)


def _flat(values: list[Any]) -> NDArray[Any]:
    """Return an array of labels, of whole numbers where there are none."""
    return np.array(values) if values else np.zeros(0, dtype=np.int64)


def of_tu(folder: Path) -> Arrays:
    """Read the text files of a TU data set; the classes of its graphs may begin anywhere."""
    (found,) = sorted(folder.glob("*_A.txt"))[:1] or (None,)
    if found is None:
        raise GraphError(f"folder '{folder.name}' has no file NAME_A.txt: it is no TU data set.")
    name = found.name.removesuffix("_A.txt")

    def read(part: str, dtype: Any) -> NDArray[Any] | None:
        path = folder / f"{name}_{part}.txt"
        return np.loadtxt(path, delimiter=",", dtype=dtype, ndmin=2) if path.exists() else None

    edges, owner, classes = read("A", np.int64), read("graph_indicator", np.int64), None
    if edges is None or owner is None:
        raise GraphError(f"folder '{folder.name}' has no file {name}_graph_indicator.txt.")
    numbers = read("graph_attributes", np.float64)
    classes = read("graph_labels", np.int64)
    y = numbers if classes is None else np.unique(classes[:, 0], return_inverse=True)[1]
    labels, kinds = read("node_labels", np.int64), read("edge_labels", np.int64)
    counts = np.bincount(owner[:, 0] - 1)
    parts = {
        "node_offset": np.append(0, np.cumsum(counts)),
        "edges": edges - 1,
        "node_label": _as_one(labels),
        "edge_label": _as_one(kinds),
        "x": read("node_attributes", np.float64),
        "edge_attr": read("edge_attributes", np.float64),
        "y": y,
        "name": name,
    }
    return {key: value for key, value in parts.items() if value is not None}


def _as_one(labels: NDArray[np.int64] | None) -> NDArray[np.int64] | None:
    """Make one label of several columns: the same one whatever else the data has."""
    if labels is None or labels.shape[1] == 1:
        return None if labels is None else labels[:, 0]
    room = 20 // labels.shape[1]
    if room == 0 or labels.min() < 0 or labels.max() >= 2**room:
        raise GraphError(f"the {labels.shape[1]} columns of labels don't fit into one.")
    made: NDArray[np.int64] = (labels << (room * np.arange(labels.shape[1]))).sum(axis=1)
    return made


def _rdkit() -> Any:
    try:
        from rdkit import Chem
    except ImportError as error:
        raise MissingExtraError.of("rdkit", "molecules", "SMILES") from error
    return Chem


def _array(values: Any) -> NDArray[Any]:
    return np.asarray(values.detach().cpu() if hasattr(values, "detach") else values)


def _split(
    data: Any, names: Sequence[str], table: str, count: int
) -> tuple[NDArray[np.int64] | None, NDArray[Any] | None]:
    """Return labels and features: one column of whole numbers is labels, unless there are some."""
    label = next((_array(data[name]).ravel() for name in names if name in data), None)
    values = _array(data[table]) if table in data and data[table] is not None else None
    if values is None:
        return label, None
    values = values.reshape(count, -1)
    if label is None and values.shape[1] == 1 and values.dtype.kind in "iub":
        return values[:, 0].astype(np.int64), None
    return label, values


def _joined(parts: Sequence[NDArray[Any] | None], what: str) -> NDArray[Any] | None:
    there = [part for part in parts if part is not None]
    if not there:
        return None
    if len(there) < len(parts):
        raise GraphError(f"some graphs have {what}, others have none.")
    if len({part.shape[1:] for part in there}) > 1:
        raise GraphError(f"{what} of the graphs differ in their number of columns.")
    return np.concatenate(there)


def _targets(targets: Sequence[NDArray[Any]]) -> NDArray[Any]:
    if len({part.size for part in targets}) > 1:
        raise GraphError("the labels 'y' of the graphs differ in their number of entries.")
    rows = np.stack([part.ravel() for part in targets]) if targets else np.zeros((0, 1), np.int64)
    return rows[:, 0] if rows.shape[1] == 1 else rows
