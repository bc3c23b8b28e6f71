"""Conversion from and to PyG's ``Data``, which is left unchanged."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from grapheraser.errors import GraphError
from grapheraser.graph.arrays import as_array
from grapheraser.graph.ids import as_ids
from grapheraser.graph.names import names_of
from grapheraser.graph.roles import TEST, TRAIN, VALIDATION

if TYPE_CHECKING:
    from grapheraser.graph.graph import Graph


# What `Graph.from_pyg` reads; ``num_nodes`` is a field only where it can't be told otherwise.
_READ = ("x", "edge_index", "y", "node_id", "num_nodes", "train_mask", "val_mask", "test_mask")
_CARRIED = ("edge_weight", "edge_attr")
# What to do with fields that are often there, and have no part in a graph.
_INSTEAD = {
    "pos": "put positions into 'x' if the model should see them",
    "n_id": "name it 'node_id' if these are the ids to keep",
    "edge_type": "put it into 'edge_attr', one column per type",
    "batch": "a graph is one graph, whatever it is made of",
}


def arrays_of(data: Any) -> dict[str, Any]:
    """What `build.checked_fields` needs of a PyG ``Data``; see `Graph.from_pyg`."""
    if hasattr(data, "node_types"):
        raise GraphError(
            "heterogeneous graphs are not supported (found several types of nodes).",
            hint="data.to_homogeneous() makes one type of them.",
        )
    for key in ("x", "edge_index", "y"):
        if getattr(data, key, None) is None:
            raise GraphError(
                f"a PyG Data needs 'x', 'edge_index' and 'y' (found no '{key}').",
                hint="make an edge_index of 'adj_t': torch.stack(data.adj_t.t().coo()[:2])."
                if key == "edge_index" and getattr(data, "adj_t", None) is not None
                else None,
            )
    n = int(data.num_nodes)
    given = getattr(data, "node_id", None)
    ids = np.arange(n) if given is None else _ids(given)
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


def _ids(given: Any) -> NDArray[Any]:
    names = isinstance(given, list | tuple) and all(isinstance(item, str) for item in given)
    return names_of(given) if names else as_array(given, "'node_id'")


def notes_on(data: Any) -> tuple[str, ...]:
    """Notes on the content of a PyG ``Data`` that a `Graph` ignores."""
    notes = []
    for key in data.keys():  # noqa: SIM118  a Data is no mapping
        if key not in (*_READ, *_CARRIED) and getattr(data, key, None) is not None:
            instead = _INSTEAD.get(key, "delete it from the Data, or make it part of 'x'")
            notes.append(f"'{key}' is not used: {instead}")
    return tuple(notes)


def _mask(data: Any, key: str, n: int) -> NDArray[np.bool_] | None:
    """The mask ``[n]`` or ``[n, 1]`` of that name, if there is one."""
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


def data_of(graph: Graph) -> Any:
    """A PyG ``Data`` with dense ``x``, ``node_id`` (names, if any) and the split as masks."""
    import torch
    from torch_geometric.data import Data

    carried = {"edge_weight": graph.edge_weight, "edge_attr": graph.edge_attr}
    return Data(
        **{key: torch.tensor(values) for key, values in carried.items() if values is not None},
        x=torch.from_numpy(graph.x.toarray()),
        edge_index=torch.from_numpy(graph.edge_index),
        y=torch.from_numpy(graph.y.copy()),
        node_id=torch.from_numpy(graph.ids.copy()) if graph.names is None else list(graph.names),
        train_mask=torch.from_numpy(graph.role == TRAIN),
        val_mask=torch.from_numpy(graph.role == VALIDATION),
        test_mask=torch.from_numpy(graph.role == TEST),
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
