"""Functions on the arrays of a CSR matrix: adjacency and features."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from grapheraser.arrays import Ints, Ints32


def slices_of(indptr: NDArray[np.integer], rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the indices of the entries of these rows, row after row."""
    counts = indptr[rows + 1] - indptr[rows]
    starts = np.repeat(indptr[rows] - np.concatenate([[0], np.cumsum(counts)[:-1]]), counts)
    return starts + np.arange(len(starts))


def csr_from_pairs(
    rows: NDArray[np.integer], columns: NDArray[np.integer], n: int
) -> tuple[Ints, Ints32]:
    """Make a CSR of directed pairs: columns sorted, duplicates merged."""
    keys = np.unique(rows.astype(np.int64) * max(n, 1) + columns)
    return row_pointers(keys // max(n, 1), n), (keys % max(n, 1)).astype(np.int32)


def row_pointers(sorted_rows: NDArray[np.integer], n: int) -> NDArray[np.int64]:
    """Return the ``indptr`` of a CSR from the row of every entry, in order."""
    counts = np.bincount(sorted_rows, minlength=n)
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)


def symmetric_csr(rows: Ints32, columns: Ints32, n: int) -> tuple[Ints, Ints32, int, int, int]:
    """Make the undirected graph of directed pairs, in linear time.

    Returns: pointers and sorted columns of a symmetric CSR; how many pairs were loops, how many
    were there before, and how many of the others came without their reverse.
    """
    real = rows != columns
    pairs = (np.ones(int(real.sum()), dtype=bool), (rows[real], columns[real]))
    once = sp.csr_array(pairs, shape=(n, n))
    once.sum_duplicates()
    both = sp.csr_array(once + once.T)
    both.sort_indices()
    counts = len(rows) - int(real.sum()), int(real.sum()) - once.nnz, both.nnz - once.nnz
    return both.indptr.astype(np.int64), both.indices.astype(np.int32), *counts


def transposed(
    indptr: NDArray[np.integer], indices: NDArray[np.integer], data: NDArray[Any], columns: int
) -> sp.csr_array:
    """Transpose a CSR, in linear time; entries of a row of the result ascend by their column."""
    shape = (len(indptr) - 1, columns)
    return sp.csr_array(sp.csr_array((data, indices, indptr), shape=shape).T)


def reverse_of(indptr: Ints, indices: Ints32) -> Ints32:
    """Find (j, i) for every entry (i, j) of a symmetric CSR with sorted rows."""
    places = np.arange(len(indices), dtype=np.int32)
    found: Ints32 = transposed(indptr, indices, places, len(indptr) - 1).data
    return found
