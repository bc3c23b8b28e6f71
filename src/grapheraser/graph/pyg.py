"""PyG ``Data`` in and out. The input is never changed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from grapheraser.errors import GraphError
from grapheraser.graph.roles import TEST, TRAIN

if TYPE_CHECKING:
    from grapheraser.graph.graph import Graph


def arrays_of(data: Any) -> dict[str, Any]:
    """The arguments of `Graph.from_arrays` that a PyG ``Data`` holds; see `Graph.from_pyg`."""
    for key in ("x", "edge_index", "y"):
        if getattr(data, key, None) is None:
            raise GraphError(f"a PyG Data needs 'x', 'edge_index' and 'y' (found no '{key}').")
    n = int(data.num_nodes)
    ids = np.arange(n) if getattr(data, "node_id", None) is None else _numpy(data.node_id)
    if len(ids) != n:
        raise GraphError(f"'node_id' must have one entry per node: {n} (found {len(ids)}).")
    edge_index = _numpy(data.edge_index)
    if edge_index.size and (edge_index.min() < 0 or edge_index.max() >= n):
        raise GraphError(
            f"edge_index must be in [0, {n - 1}] (found {edge_index.min()} to {edge_index.max()})."
        )
    train = getattr(data, "train_mask", None)
    test = getattr(data, "test_mask", None)
    return {
        "x": _features(data.x),
        "edge_index": ids[edge_index],
        "y": _numpy(data.y).reshape(-1),
        "ids": ids,
        "train": None if train is None else ids[_numpy(train).astype(bool)],
        "test": None if test is None else ids[_numpy(test).astype(bool)],
    }


def data_of(graph: Graph) -> Any:
    """A PyG ``Data`` with dense ``x``, ``node_id`` and the split as masks."""
    import torch
    from torch_geometric.data import Data

    return Data(
        x=torch.from_numpy(graph.x.toarray()),
        edge_index=torch.from_numpy(graph.edge_index),
        y=torch.from_numpy(graph.y.copy()),
        node_id=torch.from_numpy(graph.ids.copy()),
        train_mask=torch.from_numpy(graph.role == TRAIN),
        test_mask=torch.from_numpy(graph.role == TEST),
    )


def _numpy(tensor: Any) -> np.ndarray[Any, Any]:
    return tensor.detach().cpu().numpy() if hasattr(tensor, "detach") else np.asarray(tensor)


def _features(x: Any) -> Any:
    if getattr(x, "is_sparse", False):
        x = x.coalesce()
        rows, columns = _numpy(x.indices())
        return sp.csr_array((_numpy(x.values()), (rows, columns)), shape=tuple(x.shape))
    if getattr(x, "is_sparse_csr", False):
        parts = (_numpy(x.values()), _numpy(x.col_indices()), _numpy(x.crow_indices()))
        return sp.csr_array(parts, shape=tuple(x.shape))
    return _numpy(x)
