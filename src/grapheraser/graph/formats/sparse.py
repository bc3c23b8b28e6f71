"""SciPy's sparse matrices: an adjacency, and back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from grapheraser.errors import GraphError
from grapheraser.graph.ids import as_ids
from grapheraser.graph.roles import UNLABELLED

if TYPE_CHECKING:
    from grapheraser.graph.graph import Graph


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
    """Return the edges of an adjacency matrix, for `Graph.from_arrays`.

    Args:
        matrix: square; an entry in row i and column j is an edge from i to j.
        ids: of the rows; default 0 .. n-1.
        weighted: whether values are weights; None: where one of them is not 1.
    """
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
