"""Functions on the arrays of a CSR matrix: adjacency and features."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from grapheraser.kernels.compiled import compiled


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


def zero_rows(x: sp.csr_array, rows: NDArray[np.int64]) -> sp.csr_array:
    """A copy of the matrix without the entries of these rows."""
    counts = np.diff(x.indptr)
    stay = np.ones(x.nnz, dtype=bool)
    stay[slices_of(x.indptr, rows)] = False
    counts[rows] = 0
    indptr = np.concatenate([[0], np.cumsum(counts)])
    return sp.csr_array((x.data[stay], x.indices[stay], indptr), shape=x.shape)


@compiled
def kept_adjacency(
    indptr: NDArray[np.int64], indices: NDArray[np.int32], keep: NDArray[np.bool_]
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Pointers and columns of a square CSR restricted to the rows and columns to keep."""
    renumber = np.empty(len(keep), dtype=np.int32)
    kept = 0
    for row in range(len(keep)):
        renumber[row] = kept
        kept += keep[row]
    pointers = np.zeros(kept + 1, dtype=np.int64)
    out = np.empty(len(indices), dtype=np.int32)
    at = 0
    for row in range(len(keep)):
        if keep[row]:
            for entry in range(indptr[row], indptr[row + 1]):
                column = indices[entry]
                out[at] = renumber[column]
                at += keep[column]
            pointers[renumber[row] + 1] = at
    return pointers, out[:at].copy()


@compiled
def kept_rows(
    indptr: NDArray[Any], indices: NDArray[np.int32], data: NDArray[np.float32], keep: NDArray[Any]
) -> tuple[NDArray[np.float32], NDArray[np.int32], NDArray[Any]]:
    """Values, columns and pointers of a CSR restricted to the rows to keep."""
    kept = 0
    entries = 0
    for row in range(len(keep)):
        if keep[row]:
            kept += 1
            entries += indptr[row + 1] - indptr[row]
    pointers = np.zeros(kept + 1, dtype=indptr.dtype)
    columns = np.empty(entries, dtype=indices.dtype)
    values = np.empty(entries, dtype=data.dtype)
    place = 0
    at = 0
    for row in range(len(keep)):
        if keep[row]:
            for entry in range(indptr[row], indptr[row + 1]):
                columns[at] = indices[entry]
                values[at] = data[entry]
                at += 1
            place += 1
            pointers[place] = at
    return values, columns, pointers
