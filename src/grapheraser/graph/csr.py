"""Small functions on CSR arrays and ids, shared by the modules of this stage."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from grapheraser.errors import ParameterError
from grapheraser.graph.arrays import as_array, as_int64
from grapheraser.kernels.compiled import compiled


def as_ids(nodes: ArrayLike) -> NDArray[np.int64]:
    """A flat int64 array of ids from whatever the caller has; anything else is an error."""
    array = as_array(nodes, "node ids", ParameterError)
    if array.size == 0:
        return np.zeros(0, dtype=np.int64)
    if array.dtype.kind not in "iu":
        raise ParameterError(f"node ids must be 64-bit integers. Got dtype {array.dtype}.")
    return as_int64(array, "node ids", ParameterError).ravel()


def slices_of(indptr: NDArray[np.int64], rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Indices into a CSR's entries for the given rows, row after row."""
    counts = indptr[rows + 1] - indptr[rows]
    starts = np.repeat(indptr[rows] - np.concatenate([[0], np.cumsum(counts)[:-1]]), counts)
    return starts + np.arange(len(starts))


def csr_from_pairs(
    rows: NDArray[np.integer], columns: NDArray[np.integer], n: int
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """CSR of a set of directed pairs, columns sorted, duplicates merged."""
    keys = np.unique(rows.astype(np.int64) * max(n, 1) + columns)
    return row_pointers(keys // max(n, 1), n), (keys % max(n, 1)).astype(np.int32)


def row_pointers(sorted_rows: NDArray[np.integer], n: int) -> NDArray[np.int64]:
    """The ``indptr`` of a CSR from the row of every entry, in order."""
    counts = np.bincount(sorted_rows, minlength=n)
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)


def zero_rows(x: sp.csr_array, rows: NDArray[np.int64]) -> sp.csr_array:
    """The same matrix with nothing in the given rows."""
    counts = np.diff(x.indptr)
    stay = np.ones(x.nnz, dtype=bool)
    stay[slices_of(x.indptr.astype(np.int64), rows)] = False
    counts[rows] = 0
    indptr = np.concatenate([[0], np.cumsum(counts)])
    return sp.csr_array((x.data[stay], x.indices[stay], indptr), shape=x.shape)


@compiled
def kept_adjacency(
    indptr: NDArray[np.int64], indices: NDArray[np.int32], keep: NDArray[np.bool_]
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """A square CSR cut down to the rows and columns to keep, in one pass over its entries."""
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
    """Data, columns and pointers of a CSR cut down to the rows to keep."""
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
