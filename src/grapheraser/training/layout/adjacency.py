"""The edges of a shard as each kind of model weighs them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from grapheraser.errors import ParameterError
from grapheraser.kernels.compiled import compiled
from grapheraser.models import ModelSpec, declaration_of

LARGEST_INDEX = 2**31 - 1


class Adjacency(NamedTuple):
    """Symmetric CSR with weights, self-loops among the entries where there are any.

    Attributes:
        indptr, indices: rows are targets, columns sources, sorted.
        forward: weight of each entry.
        backward: weight of the entry of the opposite direction.
        reverse: place of the entry of the opposite direction.
    """

    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]
    forward: NDArray[np.floating]
    backward: NDArray[np.floating]
    reverse: NDArray[np.int32]


def adjacency_of(
    spec: ModelSpec, indptr: NDArray[np.int64], indices: NDArray[np.int32], dtype: DTypeLike
) -> Adjacency:
    """The edges of a CSR, with self-loops and weights as the model is declared to have them."""
    check_entries(len(indices) + len(indptr))
    declared = declaration_of(spec.kind)
    loops = declared.self_loops(spec)
    indptr, indices, sources = _with_loops(indptr.copy(), indices.copy(), loops)
    degree = np.diff(indptr).astype(np.float64)
    with np.errstate(divide="ignore"):
        weighing = declared.weighing(spec)
        if weighing == "normalised":
            factor = np.where(degree > 0, 1 / np.sqrt(degree), 0.0)
            forward = backward = factor[sources] * factor[indices]
        elif weighing == "mean":
            inverse, own = 1 / (degree - loops), sources == indices
            forward = np.where(own, 1.0, inverse[sources])
            backward = np.where(own, 1.0, inverse[indices])
        else:
            forward = backward = np.ones(len(indices))
    reverse = _reverse_of(indptr, indices)
    return Adjacency(indptr, indices, forward.astype(dtype), backward.astype(dtype), reverse)


def check_entries(count: int) -> None:
    """Refuse more entries than 32-bit places can name."""
    if count > LARGEST_INDEX:
        raise ParameterError(
            f"the engines train on at most {LARGEST_INDEX} edges or features at a time. "
            f"Got {count}.",
            hint="use more shards.",
        )


@compiled
def _with_loops(
    indptr: NDArray[np.int64], indices: NDArray[np.int32], loops: bool
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int32]]:
    """The CSR, each node among its own neighbours if ``loops``, and the row of every entry."""
    n = len(indptr) - 1
    size = len(indices) + (n if loops else 0)
    new_indptr = np.zeros(n + 1, dtype=np.int64)
    new_indices = np.empty(size, dtype=np.int32)
    rows = np.empty(size, dtype=np.int32)
    at = 0
    for r in range(n):
        placed = not loops
        for e in range(indptr[r], indptr[r + 1]):
            if not placed and indices[e] > r:
                new_indices[at], rows[at] = r, r
                at += 1
                placed = True
            new_indices[at], rows[at] = indices[e], r
            at += 1
        if not placed:
            new_indices[at], rows[at] = r, r
            at += 1
        new_indptr[r + 1] = at
    return new_indptr, new_indices, rows


@compiled
def _reverse_of(indptr: NDArray[np.int64], indices: NDArray[np.int32]) -> NDArray[np.int32]:
    """Place of (j, i) for every entry (i, j) of a symmetric CSR with sorted rows."""
    free = indptr.copy()
    reverse = np.empty(len(indices), dtype=np.int32)
    for r in range(len(indptr) - 1):
        for e in range(indptr[r], indptr[r + 1]):
            # Rows come in ascending order, so the entries (j, .) are met in ascending order too.
            reverse[e] = free[indices[e]]
            free[indices[e]] += 1
    return reverse
