"""Functions on the arrays of a CSR matrix: adjacency and features."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from grapheraser.kernels.compiled import compiled


def slices_of(indptr: NDArray[np.integer], rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the indices of the entries of these rows, row after row."""
    counts = indptr[rows + 1] - indptr[rows]
    starts = np.repeat(indptr[rows] - np.concatenate([[0], np.cumsum(counts)[:-1]]), counts)
    return starts + np.arange(len(starts))


def csr_from_pairs(
    rows: NDArray[np.integer], columns: NDArray[np.integer], n: int
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Make a CSR of directed pairs: columns sorted, duplicates merged."""
    keys = np.unique(rows.astype(np.int64) * max(n, 1) + columns)
    return row_pointers(keys // max(n, 1), n), (keys % max(n, 1)).astype(np.int32)


def row_pointers(sorted_rows: NDArray[np.integer], n: int) -> NDArray[np.int64]:
    """Return the ``indptr`` of a CSR from the row of every entry, in order."""
    counts = np.bincount(sorted_rows, minlength=n)
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)


@compiled
def symmetric_csr(
    rows: NDArray[np.int32], columns: NDArray[np.int32], n: int
) -> tuple[NDArray[np.int64], NDArray[np.int32], int, int, int]:
    """Make the undirected graph of directed pairs, in linear time.

    Returns: pointers and sorted columns of a symmetric CSR; how many pairs were loops, how many
    were there before, and how many of the others came without their reverse.
    """
    loops = 0
    for e in range(len(rows)):
        loops += rows[e] == columns[e]
    # Sorted by column and then, in that order, by row: each row's columns ascend.
    start, by_column = _transposed(rows, columns, n)
    indptr, indices = _transposed_csr(start, by_column, n)
    repeated = 0
    end = 0
    for row in range(n):
        first = end
        begin = indptr[row]
        indptr[row] = first
        for e in range(begin, indptr[row + 1]):
            if end > first and indices[end - 1] == indices[e]:
                repeated += 1
            else:
                indices[end] = indices[e]
                end += 1
    indptr[n] = end
    back, reverse = _transposed_csr(indptr, indices, n)
    out_pointers = np.zeros(n + 1, dtype=np.int64)
    out = np.empty(2 * end, dtype=np.int32)
    at, one_way = 0, 0
    for row in range(n):
        a, b = indptr[row], back[row]
        while a < indptr[row + 1] or b < back[row + 1]:
            if b == back[row + 1] or (a < indptr[row + 1] and indices[a] < reverse[b]):
                out[at] = indices[a]
                a += 1
                one_way += 1
            elif a == indptr[row + 1] or reverse[b] < indices[a]:
                out[at] = reverse[b]
                b += 1
            else:
                out[at] = indices[a]
                a += 1
                b += 1
            at += 1
        out_pointers[row + 1] = at
    return out_pointers, out[:at].copy(), loops, repeated, one_way


@compiled
def _transposed(
    rows: NDArray[np.int32], columns: NDArray[np.int32], n: int
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """List the rows of each column, in the order of the pairs, without loops."""
    pointers = np.zeros(n + 1, dtype=np.int64)
    for e in range(len(rows)):
        if rows[e] != columns[e]:
            pointers[columns[e] + 1] += 1
    for i in range(n):
        pointers[i + 1] += pointers[i]
    ends, out = pointers[:-1].copy(), np.empty(pointers[n], dtype=np.int32)
    for e in range(len(rows)):
        if rows[e] != columns[e]:
            out[ends[columns[e]]] = rows[e]
            ends[columns[e]] += 1
    return pointers, out


@compiled
def _transposed_csr(
    indptr: NDArray[np.int64], indices: NDArray[np.int32], n: int
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Transpose a CSR; its rows come out sorted."""
    pointers = np.zeros(n + 1, dtype=np.int64)
    for e in range(indptr[n]):
        pointers[indices[e] + 1] += 1
    for i in range(n):
        pointers[i + 1] += pointers[i]
    ends, out = pointers[:-1].copy(), np.empty(indptr[n], dtype=np.int32)
    for row in range(n):
        for e in range(indptr[row], indptr[row + 1]):
            out[ends[indices[e]]] = row
            ends[indices[e]] += 1
    return pointers, out


@compiled
def reverse_of(indptr: NDArray[np.int64], indices: NDArray[np.int32]) -> NDArray[np.int32]:
    """Find (j, i) for every entry (i, j) of a symmetric CSR with sorted rows."""
    free = indptr.copy()
    reverse = np.empty(len(indices), dtype=np.int32)
    for r in range(len(indptr) - 1):
        for e in range(indptr[r], indptr[r + 1]):
            # Rows come in ascending order, so the entries (j, .) are met in ascending order too.
            reverse[e] = free[indices[e]]
            free[indices[e]] += 1
    return reverse
