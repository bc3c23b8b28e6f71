"""SciPy's sparse matrices: an adjacency, and back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from grapheraser.errors import GraphError
from grapheraser.graph.ids import as_ids

if TYPE_CHECKING:
    from grapheraser.graph.graph import Graph


def edges_of(matrix: Any, ids: ArrayLike | None, weighted: bool | None) -> dict[str, Any]:
    """The edges of an adjacency matrix, for `Graph.from_arrays`.

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


def adjacency_of(graph: Graph) -> sp.csr_array:
    """The adjacency by position, from sources to targets; 1 where edges have no weights."""
    at, n = graph.edge_index, graph.num_nodes
    weights = np.ones(at.shape[1], np.float32) if graph.edge_weight is None else graph.edge_weight
    return sp.csr_array((weights, (at[0], at[1])), shape=(n, n))
