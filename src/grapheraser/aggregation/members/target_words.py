"""Words of targets: several labels, or numbers, from wide features that are not hashed.

A row holds a node's own features at length 1, the sum of its neighbours' at length 1 in columns of
their own, the logarithm of its degree in three pieces, and a constant. It says up to three numbers
for each target. Two are sums over own columns and over those around, weighted by what a regression
on each column alone would say: all that takes are five sums of whole numbers per column. The third
is ridge regression on all columns together. It is learned from a bounded number of training nodes,
by so few conjugate gradients that a request can solve it anew, always from zero and in one order.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from grapheraser.aggregation.base import Change, Ensemble
from grapheraser.aggregation.form import Form, Tensors, check_forms
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
from grapheraser.aggregation.members.smoothing import FIRST, inverse_length, key_of
from grapheraser.aggregation.members.sums import Integers
from grapheraser.aggregation.members.target_pattern import PIECES, pieces_of
from grapheraser.aggregation.members.target_sums import Targets, is_partial, targets_at
from grapheraser.aggregation.members.walks import Reach, Walk, ring_around, stale_nodes
from grapheraser.aggregation.sample.membership import Candidates
from grapheraser.graph import Graph
from grapheraser.graph.csr import slices_of
from grapheraser.graph.labels import BITS
from grapheraser.kernels.compiled import compiled
from grapheraser.kernels.neighbourhoods import ANY
from grapheraser.kernels.paged import copy_features, neighbour_rows, size_at
from grapheraser.kernels.sets import ranks
from grapheraser.kernels.vectors import HALF, HALF_LANES, load, store, zeros

_NAMES = ("words", "words around", "words together")
# All columns together are asked about so many targets at the most: a request solves for each.
_MOST = 4
# The value 1 of a feature: a product with a target of `BITS` bits fits 2**27 times into an int64.
_ONE = 2**12
# So many rows are held at once.
_AT_ONCE = 2**15
_NOBODY = np.zeros(0, dtype=np.int64)
# Nodes that the regression on all columns is learned from, and how many gradients it takes.
_NODES, _GRADIENTS = 2048, 5


def names_for(count: int) -> tuple[str, ...]:
    """Return the names of what is said about so many targets."""
    return _NAMES if count <= _MOST else _NAMES[:2]


class WordRows(NamedTuple):
    """Sparse rows of some nodes: own features, and those around in as many columns more.

    Attributes:
        pointers: int64 ``[m + 1]``, where the entries of each row begin and end.
        columns: int32.
        values: float64, whole numbers of at most `_ONE`.
    """

    pointers: NDArray[np.int64]
    columns: NDArray[np.int32]
    values: NDArray[np.float64]

    @classmethod
    def of(cls, graph: Graph, places: Places, kind: int, seed: int) -> WordRows:
        """Look at the nodes at these places, and at their neighbours of a kind."""
        ring = ring_around(graph, places, Reach(kind, FIRST), key_of(seed))
        degree = np.diff(neighbour_rows(graph.table, places)[0])
        pieces = pieces_of(degree, float(_ONE))
        return cls(*_rows(graph.table, *ring, graph.num_features, pieces))

    def times(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Multiply by weights ``[columns, count]``, each row by itself in the order of entries."""
        found: NDArray[np.float64] = _product(*self, weights)
        return found

    def only(self, rows: NDArray[np.int64]) -> WordRows:
        """Return some of the rows."""
        none = WordRows(np.zeros(1, dtype=np.int64), self.columns[:0], self.values[:0])
        return self.replaced(rows, none)

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
        _add(sign, *rows, targets, *sums)
        return WordSums(*sums)

    def said(self, graph: Graph, rows: WordRows, own: Targets, ridge: float) -> Evidence:
        """Say ``[m, 2, count]`` in the graph's frame; own targets, where known, are left out."""
        sums = self.totals, self.cross, self.counts
        found = _said(*rows, graph.num_features, own, *sums, ridge * _ONE**2)
        evidence: Evidence = found / graph.label_frame.spread + self.mean(graph)
        return evidence

    def mean(self, graph: Graph) -> NDArray[np.float64]:
        """The mean of each target in the graph's frame."""
        frame, known = graph.label_frame, np.maximum(self.counts[0], 1)
        return np.asarray((self.counts[1] / known - frame.centre) / frame.spread)


@dataclass(frozen=True, eq=False)
class Base:
    """The nodes that the regression on all columns is learned from, and those of the sample.

    Attributes:
        candidates: for the base, and whom it lets in next.
        nodes: sorted ids.
        rows: of them.
    """

    candidates: Candidates
    nodes: Ids
    rows: WordRows

    @classmethod
    def of(
        cls, ensemble: Ensemble, candidates: Candidates, sample: Ids, known: Base | None, stale: Ids
    ) -> Base:
        """Look at all nodes but those that are known and not stale."""
        nodes = np.union1d(candidates.sampled, sample)
        old = np.full(len(nodes), -1) if known is None else ranks(nodes, known.nodes)
        old[ranks(nodes, stale) >= 0] = -1
        fresh = _learned(ensemble, ensemble.graph.places(nodes[old < 0]))
        rows = fresh if known is None else known.rows.replaced(old, fresh)
        return cls(candidates, nodes, rows)

    def solved(
        self, graph: Graph, sums: WordSums, sample: Ids, ridge: float
    ) -> NDArray[np.float64]:
        """Solve for weights ``[columns, 2 count]``: from all nodes, and from all but the sample.

        Of more than `_MOST` targets there are none.
        """
        if graph.num_classes > _MOST:
            return np.zeros((len(sums.cross), 0))
        frame = graph.label_frame
        targets = targets_at(graph, graph.places(self.nodes))
        known = ~np.isnan(targets)
        others = known & (ranks(self.nodes, sample) < 0)[:, None]
        scaled = np.nan_to_num((targets - frame.centre) / frame.spread - sums.mean(graph))
        lanes = np.zeros((2, len(known), -(-2 * known.shape[1] // HALF_LANES) * HALF_LANES))
        for out, part in zip(lanes, ([scaled, scaled], [known, others]), strict=True):
            out[:, : 2 * known.shape[1]] = np.hstack(part)
        pointers, columns, values = self.rows
        size = len(sums.cross), ridge, _GRADIENTS
        found: NDArray[np.float64] = _regressed(pointers, columns, values / _ONE, *lanes, *size)
        return found[:, : 2 * known.shape[1]].copy()


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
        return self._fitted(ensemble, sums, sample, self._base(ensemble, sample))

    def refit(
        self, fitted: FittedMember, ensemble: Ensemble, change: Change, sample: Ids
    ) -> FittedWords:
        """See `Member`."""
        assert isinstance(fitted, FittedWords)
        before, graph, base = change.before.graph, ensemble.graph, fitted.base
        if is_partial(graph) != is_partial(before):
            return self.fit(ensemble, sample)
        reach = Reach(SHARDED[graph.context], FIRST)
        walk = Walk(reach, reach, key_of(ensemble.seed), features=True)
        moved = stale_nodes(change, graph, walk, _NOBODY).moved
        nodes, sums = np.union1d(moved, change.changed), fitted.sums
        for sign, state in ((-1, change.before), (1, ensemble)):
            places = trained_among(state.graph, nodes)
            sums = sums.plus(sign, _learned(state, places), targets_at(state.graph, places))
        if base is None:
            return self._fitted(ensemble, sums, sample, self._base(ensemble, sample))
        candidates = base.candidates.changed(graph, change.changed, ensemble.seed)
        made = Base.of(ensemble, candidates, sample, base, nodes)
        return self._fitted(ensemble, sums, sample, made)

    def _base(self, ensemble: Ensemble, sample: Ids) -> Base:
        most = _NODES if ensemble.graph.num_classes <= _MOST else 1
        candidates = Candidates.of(ensemble.graph, (1.0, most), ensemble.seed)
        return Base.of(ensemble, candidates, sample, None, _NOBODY)

    def _fitted(self, ensemble: Ensemble, sums: WordSums, sample: Ids, base: Base) -> FittedWords:
        weights = base.solved(ensemble.graph, sums, sample, self.ridge)
        return FittedWords(self, sums, weights[:, : weights.shape[1] // 2].copy(), base, weights)

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
        return FittedWords(self, WordSums(*kept), weights, None, None)


@dataclass(frozen=True, eq=False)
class FittedWords:
    """The sums over the training nodes, and the regression on all columns, if there is one.

    Attributes:
        rule: what it was fitted by.
        sums: over all training nodes.
        weights: ``[columns, count]``.
        base: what the weights were learned from; None after loading.
        both: `weights`, and those without the sample beside them; None after loading.
    """

    rule: TargetWords
    sums: WordSums
    weights: NDArray[np.float64]
    base: Base | None = field(repr=False)
    both: NDArray[np.float64] | None = field(repr=False)

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
        graph, base, both = ensemble.graph, self.base, self.both
        if base is None or both is None:
            base = self.rule._base(ensemble, sample)
            both = base.solved(graph, self.sums, sample, self.rule.ridge)
        rows = base.rows.only(ranks(sample, base.nodes))
        targets = targets_at(graph, graph.places(sample))
        return self._said(graph, rows, targets, both[:, both.shape[1] // 2 :].copy())

    def _said(
        self, graph: Graph, rows: WordRows, own: Targets, weights: NDArray[np.float64]
    ) -> Evidence:
        apart = self.sums.said(graph, rows, own, self.rule.ridge)
        if not weights.shape[1]:
            return apart
        together = rows.times(weights) + self.sums.mean(graph)
        return np.concatenate([apart, together[:, None]], axis=1)


def _learned(ensemble: Ensemble, places: Places) -> WordRows:
    graph = ensemble.graph
    return WordRows.of(graph, places, SHARDED[graph.context], ensemble.seed)


def _forms(graph: Graph) -> dict[str, Form]:
    """Return the forms of the sums on a graph."""
    count, most = graph.num_classes, graph.num_train * _ONE
    columns = 2 * graph.num_features + PIECES
    parts, steps = count if is_partial(graph) else 1, most * 2.0**BITS
    return {
        "totals": Form(np.int64, (parts, 2, columns), -most * _ONE, most * _ONE),
        "cross": Form(np.int64, (columns, count), -steps, steps),
        "counts": Form(np.int64, (2, count), -steps, steps),
    }


@compiled
def _rows(table, places, indptr, entries, features, pieces):  # type: ignore[no-untyped-def]
    """Own features of each ring's own node, and the sum of the others', at length 1 and rounded.

    Neighbours are added in the order of their ids, and columns come in the order in which they
    first have a value: a row has the same bits whichever rows it is made with.
    """
    m, most = len(indptr) - 1, (len(indptr) - 1) * pieces.shape[1]
    for entry in entries:
        most += size_at(table, places[entry])
    pointers = np.zeros(m + 1, dtype=np.int64)
    found, numbers = np.empty(most, dtype=np.int32), np.empty(most)
    columns, values = np.empty(features, dtype=np.int32), np.empty(features, dtype=np.float32)
    seen, sums, last = np.full(features, -1), np.zeros(features), 0
    for r in range(m):
        for around in range(2):
            start = last
            first, end = indptr[r] + around, indptr[r + 1] if around else indptr[r] + 1
            for e in range(first, end):
                count = copy_features(table, places[entries[e]], columns, values, 0)
                scale = inverse_length(values[:count])
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
            numbers[start:last] = np.rint(
                numbers[start:last] * (_ONE * inverse_length(numbers[start:last]))
            )
        found[last : last + PIECES] = np.arange(2 * features, 2 * features + PIECES)
        numbers[last : last + PIECES] = pieces[r]
        last += PIECES
        pointers[r + 1] = last
    return pointers, found[:last].copy(), numbers[:last].copy()


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
def _product(pointers, columns, values, weights):  # type: ignore[no-untyped-def]
    out = np.zeros((len(pointers) - 1, weights.shape[1]))
    for r in range(len(out)):
        for e in range(pointers[r], pointers[r + 1]):
            value = values[e] / _ONE
            for k in range(weights.shape[1]):
                out[r, k] += value * weights[columns[e], k]
    return out


@compiled
def _regressed(pointers, columns, values, targets, known, width, ridge, gradients):  # type: ignore[no-untyped-def]
    """Solve ridge regressions side by side by conjugate gradients, from zero.

    Each has a part of the rows: those known to it. All sums run over rows, entries and columns in
    their order, and lanes never meet, so weights follow from the rows alone.
    """
    shape = width, targets.shape[1]
    weights, diagonal = np.zeros(shape), np.full(shape, ridge)
    left = np.zeros(shape)
    for r in range(len(targets)):
        for e in range(pointers[r], pointers[r + 1]):
            c, x = columns[e], values[e]
            for k in range(shape[1]):
                left[c, k] += x * known[r, k] * targets[r, k]
                diagonal[c, k] += x * known[r, k] * x
    way = left / diagonal
    size = _dots(left, way)
    for _ in range(gradients):
        image = ridge * way
        _add_image(pointers, columns, values, known, way, image)
        along = _shares(size, _dots(way, image))
        weights += along * way
        left -= along * image
        image = left / diagonal
        new = _dots(left, image)
        way = image + _shares(new, size) * way
        size = new
    return weights


@compiled
def _add_image(pointers, columns, values, known, way, out):  # type: ignore[no-untyped-def]
    """Add H'H of each lane's rows times `way`."""
    lanes = way.shape[1]
    for at in range(0, lanes, HALF_LANES):
        for r in range(len(known)):
            said = zeros(way, HALF)
            for e in range(pointers[r], pointers[r + 1]):
                said = said + load(way, columns[e] * lanes + at, HALF) * values[e]
            said = said * load(known, r * lanes + at, HALF)
            for e in range(pointers[r], pointers[r + 1]):
                place = columns[e] * lanes + at
                store(out, place, load(out, place, HALF) + said * values[e])


@compiled
def _dots(a, b):  # type: ignore[no-untyped-def]
    """Add up the products of each column."""
    out = np.zeros(a.shape[1])
    for c in range(len(a)):
        for k in range(a.shape[1]):
            out[k] += a[c, k] * b[c, k]
    return out


@compiled
def _shares(a, b):  # type: ignore[no-untyped-def]
    """Divide; nothing is left of what is 0 already."""
    out = np.zeros(len(a))
    for k in range(len(a)):
        if b[k] > 0.0:
            out[k] = a[k] / b[k]
    return out
