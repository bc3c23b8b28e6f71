"""Exact sums over rows of whole numbers, and the regression that follows from them.

Rows are whole numbers, so sums of their products are exact: whatever is put in or taken out, in
any order, they have the bits of sums computed afresh.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from grapheraser.aggregation.members.base import SCALE, Rows
from grapheraser.errors import CorruptRunError
from grapheraser.graph import Graph
from grapheraser.kernels.cholesky import solve_column, solve_in_place
from grapheraser.kernels.compiled import compiled
from grapheraser.kernels.vectors import LANES, ONE, fma, load, store, zeros

# Products are at most 2**32; so many of them add up exactly in float64, which is what vector units
# and a BLAS are fast at. Beyond that, in int64.
MAX_ROWS = 2**15
# Rows that are exchanged at once: they stay in the cache.
_AT_ONCE = 64

Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Sums:
    """H'H and H'Y.

    Attributes:
        gram: int64 ``[width * (width + 1) / 2]``, the lower half of H'H, row after row.
        cross: int64 ``[width, num_classes]``.
    """

    gram: Integers
    cross: Integers

    @classmethod
    def zeros(cls, width: int, num_classes: int) -> Sums:
        """Return the sums over no rows."""
        gram = np.zeros(width * (width + 1) // 2, dtype=np.int64)
        return cls(gram, np.zeros((width, num_classes), dtype=np.int64))

    def plus(self, rows: Rows, labels: NDArray[np.int64]) -> Sums:
        """Add these rows."""
        gram = _plus_lower(self.gram, rows.T @ rows)
        return Sums(gram, self.cross + _by_class(rows, labels, self.cross.shape[1]))

    def replaced(
        self, old: Rows, old_labels: NDArray[np.int64], new: Rows, new_labels: NDArray[np.int64]
    ) -> Sums:
        """Put new rows in the place of as many old ones; without a label, there is no row."""
        return Sums(*replaced(self.gram, self.cross, old, old_labels, new, new_labels))

    def without(self, other: Sums) -> Sums:
        """Take out the rows of another sum."""
        return Sums(self.gram - other.gram, self.cross - other.cross)

    @property
    def tensors(self) -> dict[str, NDArray[np.generic]]:
        """The sums, by name."""
        return {"gram": self.gram, "cross": self.cross}

    def solve(self, ridge: float, graph: Graph) -> NDArray[np.float32]:
        """Solve for the regression's weights ``[width, num_classes]``."""
        del graph
        weights = solved(self.gram, self.cross / SCALE, ridge).astype(np.float32)
        if not np.isfinite(weights).all():
            raise CorruptRunError("a regression's sums are not those of any nodes.")
        return weights


def solved(gram: Integers, right: NDArray[np.float64], ridge: float) -> NDArray[np.float64]:
    """Solve the regression with these right-hand sides ``[width, columns]``."""
    left = _unpacked(gram, len(right), SCALE**2, ridge)
    weights: NDArray[np.float64] = solve_in_place(left, right)
    return weights


@compiled
def solved_apart(gram, right, scale, ridge):  # type: ignore[no-untyped-def]
    """Solve for each column with a gram of its own; the bits are those of `solved`."""
    out = np.empty_like(right)
    for k in range(len(gram)):
        out[:, k] = solve_column(_unpacked(gram[k], len(right), scale, ridge), right[:, k])
    return out


def _by_class(rows: Rows, labels: NDArray[np.int64], num_classes: int) -> Integers:
    """Sum the rows of each class ``[width, num_classes]``."""
    sums = np.zeros((num_classes, rows.shape[1]), dtype=np.int64)
    _add_by_class(np.ascontiguousarray(rows), labels, sums)
    return np.ascontiguousarray(sums.T)


@compiled
def _add_by_class(rows, labels, sums):  # type: ignore[no-untyped-def]
    for r in range(len(rows)):
        if labels[r] >= 0:
            for u in range(rows.shape[1]):
                sums[labels[r], u] += np.int64(rows[r, u])


@compiled
def _plus_lower(gram: Integers, product: NDArray[np.float64]) -> Integers:
    """Add the lower half of a product to the gram.

    The product comes from a BLAS, whose order is its own. It holds whole numbers below 2**53, which
    float64 adds without rounding, so no order can change them.
    """
    out = np.empty_like(gram)
    for i in range(len(product)):
        start = i * (i + 1) // 2
        for j in range(i + 1):
            out[start + j] = gram[start + j] + np.int64(product[i, j])
    return out


@compiled
def replaced(gram, cross, old, old_labels, new, new_labels):  # type: ignore[no-untyped-def]
    """Both sums with new rows in the place of old ones, which a label tells to be there."""
    width, moved = new.shape[1], np.empty(len(new), dtype=np.int64)
    out, count = cross.copy(), 0
    for r in range(len(new)):
        was, now = old_labels[r], new_labels[r]
        if was < 0 and now < 0:
            continue
        differs = (was < 0) != (now < 0)
        for u in range(width):
            differs |= old[r, u] != new[r, u]
        if differs or was != now:
            for u in range(width if was >= 0 else 0):
                out[u, was] -= np.int64(old[r, u])
            for u in range(width if now >= 0 else 0):
                out[u, now] += np.int64(new[r, u])
        if differs:
            moved[count] = r
            count += 1
    gram = gram.copy()
    for start in range(0, count, _AT_ONCE):
        rows = moved[start : min(count, start + _AT_ONCE)]
        _exchange(gram, _there(old, old_labels, rows), _there(new, new_labels, rows))
    return gram, out


@compiled
def _there(some, labels, rows):  # type: ignore[no-untyped-def]
    """Some rows, in whole vectors; 0 for those that are not there."""
    out = np.zeros((len(rows), -(-some.shape[1] // LANES) * LANES))
    for i in range(len(rows)):
        if labels[rows[i]] >= 0:
            for u in range(some.shape[1]):
                out[i, u] = some[rows[i], u]
    return out


@compiled
def _exchange(gram, old, new):  # type: ignore[no-untyped-def]
    """Put the products of new rows into the gram, in the place of those of old ones.

    Tile by tile of four rows, in registers; the sums are exact, so their order doesn't matter.
    """
    width, top = new.shape[1], 0
    lines = np.empty((4, width))
    while top * (top + 1) // 2 < len(gram):
        for left in range(0, top + 4, LANES):
            a = b = c = d = zeros(lines, ONE)
            for r in range(len(new)):
                p, q = load(new, r * width + left, ONE), load(old, r * width + left, ONE)
                a = fma(p, new[r, top], fma(q, -old[r, top], a))
                b = fma(p, new[r, top + 1], fma(q, -old[r, top + 1], b))
                c = fma(p, new[r, top + 2], fma(q, -old[r, top + 2], c))
                d = fma(p, new[r, top + 3], fma(q, -old[r, top + 3], d))
            store(lines, left, a)
            store(lines, width + left, b)
            store(lines, 2 * width + left, c)
            store(lines, 3 * width + left, d)
        for i in range(top, top + 4):
            start = i * (i + 1) // 2
            for j in range(i + 1 if start < len(gram) else 0):
                gram[start + j] += np.int64(lines[i - top, j])
        top += 4


@compiled
def _unpacked(gram: Integers, n: int, scale: float, ridge: float) -> NDArray[np.float64]:
    """Unpack the lower half of ``gram / scale``, with ``ridge`` added to the diagonal.

    The first step that rounds: all before it is exact.
    """
    out = np.zeros((n, -(-n // LANES) * LANES))
    for i in range(n):
        start = i * (i + 1) // 2
        for j in range(i + 1):
            out[i, j] = gram[start + j] / scale
        out[i, i] += ridge
    return out
