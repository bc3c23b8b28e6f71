"""Words: naive Bayes on a node's own features.

Sparse features count by presence: how many training nodes of each class have a column. Where more
than half of all entries are there, features are dense, and each column is a Gaussian per class,
from sums of fixed-point values and their squares. Which of the two it is follows from the counts,
so it is decided anew with every request.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np
from numpy.typing import NDArray

from grapheraser.aggregation.form import Form
from grapheraser.aggregation.members.base import (
    Evidence,
    Ids,
    Places,
    floor_rows,
    labelled_places,
    trained_among,
)
from grapheraser.graph import UNLABELLED, Graph
from grapheraser.kernels.compiled import compiled
from grapheraser.kernels.elementary import logarithm, logarithms
from grapheraser.kernels.paged import (
    copy_columns,
    copy_features,
    dense_features,
    label_at,
    labels_at,
    prefetch_ahead,
)
from grapheraser.kernels.vectors import HALF, HALF_LANES, load, store, zeros

SMOOTHING = 0.1
# A Gaussian's variance counts as if so many nodes more had the variance of all.
_SHRINKAGE = 10.0
# Nodes whose features are asked for ahead of their turn.
_AHEAD = 6
# Counts whose logarithms are kept.
_SMALLER = 2**14
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
        _add(graph.table, labelled_places(graph), 1, counts)
        return cls._of_counts(graph, classes, counts)

    @classmethod
    def _of_counts(
        cls, graph: Graph, classes: NDArray[np.int64], counts: NDArray[np.int32]
    ) -> WordCounts:
        if not is_dense(classes, counts):
            return cls(classes, counts, None)
        sums = np.zeros((2, *counts.shape), dtype=np.int64)
        _add_values(graph.table, labelled_places(graph), 1, sums)
        return cls(classes, counts, sums)

    def changed(
        self, before: Graph, graph: Graph, nodes: Ids, classes: NDArray[np.int64]
    ) -> WordCounts:
        """Return what `of` gives for a graph that differs from the one before in these nodes."""
        counts = self.counts.copy()
        old, new = trained_among(before, nodes), trained_among(graph, nodes)
        _add(before.table, old, -1, counts)
        _add(graph.table, new, 1, counts)
        if not is_dense(classes, counts):
            made = WordCounts(classes, counts, None)
            if "_logs" in self.__dict__:
                made.__dict__["_logs"] = _changed_logs(self._logs, self.counts, counts)
            return made
        if self.sums is None:
            return self._of_counts(graph, classes, counts)
        sums = self.sums.copy()
        _add_values(before.table, old, -1, sums)
        _add_values(graph.table, new, 1, sums)
        return WordCounts(classes, counts, sums)

    def evidence(self, graph: Graph, places: Places, *, held_out: bool) -> Evidence:
        """Log posteriors ``[len(places), num_classes]``, at least the floor.

        Args:
            graph: the current graph.
            places: of the nodes in it.
            held_out: leave out what each node itself was counted with.
        """
        own = labels_at(graph.table, places) if held_out else np.full(len(places), UNLABELLED)
        prior = log_prior(self.classes)
        if self.sums is None:
            parts = (self.counts, self._totals, self._logs, self._log_totals, prior)
            return _presence(graph.table, places, own, *parts, _logs_left())
        return _gaussian(graph.table, places, own, self.classes, self.sums, prior)

    @cached_property
    def _totals(self) -> NDArray[np.int64]:
        return self.counts.sum(axis=1, dtype=np.int64)

    @cached_property
    def _logs(self) -> NDArray[np.float64]:
        """Logarithms of the smoothed counts ``[num_features, num_classes]``, in whole vectors."""
        num_classes, num_features = self.counts.shape
        logs = np.zeros((num_features, -(-num_classes // HALF_LANES) * HALF_LANES))
        logs[:, :num_classes] = logarithms(self.counts + SMOOTHING).T
        return logs

    @property
    def _log_totals(self) -> NDArray[np.float64]:
        logs: NDArray[np.float64] = logarithms(self._totals + SMOOTHING * self.counts.shape[1])
        return logs


@cache
def _logs_left() -> NDArray[np.float64]:
    """The logarithm of each smaller count, smoothed, with one node less in it."""
    logs: NDArray[np.float64] = logarithms(np.maximum(np.arange(_SMALLER) - 1, 0) + SMOOTHING)
    return logs


def log_prior(classes: NDArray[np.int64]) -> NDArray[np.float64]:
    """Log share of each class among the training nodes, with one more of each."""
    prior: NDArray[np.float64] = logarithms((classes + 1) / (classes.sum() + len(classes)))
    return prior


def sums_form(graph: Graph) -> Form:
    """The form of `WordCounts.sums` on a graph."""
    most = graph.num_train * (_BOUND * _SCALE) ** 2
    return Form(np.int64, (2, graph.num_classes, graph.num_features), -most, most)


def is_dense(classes: NDArray[np.int64], counts: NDArray[np.int32]) -> bool:
    """Return whether more than half of the training nodes' entries are there."""
    return 2 * int(counts.sum(dtype=np.int64)) > int(classes.sum()) * counts.shape[1]


@compiled
def _changed_logs(logs, old, new):  # type: ignore[no-untyped-def]
    """The logarithms of new counts, from those of old ones."""
    out = logs.copy()
    for k in range(new.shape[0]):
        for f in range(new.shape[1]):
            if new[k, f] != old[k, f]:
                out[f, k] = logarithm(new[k, f] + SMOOTHING)
    return out


@compiled
def _room(features):  # type: ignore[no-untyped-def]
    """Room for the columns and values of any node."""
    return np.empty(features, dtype=np.int32), np.empty(features, dtype=np.float32)


@compiled(inline=True)
def _fixed(value):  # type: ignore[no-untyped-def]
    """A value in fixed point: its inverse hyperbolic sine.

    Linear near 0 and logarithmic far away, so no scale has to be known.
    """
    x = abs(np.float64(value))
    size = np.rint(min(logarithm(x + np.sqrt(x * x + 1.0)), _BOUND) * _SCALE)
    return size if value > 0 else -size


@compiled
def _add(table, places, sign, counts):  # type: ignore[no-untyped-def]
    columns, _ = _room(counts.shape[1])
    for place in places:
        label = label_at(table, place)
        for e in range(copy_columns(table, place, columns)):
            counts[label, columns[e]] += sign


@compiled
def _add_values(table, places, sign, sums):  # type: ignore[no-untyped-def]
    columns, values = _room(sums.shape[2])
    for place in places:
        label = label_at(table, place)
        for e in range(copy_features(table, place, columns, values, 0)):
            value = np.int64(_fixed(values[e]))
            sums[0, label, columns[e]] += sign * value
            sums[1, label, columns[e]] += sign * value * value


@compiled
def _presence(table, places, own, counts, totals, logs, log_totals, prior, left):  # type: ignore[no-untyped-def]
    """Log posteriors; ``own[r]`` is the class that row r itself was counted in, or -1.

    ``left``: see `_logs_left`; for counts in which a row itself does not count.

    A row's logarithms are added in two sums, of its even and of its odd entries, so that one
    addition need not wait for the other; then the two are added. A row's own class is summed in a
    single one. Both orders follow from the row alone.
    """
    c, (features, width) = len(totals), logs.shape
    columns, _ = _room(features)
    out, line = np.empty((len(places), c)), np.zeros(width)
    for r in range(len(places)):
        mine, scores = own[r], out[r]
        prefetch_ahead(table, places, r, _AHEAD)
        size = copy_columns(table, places[r], columns)
        for k in range(c):
            line[k] = prior[k] - size * log_totals[k]
        for start in range(0, width, HALF_LANES):
            sums, others = load(line, start, HALF), zeros(line, HALF)
            for e in range(1, size, 2):
                sums = sums + load(logs, columns[e - 1] * width + start, HALF)
                others = others + load(logs, columns[e] * width + start, HALF)
            if size % 2:
                sums = sums + load(logs, columns[size - 1] * width + start, HALF)
            store(line, start, sums + others)
        for k in range(c):
            scores[k] = line[k]
        if mine >= 0:
            total = totals[mine] - size + SMOOTHING * features
            score = prior[mine] - size * logarithm(total)
            for e in range(size):
                count = counts[mine, columns[e]]
                score += left[count] if count < len(left) else logarithm(count - 1 + SMOOTHING)
            scores[mine] = score
    floor_rows(out)
    return out


@compiled
def _gaussian(table, places, own, classes, sums, prior):  # type: ignore[no-untyped-def]
    """Return log posteriors with a Gaussian per class and column, of eight nodes side by side.

    The last ones are filled up with the last node. Columns are added in order, one lane per node.
    """
    c, features = sums.shape[1:]
    everyone = classes.sum()
    mean_all, var_all = np.empty(features), np.empty(features)
    for f in range(features):
        mean_all[f] = sums[0, :, f].sum() / everyone
        var_all[f] = max(sums[1, :, f].sum() / everyone - mean_all[f] * mean_all[f], 1.0)
    means, variances, logs = _gaussians(classes, sums, mean_all, var_all)
    out, line = np.empty((len(places), c)), np.zeros(HALF_LANES)
    rows, terms = np.zeros((HALF_LANES, features)), np.empty(features)
    beside = np.zeros((features, HALF_LANES))
    columns, values = _room(features)
    for first in range(0, len(places), HALF_LANES):
        count = min(HALF_LANES, len(places) - first)
        for i in range(count):
            prefetch_ahead(table, places, first + i, _AHEAD)
            _fill(table, places[first + i], columns, values, terms, rows[i])
        for i in range(HALF_LANES):
            beside[:, i] = rows[min(i, count - 1)]
        for k in range(c):
            total = zeros(line, HALF) + prior[k]
            for f in range(features):
                gap = load(beside, f * HALF_LANES, HALF) - means[k, f]
                square = gap * gap / variances[k, f]
                total = total - (square + logs[k, f]) * 0.5
            store(line, 0, total)
            for i in range(count):
                out[first + i, k] = line[i]
        for i in range(count):
            mine = own[first + i]
            if mine >= 0:
                part, left = sums[:, mine], classes[mine] - 1.0
                away = _away(rows[i], part, left, mean_all, var_all, terms)
                out[first + i, mine] = _minus(prior[mine], away)
    floor_rows(out)
    return out


@compiled
def _away(x, sums, n, mean_all, var_all, terms):  # type: ignore[no-untyped-def]
    """Return what each column takes from the score of a row's own class, which leaves it out."""
    for f in range(len(x)):
        a, b = sums[0, f] - x[f], sums[1, f] - x[f] * x[f]
        mean, var = _moments(a, b, n, mean_all[f], var_all[f])
        gap = x[f] - mean
        terms[f] = 0.5 * (gap * gap / var + logarithm(var))
    return terms


@compiled(inline=True)
def _minus(score, terms):  # type: ignore[no-untyped-def]
    for term in terms:
        score -= term
    return score


@compiled
def _gaussians(classes, sums, mean_all, var_all):  # type: ignore[no-untyped-def]
    """Means, variances and their logarithms ``[num_classes, num_features]``."""
    c, features = sums.shape[1:]
    means, variances = np.empty((c, features)), np.empty((c, features))
    logs = np.empty((c, features))
    for k in range(c):
        n = np.float64(classes[k])
        for f in range(features):
            first, second = np.float64(sums[0, k, f]), np.float64(sums[1, k, f])
            means[k, f], variances[k, f] = _moments(first, second, n, mean_all[f], var_all[f])
        for f in range(features):
            logs[k, f] = logarithm(variances[k, f])
    return means, variances, logs


@compiled(inline=True)
def _fill(table, place, columns, values, fixed, x):  # type: ignore[no-untyped-def]
    """Write a node's values in fixed point to x."""
    if table.width >= 0:
        dense = dense_features(table, place)
        for f in range(len(x)):
            x[f] = _fixed(dense[f])
        return
    size = copy_features(table, place, columns, values, 0)
    for e in range(size):
        fixed[e] = _fixed(values[e])
    x[:] = 0.0
    for e in range(size):
        x[columns[e]] = fixed[e]


@compiled
def _moments(a, b, n, mean_all, var_all):  # type: ignore[no-untyped-def]
    """Mean and variance of a Gaussian, from n values with these sums."""
    mean = (a + mean_all) / (n + 1.0)
    spread = max(b - a * a / max(n, 1.0), 0.0)
    return mean, (spread + _SHRINKAGE * var_all) / (n + _SHRINKAGE)
