"""Small functions on CSR arrays and ids, shared by the modules of this stage."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from grapheraser.errors import ParameterError


def as_ids(nodes: ArrayLike) -> NDArray[np.int64]:
    """A flat int64 array of ids from whatever the caller has; anything else is an error."""
    array = np.asarray(nodes)
    if array.size == 0:
        return np.zeros(0, dtype=np.int64)
    if array.dtype.kind not in "iu":
        raise ParameterError(f"node ids must be integers. Got dtype {array.dtype}.")
    return array.astype(np.int64).ravel()


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
