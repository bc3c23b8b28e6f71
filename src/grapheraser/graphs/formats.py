"""Collections in other formats: PyG, NetworkX, SMILES, TU folders, as arrays over all graphs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from grapheraser.errors import GraphError, MissingExtraError

Arrays = dict[str, Any]


def of_pyg(graphs: Sequence[Any], y: ArrayLike | None) -> Arrays:
    """Put the arrays of PyG ``Data`` objects one after the other."""
    sizes, edges, labels, features, kinds, attrs, targets = [], [], [], [], [], [], []
    start = 0
    for at, data in enumerate(graphs):
        if not hasattr(data, "edge_index"):
            raise GraphError(f"graph {at} has no 'edge_index' (found {type(data).__name__}).")
        count = int(data.num_nodes)
        pairs = np.zeros((0, 2), np.int64) if data.edge_index is None else _array(data.edge_index).T
        edges.append(pairs + start)
        sizes.append(count)
        label, row = _split(data, ("node_label", "z"), "x", count)
        labels.append(label)
        features.append(row)
        kind, attr = _split(data, ("edge_label",), "edge_attr", len(pairs))
        kinds.append(kind)
        attrs.append(attr)
        if y is None:
            if getattr(data, "y", None) is None:
                raise GraphError(f"graph {at} has no label 'y'.", hint="hand them in: y=[...].")
            targets.append(_array(data.y))
        start += count
    found = {
        "node_offset": np.append(0, np.cumsum(sizes)).astype(np.int64),
        "edges": np.concatenate([np.zeros((0, 2), np.int64), *edges]),
        "node_label": _joined(labels, "node labels"),
        "x": _joined(features, "'x'"),
        "edge_label": _joined(kinds, "edge labels"),
        "edge_attr": _joined(attrs, "'edge_attr'"),
        "y": _targets(targets) if y is None else y,
    }
    return {key: value for key, value in found.items() if value is not None}


def of_networkx(graphs: Sequence[Any], label: str, edge_label: str) -> Arrays:
    """Number the nodes of NetworkX graphs in their order; other attributes are refused."""
    sizes, edges, labels, kinds, directed = [], [], [], [], set()
    start = 0
    for at, graph in enumerate(graphs):
        places = {node: start + i for i, node in enumerate(graph.nodes)}
        for attributes, known in (
            *((found, label) for _, found in graph.nodes(data=True)),
            *((found, edge_label) for _, _, found in graph.edges(data=True)),
        ):
            over = sorted(set(attributes) - {known})
            if over:
                raise GraphError(
                    f"graph {at} has an attribute '{over[0]}' that is not used.",
                    hint=f"name the one to use: label='{over[0]}', or drop it.",
                )
        labels += [found.get(label, 0) for _, found in graph.nodes(data=True)]
        for u, v, found in graph.edges(data=True):
            edges.append((places[u], places[v]))
            kinds.append(found.get(edge_label, 0))
        sizes.append(len(places))
        directed.add(bool(graph.is_directed()))
        start += len(places)
    if len(directed) > 1:
        raise GraphError("a collection's graphs are all directed, or none of them is.")
    return {
        "node_offset": np.append(0, np.cumsum(sizes)).astype(np.int64),
        "edges": np.array(edges, dtype=np.int64).reshape(-1, 2),
        "node_label": np.array(labels),
        "edge_label": np.array(kinds),
        "directed": directed == {True},
    }


def of_smiles(smiles: Sequence[str]) -> Arrays:
    """Read molecules: atomic numbers, and twice the order of bonds."""
    chem = _rdkit()
    sizes, edges, labels, kinds = [], [], [], []
    start = 0
    for at, text in enumerate(smiles):
        molecule = chem.MolFromSmiles(text)
        if molecule is None:
            raise GraphError(f"molecule {at} is not a SMILES string (found {text!r}).")
        labels += [atom.GetAtomicNum() for atom in molecule.GetAtoms()]
        for bond in molecule.GetBonds():
            edges.append((start + bond.GetBeginAtomIdx(), start + bond.GetEndAtomIdx()))
            kinds.append(round(2 * bond.GetBondTypeAsDouble()))
        sizes.append(molecule.GetNumAtoms())
        start += sizes[-1]
    return {
        "node_offset": np.append(0, np.cumsum(sizes)).astype(np.int64),
        "edges": np.array(edges, dtype=np.int64).reshape(-1, 2),
        "node_label": np.array(labels, dtype=np.int64),
        "edge_label": np.array(kinds, dtype=np.int64),
    }


def of_tu(folder: Path) -> Arrays:
    """Read the text files of a TU data set; its labels may begin anywhere."""
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
        "node_label": None if labels is None else labels[:, 0] - labels[:, 0].min(),
        "edge_label": None if kinds is None else kinds[:, 0] - kinds[:, 0].min(),
        "x": read("node_attributes", np.float64),
        "edge_attr": read("edge_attributes", np.float64),
        "y": y,
        "name": name,
    }
    return {key: value for key, value in parts.items() if value is not None}


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
