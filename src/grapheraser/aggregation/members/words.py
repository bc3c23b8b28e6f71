"""Words: naive Bayes on a node's own features.

Sparse features count by presence: how many training nodes of each class have a column. Where more
than half of all entries are there, features are dense, and each column is a Gaussian per class,
from sums of fixed-point values and their squares. Which of the two it is follows from the counts,
so it is decided anew with every request.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from grapheraser.aggregation.members.base import (
    FLOOR,
    Evidence,
    Ids,
    Positions,
    labelled,
    trained_among,
)
from grapheraser.graph import UNLABELLED, Graph
from grapheraser.kernels.compiled import compiled
from grapheraser.kernels.elementary import log_normalise, logarithm, logarithms

SMOOTHING = 0.1
# A Gaussian's variance counts as if so many nodes more had the variance of all.
_SHRINKAGE = 10.0
_SCALE = 2.0**16
_BOUND = 16.0  # asinh(4.4 million); squares of 2**23 nodes fit into an int64


@dataclass(frozen=True, eq=False)
class WordCounts:
    """Counts over the training nodes.

    Attributes:
        classes: int64 ``[num_classes]``, nodes of each class.
        counts: int32 ``[num_classes, num_features]``, nodes of the class with the column.
        sums: int64 ``[2, num_classes, num_features]``, sums of values and of their squares in
            fixed point; None while features are sparse.
    """

    classes: NDArray[np.int64]
    counts: NDArray[np.int32]
    sums: NDArray[np.int64] | None

    @classmethod
    def of(cls, graph: Graph, classes: NDArray[np.int64]) -> WordCounts:
        """Count over all training nodes of a graph; ``classes`` are those of each class."""
        counts = np.zeros((graph.num_classes, graph.num_features), dtype=np.int32)
        _add(graph.x.indptr, graph.x.indices, graph.y, np.flatnonzero(labelled(graph)), 1, counts)
        return cls._of_counts(graph, classes, counts)

    @classmethod
    def _of_counts(
        cls, graph: Graph, classes: NDArray[np.int64], counts: NDArray[np.int32]
    ) -> WordCounts:
        if not is_dense(classes, counts):
            return cls(classes, counts, None)
        sums = np.zeros((2, *counts.shape), dtype=np.int64)
        rows = np.flatnonzero(labelled(graph))
        _add_values(
            graph.x.indptr, graph.x.indices, _fixed_rows(graph, rows), graph.y, rows, 1, sums
        )
        return cls(classes, counts, sums)

    def changed(
        self, before: Graph, graph: Graph, nodes: Ids, classes: NDArray[np.int64]
    ) -> WordCounts:
        """What `of` gives for a graph that differs from the one before in these nodes."""
        counts = self.counts.copy()
        old, new = trained_among(before, nodes), trained_among(graph, nodes)
        _add(before.x.indptr, before.x.indices, before.y, old, -1, counts)
        _add(graph.x.indptr, graph.x.indices, graph.y, new, 1, counts)
        if self.sums is None or not is_dense(classes, counts):
            return self._of_counts(graph, classes, counts)
        sums = self.sums.copy()
        for part, rows, sign in ((before, old, -1), (graph, new, 1)):
            values = _fixed_rows(part, rows)
            _add_values(part.x.indptr, part.x.indices, values, part.y, rows, sign, sums)
        return WordCounts(classes, counts, sums)

    def evidence(self, graph: Graph, positions: Positions, *, held_out: bool) -> Evidence:
        """Log posteriors ``[len(positions), num_classes]``, at least `FLOOR`.

        Args:
            graph: the current graph.
            positions: rows of it.
            held_out: leave out what each node itself was counted with.
        """
        own = graph.y[positions] if held_out else np.full(len(positions), UNLABELLED)
        x, prior = graph.x, log_prior(self.classes)
        if self.sums is None:
            parts = (self.counts, self._totals, *self._tables, prior)
            return _presence(x.indptr, x.indices, *parts, positions, own)
        values = _fixed_rows(graph, positions)
        return _gaussian(
            x.indptr, x.indices, values, self.classes, self.sums, prior, positions, own
        )

    @cached_property
    def _totals(self) -> NDArray[np.int64]:
        return self.counts.sum(axis=1, dtype=np.int64)

    @cached_property
    def _tables(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Logarithms of the smoothed counts ``[num_features, num_classes]`` and of their totals."""
        table = np.ascontiguousarray(logarithms(self.counts + SMOOTHING).T)
        return table, logarithms(self._totals + SMOOTHING * self.counts.shape[1])


def log_prior(classes: NDArray[np.int64]) -> NDArray[np.float64]:
    """Log share of each class among the training nodes, with one more of each."""
    prior: NDArray[np.float64] = logarithms((classes + 1) / (classes.sum() + len(classes)))
    return prior


def is_dense(classes: NDArray[np.int64], counts: NDArray[np.int32]) -> bool:
    """Whether more than half of the training nodes' entries are there."""
    return 2 * int(counts.sum(dtype=np.int64)) > int(classes.sum()) * counts.shape[1]


def _fixed_rows(graph: Graph, rows: Positions) -> NDArray[np.int64]:
    """Values of these rows in fixed point, row after row.

    Their inverse hyperbolic sine: linear near 0 and logarithmic far away, so no scale has to be
    known.
    """
    values: NDArray[np.int64] = _fixed(graph.x.indptr, graph.x.data, rows)
    return values


@compiled
def _fixed(indptr, data, rows):  # type: ignore[no-untyped-def]
    total = 0
    for row in rows:
        total += indptr[row + 1] - indptr[row]
    out = np.empty(total, dtype=np.int64)
    at = 0
    for row in rows:
        for e in range(indptr[row], indptr[row + 1]):
            x = abs(np.float64(data[e]))
            value = min(logarithm(x + np.sqrt(x * x + 1.0)), _BOUND)
            out[at] = np.int64(np.rint(value * _SCALE)) * (1 if data[e] > 0 else -1)
            at += 1
    return out


@compiled
def _add(indptr, indices, y, rows, sign, counts):  # type: ignore[no-untyped-def]
    for row in rows:
        for e in range(indptr[row], indptr[row + 1]):
            counts[y[row], indices[e]] += sign


@compiled
def _add_values(indptr, indices, values, y, rows, sign, sums):  # type: ignore[no-untyped-def]
    at = 0
    for row in rows:
        for e in range(indptr[row], indptr[row + 1]):
            sums[0, y[row], indices[e]] += sign * values[at]
            sums[1, y[row], indices[e]] += sign * values[at] * values[at]
            at += 1


@compiled
def _presence(indptr, indices, counts, totals, table, log_totals, prior, rows, own):  # type: ignore[no-untyped-def]
    """Log posteriors; ``own[r]`` is the class that row r itself was counted in, or -1."""
    c, features = len(totals), len(table)
    out = np.empty((len(rows), c))
    for r in range(len(rows)):
        row, mine, scores = rows[r], own[r], out[r]
        size = indptr[row + 1] - indptr[row]
        for k in range(c):
            scores[k] = prior[k] - size * log_totals[k]
        if mine >= 0:
            left = totals[mine] - size + SMOOTHING * features
            scores[mine] = prior[mine] - size * logarithm(left)
        for e in range(indptr[row], indptr[row + 1]):
            line = table[indices[e]]
            for k in range(c):
                scores[k] += line[k]
            if mine >= 0:
                scores[mine] += logarithm(counts[mine, indices[e]] - 1 + SMOOTHING) - line[mine]
        log_normalise(scores)
        for k in range(c):
            scores[k] = max(scores[k], FLOOR)
    return out


@compiled
def _gaussian(indptr, indices, values, classes, sums, prior, rows, own):  # type: ignore[no-untyped-def]
    """The same with a Gaussian per class and column."""
    c, features = sums.shape[1:]
    first, second, nodes = sums[0].sum(axis=0), sums[1].sum(axis=0), classes.sum()
    mean_all, var_all = np.empty(features), np.empty(features)
    for f in range(features):
        mean_all[f] = first[f] / nodes
        var_all[f] = max(second[f] / nodes - mean_all[f] * mean_all[f], 1.0)
    out, x, at = np.empty((len(rows), c)), np.zeros(features), 0
    for r in range(len(rows)):
        x[:] = 0.0
        for e in range(indptr[rows[r]], indptr[rows[r] + 1]):
            x[indices[e]] = values[at]
            at += 1
        for k in range(c):
            gone = 1.0 if k == own[r] else 0.0
            n, score = classes[k] - gone, prior[k]
            for f in range(features):
                a, b = sums[0, k, f] - gone * x[f], sums[1, k, f] - gone * x[f] * x[f]
                mean = (a + mean_all[f]) / (n + 1.0)
                spread = max(b - a * a / max(n, 1.0), 0.0)
                var = (spread + _SHRINKAGE * var_all[f]) / (n + _SHRINKAGE)
                away = x[f] - mean
                score -= 0.5 * (away * away / var + logarithm(var))
            out[r, k] = score
        log_normalise(out[r])
        for k in range(c):
            out[r, k] = max(out[r, k], FLOOR)
    return out
