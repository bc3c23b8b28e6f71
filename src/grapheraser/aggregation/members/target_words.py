"""Words of targets: several labels, or numbers, from wide features that are not hashed.

A row holds a node's own features at length 1, the sum of its neighbours' at length 1 in columns of
their own, the logarithms of how many features and neighbours it has in three pieces each, and a
constant. Of features logarithms count. It says up to three numbers for each target. Two are sums
over own columns and over those around, weighted by what a regression on each column alone would
say: all that takes are five sums of whole numbers per column. The third is ridge regression on all
columns together, of rows as long as nodes have features; see `all_columns`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from grapheraser.aggregation.base import Change, Ensemble
from grapheraser.aggregation.form import Form, Tensors, check_forms
from grapheraser.aggregation.members.all_columns import (
    AROUND,
    MOST_NODES,
    OTHERS,
    beside,
    logarithms_of,
    weights_of_all,
)
from grapheraser.aggregation.members.base import (
    Evidence,
    FittedMember,
    Ids,
    Places,
    Positions,
    labelled_places,
    trained_among,
)
from grapheraser.aggregation.members.features import SHARDED
from grapheraser.aggregation.members.smoothing import inverse_length, key_of
from grapheraser.aggregation.members.sums import Integers
from grapheraser.aggregation.members.target_sums import Targets, is_partial, targets_at
from grapheraser.aggregation.members.walks import Reach, Walk, ring_around, stale_nodes
from grapheraser.aggregation.sample.membership import Candidates
from grapheraser.graph import Graph
from grapheraser.graph.csr import slices_of
from grapheraser.graph.labels import BITS
from grapheraser.kernels.compiled import compiled
from grapheraser.kernels.neighbourhoods import ANY
from grapheraser.kernels.paged import copy_features, degrees_at, size_at
from grapheraser.kernels.sets import ranks

_NAMES = ("words", "words around", "words together")
# All columns together are asked about so many targets at the most: a request solves for each.
_MOST = 16
# The value 1 of a feature: a product with a target of `BITS` bits fits 2**27 times into an int64.
_ONE = 2**12
# So many rows are held at once.
_AT_ONCE = 2**15
_NOBODY = np.zeros(0, dtype=np.int64)


def names_for(count: int) -> tuple[str, ...]:
    """Return the names of what is said about so many targets."""
    return _NAMES if count <= _MOST else _NAMES[:2]


class WordRows(NamedTuple):
    """Sparse rows of some nodes: own features, and those around in as many columns more.

    Attributes:
        pointers: int64 ``[m + 1]``, where the entries of each row begin and end.
        columns: int32.
        values: float64, whole numbers of at most `_ONE`.
        lengths: float64 ``[m, 2]``, of own features and of those around, for all together.
    """

    pointers: NDArray[np.int64]
    columns: NDArray[np.int32]
    values: NDArray[np.float64]
    lengths: NDArray[np.float64]

    @classmethod
    def of(cls, graph: Graph, places: Places, kind: int, seed: int) -> WordRows:
        """Look at the nodes at these places, and at their neighbours of a kind."""
        ring = ring_around(graph, places, Reach(kind, AROUND), key_of(seed))
        return cls(*_rows(graph.table, *ring, graph.num_features, degrees_at(graph.table, places)))

    def together(self, features: int) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.float64]]:
        """Return pointers, columns and values of the rows as long as they are."""
        return self.pointers, self.columns, _lengthened(*self, features)

    def replaced(self, rows: NDArray[np.int64], fresh: WordRows) -> WordRows:
        """Some rows of this one, with fresh ones, in their order, where ``rows`` is -1."""
        new = rows < 0
        at = np.where(new, len(self.pointers) - 2 + np.cumsum(new), rows)
        pointers = np.append(self.pointers, self.pointers[-1] + fresh.pointers[1:])
        entries = slices_of(pointers, at)
        return WordRows(
            np.append(0, np.cumsum(pointers[at + 1] - pointers[at])),
            np.append(self.columns, fresh.columns)[entries],
            np.append(self.values, fresh.values)[entries],
            np.concatenate([self.lengths, fresh.lengths])[at],
        )


@dataclass(frozen=True, eq=False)
class WordSums:
    """Sums over training nodes; of each target alone where some are not known.

    Attributes:
        totals: int64 ``[1 or count, 2, columns]``, sums of values and of their squares.
        cross: int64 ``[columns, count]``, sums of values times targets.
        counts: int64 ``[2, count]``, how many of each target are known, and their sum.
    """

    totals: Integers
    cross: Integers
    counts: Integers

    @classmethod
    def zeros(cls, graph: Graph) -> WordSums:
        """Return the sums over no nodes."""
        shapes = (form.shape for form in _forms(graph).values())
        return cls(*(np.zeros(shape, dtype=np.int64) for shape in shapes))

    def plus(self, sign: int, rows: WordRows, targets: Targets) -> WordSums:
        """Put rows in, or take them out."""
        sums = self.totals.copy(), self.cross.copy(), self.counts.copy()
        _add(sign, *rows[:3], targets, *sums)
        return WordSums(*sums)

    def said(self, graph: Graph, rows: WordRows, own: Targets, ridge: float) -> Evidence:
        """Say ``[m, 2, count]`` in the graph's frame; own targets, where known, are left out."""
        sums = self.totals, self.cross, self.counts
        found = _said(*rows[:3], graph.num_features, own, *sums, ridge * _ONE**2)
        evidence: Evidence = found / graph.label_frame.spread + self.mean(graph)
        return evidence

    def mean(self, graph: Graph) -> NDArray[np.float64]:
        """The mean of each target in the graph's frame."""
        frame, known = graph.label_frame, np.maximum(self.counts[0], 1)
        return np.asarray((self.counts[1] / known - frame.centre) / frame.spread)


@dataclass(frozen=True, eq=False)
class Judged:
    """Basis that the sampled nodes are judged on; it saves time and follows from the graph.

    Attributes:
        candidates: for the regression on all columns, and whom it lets in next.
        sample: sorted ids.
        rows: of them.
        weights: ``[columns, count]``, learned without them.
    """

    candidates: Candidates
    sample: Ids
    rows: WordRows
    weights: NDArray[np.float64]


@dataclass(frozen=True)
class TargetWords:
    """Regressions on single columns, before they have seen any.

    Attributes:
        ridge: added to each column's sum of squares.
    """

    ridge: float = 1.0

    def fit(self, ensemble: Ensemble, sample: Ids) -> FittedWords:
        """See `Member`."""
        graph, sums = ensemble.graph, WordSums.zeros(ensemble.graph)
        places = labelled_places(graph)
        for start in range(0, len(places), _AT_ONCE):
            block = places[start : start + _AT_ONCE]
            sums = sums.plus(1, _learned(ensemble, block), targets_at(graph, block))
        return self._fitted(ensemble, sums, sample)

    def refit(
        self, fitted: FittedMember, ensemble: Ensemble, change: Change, sample: Ids
    ) -> FittedWords:
        """See `Member`."""
        assert isinstance(fitted, FittedWords)
        before, graph, judged = change.before.graph, ensemble.graph, fitted.judged
        if is_partial(graph) != is_partial(before):
            return self.fit(ensemble, sample)
        reach = Reach(SHARDED[graph.context], AROUND)
        walk = Walk(reach, reach, key_of(ensemble.seed), features=True)
        moved = stale_nodes(change, graph, walk, _NOBODY).moved
        nodes, sums = np.union1d(moved, change.changed), fitted.sums
        for sign, state in ((-1, change.before), (1, ensemble)):
            places = trained_among(state.graph, nodes)
            sums = sums.plus(sign, _learned(state, places), targets_at(state.graph, places))
        if judged is None:
            return self._fitted(ensemble, sums, sample)
        candidates = judged.candidates.changed(graph, change.changed, ensemble.seed)
        old = ranks(sample, judged.sample)
        old[ranks(sample, nodes) >= 0] = -1
        fresh = _learned(ensemble, graph.places(sample[old < 0]))
        return self._fitted(ensemble, sums, sample, candidates, judged.rows.replaced(old, fresh))

    def _fitted(
        self,
        ensemble: Ensemble,
        sums: WordSums,
        sample: Ids,
        candidates: Candidates | None = None,
        rows: WordRows | None = None,
    ) -> FittedWords:
        graph, count = ensemble.graph, ensemble.graph.num_classes
        if candidates is None:
            most = MOST_NODES if count <= _MOST else 1
            candidates = Candidates.of(graph, (1.0, most), ensemble.seed)
        rows = _learned(ensemble, graph.places(sample)) if rows is None else rows
        both = np.zeros((len(sums.cross), 0))
        if count <= _MOST:
            chosen, mean = candidates.nodes, sums.mean(graph)
            both = weights_of_all(ensemble, chosen, sample, mean, self.ridge)
        judged = Judged(candidates, sample, rows, both[:, count:].copy())
        return FittedWords(self, sums, both[:, :count].copy(), judged)

    def check_tensors(self, tensors: Tensors, ensemble: Ensemble, sample: Ids) -> None:
        """See `Member`."""
        del sample
        forms = _forms(ensemble.graph)
        columns, count = forms["cross"].shape
        weights = Form(np.float64, (columns, count if count <= _MOST else 0))
        check_forms(tensors, forms | {"weights": weights}, "the words of targets")

    def restore(self, tensors: Tensors) -> FittedWords:
        """See `Member`."""
        names = ("totals", "cross", "counts")
        kept = (np.asarray(tensors[name], dtype=np.int64) for name in names)
        weights = np.asarray(tensors["weights"], dtype=np.float64)
        return FittedWords(self, WordSums(*kept), weights, None)


@dataclass(frozen=True, eq=False)
class FittedWords:
    """The sums over the training nodes, and the regression on all columns, if there is one.

    Attributes:
        rule: what it was fitted by.
        sums: over all training nodes.
        weights: ``[columns, count]``.
        judged: None after loading.
    """

    rule: TargetWords
    sums: WordSums
    weights: NDArray[np.float64]
    judged: Judged | None = field(repr=False)

    @property
    def names(self) -> tuple[str, ...]:
        return names_for(self.sums.cross.shape[1])

    @property
    def tensors(self) -> Mapping[str, NDArray[np.generic]]:
        return dict(vars(self.sums)) | {"weights": self.weights}

    def evidence(self, ensemble: Ensemble, positions: Positions) -> Evidence:
        """See `FittedMember`."""
        graph = ensemble.graph
        parts = [np.empty((0, len(self.names), graph.num_classes))]
        for start in range(0, len(positions), _AT_ONCE):
            places = graph.places_at(positions[start : start + _AT_ONCE])
            rows = WordRows.of(graph, places, ANY, ensemble.seed)
            nothing = np.full((len(places), graph.num_classes), np.nan)
            parts.append(self._said(graph, rows, nothing, self.weights))
        return np.concatenate(parts)

    def held_out(self, ensemble: Ensemble, sample: Ids) -> Evidence:
        """See `FittedMember`: without the node itself, and without the whole sample."""
        graph = ensemble.graph
        judged = self.judged or self.rule._fitted(ensemble, self.sums, sample).judged
        assert judged is not None
        targets = targets_at(graph, graph.places(sample))
        return self._said(graph, judged.rows, targets, judged.weights)

    def _said(
        self, graph: Graph, rows: WordRows, own: Targets, weights: NDArray[np.float64]
    ) -> Evidence:
        apart = self.sums.said(graph, rows, own, self.rule.ridge)
        if not weights.shape[1]:
            return apart
        together = _product(*rows.together(graph.num_features), weights) + self.sums.mean(graph)
        return np.concatenate([apart, together[:, None]], axis=1)


def _learned(ensemble: Ensemble, places: Places) -> WordRows:
    graph = ensemble.graph
    return WordRows.of(graph, places, SHARDED[graph.context], ensemble.seed)


def _forms(graph: Graph) -> dict[str, Form]:
    """Return the forms of the sums on a graph."""
    count, most = graph.num_classes, graph.num_train * _ONE
    columns = 2 * graph.num_features + OTHERS
    parts, steps = count if is_partial(graph) else 1, most * 2.0**BITS
    return {
        "totals": Form(np.int64, (parts, 2, columns), -most * _ONE, most * _ONE),
        "cross": Form(np.int64, (columns, count), -steps, steps),
        "counts": Form(np.int64, (2, count), -steps, steps),
    }


@compiled
def _rows(table, places, indptr, entries, features, degrees):  # type: ignore[no-untyped-def]
    """Own features of each ring's own node, and the sum of the others', at length 1 and rounded.

    Neighbours are added in the order of their ids, and columns come in the order in which they
    first have a value: a row has the same bits whichever rows it is made with.
    """
    m, most = len(indptr) - 1, (len(indptr) - 1) * OTHERS
    for entry in entries:
        most += size_at(table, places[entry])
    pointers, sizes, lengths = np.zeros(m + 1, dtype=np.int64), np.zeros(m), np.zeros((m, 2))
    found, numbers = np.empty(most, dtype=np.int32), np.empty(most)
    columns, values = np.empty(features, dtype=np.int32), np.empty(features, dtype=np.float32)
    seen, sums, last = np.full(features, -1), np.zeros(features), 0
    for r in range(m):
        for around in range(2):
            start = last
            first, end = indptr[r] + around, indptr[r + 1] if around else indptr[r] + 1
            for e in range(first, end):
                count = copy_features(table, places[entries[e]], columns, values, 0)
                scale = logarithms_of(values[:count]) / (end - first)
                sizes[r] = sizes[r] if around else count
                for i in range(count):
                    column = columns[i]
                    if seen[column] != 2 * r + around:
                        seen[column], sums[column] = 2 * r + around, 0.0
                        found[last] = column
                        last += 1
                    sums[column] += values[i] * scale
            for i in range(start, last):
                numbers[i] = sums[found[i]]
                found[i] += around * features
            scale = inverse_length(numbers[start:last])
            numbers[start:last] = np.rint(numbers[start:last] * (_ONE * scale))
            lengths[r, around] = 1.0 / scale if scale > 0.0 else 0.0
        pointers[r + 1] = last = last + OTHERS
        found[last - OTHERS : last] = np.arange(2 * features, 2 * features + OTHERS)
    others = beside(sizes, degrees, float(_ONE))
    for r in range(m):
        numbers[pointers[r + 1] - OTHERS : pointers[r + 1]] = others[r]
    return pointers, found[:last].copy(), numbers[:last].copy(), lengths


@compiled
def _add(sign, pointers, columns, values, targets, totals, cross, counts):  # type: ignore[no-untyped-def]
    parts, count = len(totals), targets.shape[1]
    for r in range(len(targets)):
        known, some = ~np.isnan(targets[r]), False
        for k in range(count):
            if known[k]:
                some = True
                counts[0, k] += sign
                counts[1, k] += sign * np.int64(targets[r, k])
        for e in range(pointers[r], pointers[r + 1] if some else pointers[r]):
            column, value = columns[e], np.int64(values[e])
            for p in range(parts):
                if parts == 1 or known[p]:
                    totals[p, 0, column] += sign * value
                    totals[p, 1, column] += sign * value * value
            for k in range(count):
                if known[k]:
                    cross[column, k] += sign * value * np.int64(targets[r, k])


@compiled
def _said(pointers, columns, values, features, own, totals, cross, counts, ridge):  # type: ignore[no-untyped-def]
    """Add up each row's columns in their order, without what it was itself counted with."""
    m, count = own.shape
    out, parts = np.zeros((m, 2, count)), len(totals)
    nodes, means = np.empty(count), np.empty(count)
    mine, target = np.empty(count), np.empty(count)
    for r in range(m):
        for k in range(count):
            mine[k] = 0.0 if np.isnan(own[r, k]) else 1.0
            target[k] = own[r, k] if mine[k] else 0.0
            nodes[k] = max(counts[0, k] - mine[k], 1.0)
            means[k] = (counts[1, k] - target[k]) / nodes[k]
        for e in range(pointers[r], pointers[r + 1]):
            column, value = columns[e], values[e]
            if column >= 2 * features:
                break
            row = out[r, 0 if column < features else 1]
            share = 0.0
            for k in range(count):
                if k < parts:
                    total = totals[k, 0, column] - mine[k] * value
                    squares = totals[k, 1, column] - mine[k] * value * value
                    share = value / (squares - total * total / nodes[k] + ridge)
                row[k] += share * (cross[column, k] - value * target[k] - total * means[k])
    return out


@compiled
def _lengthened(pointers, columns, values, lengths, features):  # type: ignore[no-untyped-def]
    out = values / _ONE
    for r in range(len(lengths)):
        for e in range(pointers[r], pointers[r + 1] - OTHERS):
            out[e] *= lengths[r, columns[e] // features]
    return out


@compiled
def _product(pointers, columns, values, weights):  # type: ignore[no-untyped-def]
    """Multiply rows by weights ``[columns, count]``, each by itself in the order of entries."""
    out = np.zeros((len(pointers) - 1, weights.shape[1]))
    for r in range(len(out)):
        for e in range(pointers[r], pointers[r + 1]):
            for k in range(weights.shape[1]):
                out[r, k] += values[e] * weights[columns[e], k]
    return out
