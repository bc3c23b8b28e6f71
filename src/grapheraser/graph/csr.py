"""Functions on the arrays of a CSR matrix: adjacency and features."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def slices_of(indptr: NDArray[np.integer], rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Indices of the entries of these rows, row after row."""
    counts = indptr[rows + 1] - indptr[rows]
    starts = np.repeat(indptr[rows] - np.concatenate([[0], np.cumsum(counts)[:-1]]), counts)
    return starts + np.arange(len(starts))


def csr_from_pairs(
    rows: NDArray[np.integer], columns: NDArray[np.integer], n: int
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """CSR of a set of directed pairs: columns sorted, duplicates merged."""
    keys = np.unique(rows.astype(np.int64) * max(n, 1) + columns)
    return row_pointers(keys // max(n, 1), n), (keys % max(n, 1)).astype(np.int32)


def row_pointers(sorted_rows: NDArray[np.integer], n: int) -> NDArray[np.int64]:
    """The ``indptr`` of a CSR from the row of every entry, in order."""
    counts = np.bincount(sorted_rows, minlength=n)
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
