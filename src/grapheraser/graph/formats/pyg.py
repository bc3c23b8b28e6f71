"""Conversion from and to PyG's ``Data`` and ``HeteroData``, which are left unchanged."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from grapheraser.environment import needs_torch
from grapheraser.errors import GraphError
from grapheraser.graph.arrays import as_array
from grapheraser.graph.build import checked_fields, graph_of, warn_of
from grapheraser.graph.edge_values import EdgeInput
from grapheraser.graph.formats import typed
from grapheraser.graph.formats.tables import is_table
from grapheraser.graph.ids import as_ids, names_of
from grapheraser.graph.label_input import LabelInput
from grapheraser.graph.roles import PARTS, UNLABELLED

if TYPE_CHECKING:
    from grapheraser.graph.graph import Graph
    from grapheraser.graph.types import Types


# The masks of a split, and what they are a mask of.
MASKS = {"train_mask": "train", "val_mask": "validation", "test_mask": "test"}
# What `Graph.from_pyg` reads; ``num_nodes`` is a field only where it can't be told otherwise.
_READ = ("x", "edge_index", "y", "node_id", "num_nodes", *MASKS)
_REVERSE = "rev_"  # as PyG's ToUndirected names the way back
_CARRIED = ("edge_weight", "edge_attr")
# What to do with fields that are often there, and have no part in a graph.
_INSTEAD = {
    "pos": "put positions into 'x' if the model should see them",
    "n_id": "name it 'node_id' if these are the ids to keep",
    "edge_type": "put it into 'edge_attr', one column per type",
    "edge_label_index": "a LinkEraser learns from 'edge_index', and is asked about pairs",
    "adj_t": "edges are those of 'edge_index'",
    "time": "put times into 'x' if the model should see them",
    "batch": "a graph is one graph, whatever it is made of",
}


def from_pyg(
    _cls: type[Graph],
    /,
    data: Any,
    *,
    num_classes: int | None = None,
    directed: bool = False,
    name: str = "graph",
    labels: str | None = None,
    target_names: Sequence[str] | None = None,
    label_range: float | Sequence[float] | None = None,
    target: str | None = None,
) -> Graph:
    """Build a graph from a PyG ``Data`` with ``x``, ``edge_index`` and ``y``, or a ``HeteroData``.

    ``edge_weight`` and ``edge_attr`` stay with their edges. ``node_id`` gives the ids where it
    is present, or the names as a list of strings. ``train_mask``, ``val_mask`` and
    ``test_mask`` give the split; nodes in none of them are context nodes. Without a
    ``train_mask`` every labelled node of no other mask is a training node (see `with_split`).
    A Python warning names every other field, and all that was put right: edges made symmetric,
    merged or dropped.

    Args:
        data: the ``Data``, which is left unchanged.
        num_classes: default the largest label + 1.
        directed: keep the directions of the edges.
        name: for people.
        labels: what ``y`` holds; see `from_arrays`, also for the next two.
        target_names: of the targets.
        label_range: the largest magnitude of numbers.
        target: of a ``HeteroData``, the type whose ``y`` and masks are those of the graph. Its
            relations are walked both ways, so those that only lead back are left out; types may
            have only ``num_nodes``.
    """
    said = LabelInput(labels, target_names, label_range, num_classes)
    if hasattr(data, "node_types"):
        if target is None or directed:
            kinds = ", ".join(data.node_types)
            raise GraphError(
                f"a HeteroData needs 'target', the type with labels: one of {kinds} (found none).",
                hint="Graph.from_pyg(data, target=...); relations have directions of their own.",
            )
        return _from_hetero(_cls, data, target, name, said._asdict())
    if target is not None:
        raise GraphError("'target' is a type of a HeteroData (found a Data).")
    arrays = _arrays_of(data)
    given = EdgeInput(arrays.pop("edge_weight"), arrays.pop("edge_attr"), directed)
    fields = checked_fields(**arrays, given=given, said=said)
    fields["notes"] += _notes_on(data)
    warn_of(fields["notes"], name)
    return graph_of(_cls, fields, name)


def _arrays_of(data: Any) -> dict[str, Any]:
    """Read the arguments of `build.checked_fields` from a PyG ``Data``."""
    check_data(data)
    for key in ("x", "edge_index", "y"):
        if getattr(data, key, None) is None:
            raise GraphError(
                f"a PyG Data needs 'x', 'edge_index' and 'y' (found no '{key}').",
                hint="make an edge_index of 'adj_t': torch.stack(data.adj_t.t().coo()[:2])."
                if key == "edge_index" and getattr(data, "adj_t", None) is not None
                else None,
            )
    n = int(data.num_nodes)
    ids = _ids(data, n)
    if ids.shape != (n,):
        raise GraphError(
            f"'node_id' must have one entry per node: {n} (found shape {list(ids.shape)})."
        )
    edge_index = as_array(data.edge_index, "edge_index")
    if edge_index.size and edge_index.dtype.kind not in "iu":
        raise GraphError(f"edge_index must be made of integers (found dtype {edge_index.dtype}).")
    if edge_index.size and (edge_index.min() < 0 or edge_index.max() >= n):
        raise GraphError(
            f"edge_index must be in [0, {n - 1}] (found {edge_index.min()} to {edge_index.max()})."
        )
    masks = [_mask(data, key, n) for key in ("train_mask", "test_mask", "val_mask")]
    return {
        "x": _features(data.x),
        "edge_index": as_ids(ids)[edge_index.astype(np.int64)],
        "y": data.y,
        "ids": ids,
        "split": tuple(None if mask is None else ids[mask] for mask in masks),
        **{key: getattr(data, key, None) for key in _CARRIED},
    }


def check_data(data: Any) -> None:
    """Refuse what is no PyG ``Data``; the error names what reads it."""
    if hasattr(data, "node_types"):
        raise GraphError(
            "a HeteroData has several types of nodes.",
            hint="Graph.from_pyg(data, target=...) says which of them have labels.",
        )
    if not hasattr(data, "edge_index") and not hasattr(data, "num_nodes"):
        raise _no_data(data)
    if hasattr(data, "src") and hasattr(data, "dst"):
        raise GraphError(
            "a PyG TemporalData is a list of events, not a graph.",
            hint="Graph.from_arrays(x, torch.stack([data.src, data.dst]), y) makes edges of them; "
            "times can be a column of edge_attr.",
        )


def _no_data(found: Any) -> GraphError:
    """Return the error that something is neither a Graph nor a PyG Data, with what reads it."""
    if isinstance(found, list | tuple):
        hint = "give one Data, data[0]; Batch.from_data_list(data) makes one of several."
    elif isinstance(found, str | PathLike):
        hint = "ge.load_dataset(name), or Graph.from_file(path), reads it."
    elif hasattr(found, "is_directed") and hasattr(found, "nodes"):
        hint = "Graph.from_networkx(network) reads it."
    elif is_table(found):
        hint = "Graph.from_tables(nodes, edges) reads tables of nodes and edges."
    elif sp.issparse(found):
        hint = "Graph.from_scipy(adjacency, x, y) reads it."
    else:
        hint = "Graph.from_arrays(x, edge_index, y) makes a Graph of arrays."
    kind = f"{type(found).__module__.partition('.')[0]}.{type(found).__name__}"
    return GraphError(f"not a Graph, nor a PyG Data (found {kind}).", hint=hint)


def _ids(data: Any, n: int) -> NDArray[Any]:
    given = getattr(data, "node_id", None)
    if given is None:
        return np.arange(n)
    names = isinstance(given, list | tuple) and all(isinstance(item, str) for item in given)
    return names_of(given) if names else as_array(given, "'node_id'")


def _notes_on(data: Any) -> tuple[str, ...]:
    """Note the content of a PyG ``Data`` that a `Graph` ignores."""
    notes = []
    for key in data.keys():  # noqa: SIM118  a Data is no mapping
        if key not in (*_READ, *_CARRIED) and getattr(data, key, None) is not None:
            part = "edge_attr" if key.startswith("edge_") else "x"
            instead = _INSTEAD.get(key, f"delete it from the Data, or make it part of '{part}'")
            notes.append(f"'{key}' is not used: {instead}")
    return tuple(notes)


def _mask(data: Any, key: str, n: int) -> NDArray[np.bool_] | None:
    """Read the mask ``[n]`` or ``[n, 1]`` of that name, if there is one."""
    if getattr(data, key, None) is None:
        return None
    mask = as_array(getattr(data, key), f"'{key}'")
    if mask.ndim == 2 and mask.shape[0] == n and mask.shape[1] > 1:
        raise GraphError(
            f"'{key}' must be one split: {n} values (found {mask.shape[1]} columns, a split each).",
            hint=f"choose one split in each mask, e.g. data.{key} = data.{key}[:, 0].",
        )
    if mask.shape not in ((n,), (n, 1)) or not np.isin(mask, (0, 1)).all():
        raise GraphError(
            f"'{key}' must say true or false for each of the {n} nodes "
            f"(found shape {list(mask.shape)}, dtype {mask.dtype}).",
            hint="turn positions into a mask: mask = torch.zeros(n, dtype=torch.bool); "
            "mask[positions] = True.",
        )
    return mask.reshape(-1).astype(bool)


def to_pyg(graph: Graph) -> Any:
    """Make a ``Data`` with dense ``x``, ``node_id``, what edges carry and the split as masks.

    Of a typed graph a ``HeteroData``.
    """
    if graph.types is not None:
        return _to_hetero(graph, graph.types)
    needs_torch("Graph.to_pyg")
    import torch
    from torch_geometric.data import Data

    carried = {"edge_weight": graph.edge_weight, "edge_attr": graph.edge_attr}
    return Data(
        **{key: torch.tensor(values) for key, values in carried.items() if values is not None},
        x=torch.from_numpy(graph.x.toarray()),
        edge_index=torch.from_numpy(graph.edge_index),
        y=torch.from_numpy(graph.y.copy()),
        node_id=torch.from_numpy(graph.ids.copy()) if graph.names is None else list(graph.names),
        **{key: torch.from_numpy(graph.role == PARTS[part]) for key, part in MASKS.items()},
    )


def _features(x: Any) -> Any:
    if getattr(x, "is_sparse", False):
        x = x.coalesce()
        places = as_array(x.indices(), "features")
        return sp.csr_array((as_array(x.values(), "features"), tuple(places)), shape=tuple(x.shape))
    if getattr(x, "is_sparse_csr", False):
        parts = (x.values(), x.col_indices(), x.crow_indices())
        arrays = tuple(as_array(part, "features") for part in parts)
        return sp.csr_array(arrays, shape=tuple(x.shape))
    return as_array(x, "features")


# -- typed graphs ---------------------------------------------------------------------------------


def _from_hetero(cls: type[Graph], data: Any, target: str, name: str, options: Any) -> Graph:
    """Build a typed graph from a ``HeteroData``; see `from_pyg`."""
    parts, notes = {}, []
    for kind in data.node_types:
        store = data[kind]
        n = int(store.num_nodes)
        given: dict[str, Any] = {"ids": _ids(store, n), "name": f"{name}: {kind}"}
        y: Any = np.full(n, UNLABELLED)
        if kind == target:
            if getattr(store, "y", None) is None:
                raise GraphError(f"the target type '{target}' needs labels 'y' (found none).")
            masks = {part: _mask(store, key, n) for key, part in MASKS.items()}
            given |= options | {part: mask for part, mask in masks.items() if mask is not None}
            y = as_array(store.y, "'y'")
        x = getattr(store, "x", None)
        rows = sp.csr_array((n, 0), dtype=np.float32) if x is None else _features(x)
        parts[kind] = cls.from_arrays(rows, np.zeros((2, 0), dtype=np.int64), y, **given)
    joins = {}
    for relation in data.edge_types:
        source, said, other = relation
        forward = (other, said.removeprefix(_REVERSE), source)
        if said.startswith(_REVERSE) and forward in data.edge_types:
            notes.append(f"{relation} is left out: relations are walked both ways")
            continue
        store = data[relation]
        ends = as_array(store.edge_index, "edge_index").astype(np.int64)
        for kind, side in ((source, ends[0]), (other, ends[1])):
            if len(side) and not 0 <= side.min() <= side.max() < parts[kind].num_nodes:
                raise GraphError(f"edge_index of {relation} names nodes that there are not.")
        weights = getattr(store, "edge_weight", None)
        weights = None if weights is None else as_array(weights, "edge_weight")
        kinds = (source, other)
        at = [parts[k].positions(as_ids(_ids(data[k], parts[k].num_nodes))) for k in kinds]
        carried = typed.checked_weights(weights, ends.shape[1])
        joins[relation] = typed.RelationEdges(at[0][ends[0]], at[1][ends[1]], carried)
    warn_of(notes, name)
    return typed.assembled(cls, parts, joins, target, name=name)


def _to_hetero(graph: Graph, types: Types) -> Any:
    """Make a ``HeteroData``: ``x``, ``node_id``, ``edge_index``, and labels of the target type."""
    needs_torch("Graph.to_pyg")
    import torch
    from torch_geometric.data import HeteroData

    data, kinds, x = HeteroData(), types.of(graph.ids), graph.x
    position = np.zeros(graph.num_nodes, dtype=np.int64)
    for index, kind in enumerate(types.names):
        at = np.flatnonzero(kinds == index)
        position[at] = np.arange(len(at))
        store, (first, end) = data[kind], types.starts[index : index + 2]
        store.num_nodes = len(at)
        if end > first:
            store.x = torch.from_numpy(x[at][:, first:end].toarray())
        if graph.names is None:
            store.node_id = torch.from_numpy(types.numbers(graph.ids[at]))
        else:
            cut = len(types.called(index, ""))
            store.node_id = [name[cut:] for name in graph.names[at]]
    target = kinds == 0
    data[types.target].y = torch.from_numpy(graph.y[target].copy())
    for key, part in MASKS.items():
        data[types.target][key] = torch.from_numpy(graph.role[target] == PARTS[part])
    every = graph.facts
    for number, relation in enumerate(types.relations):
        sources, targets = every[every[:, 1] == number][:, [0, 2]].T
        ends = [
            position[graph.positions(np.ascontiguousarray(side))] for side in (sources, targets)
        ]
        data[relation].edge_index = torch.from_numpy(np.stack(ends))
        weights = typed.weights_of(graph, number, sources.copy(), targets.copy())
        if weights is not None:
            data[relation].edge_weight = torch.from_numpy(weights.copy())
    return data
