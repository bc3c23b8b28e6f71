"""Surprises: what nodes of a class have more often than the labels around them lead to expect.

A node's row is a set of columns: its own features, those of its neighbours, and the classes of
these. Two numbers are kept of a column for each class: how many training nodes of the class have
it, and how many were to be expected if each node had the classes around it, in their shares, and a
little of every class by its size. Evidence is the logarithm of the first over the second, added up
over a node's columns: naive Bayes after labels around have told all that they can.

Shares are whole numbers, so sums over nodes are exact. Sizes of classes come in last.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from grapheraser.aggregation.base import Change, Ensemble
from grapheraser.aggregation.form import Form, Tensors, check_forms
from grapheraser.aggregation.members.around import Counts, one_hop
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
from grapheraser.aggregation.members.smoothing import key_of
from grapheraser.aggregation.members.walks import Reach, near_nodes, ring_around
from grapheraser.blocks import touched
from grapheraser.canonical import BY_BLOCK
from grapheraser.graph import UNLABELLED, Graph
from grapheraser.kernels.compiled import compiled
from grapheraser.kernels.elementary import logarithm
from grapheraser.kernels.neighbourhoods import ANY
from grapheraser.kernels.paged import copy_columns, labels_at, size_at
from grapheraser.kernels.sets import ranks
from grapheraser.kernels.vectors import HALF, HALF_LANES, load, store, zeros

_COUNTS, _EXPECTED = f"counts{BY_BLOCK}", f"expected{BY_BLOCK}"
NAMES = ("surprises", "surprises around", "surprises of labels")
# A node counts as 1; shares are fractions of it. Sums over fewer nodes than `_MOST` take 32 bits.
_ONE, _MOST = 2**12, 2**18
# All classes together, beside the labels around a node.
_EVERY = 0.2
# Neighbours whose features count; twice as many gain nothing.
_AROUND = 4
# So many rows are held at once.
_AT_ONCE = 2**15
# Logarithms are whole multiples of 1 / `_STEPS`.
_STEPS = 2.0**10


class Columns(NamedTuple):
    """The columns of some nodes: own features, features around and classes around, each once.

    Attributes:
        pointers: int64 ``[3 m + 1]``, where each of the three parts of a node begins and ends.
        columns: int32, of a table of ``2 num_features + num_classes`` of them.
        near: int64 ``[m, num_classes]``, labels around each node.
    """

    pointers: NDArray[np.int64]
    columns: NDArray[np.int32]
    near: Counts

    @classmethod
    def of(cls, graph: Graph, places: Places, kind: int, seed: int) -> Columns:
        """Look at the nodes at these places, and at their neighbours of a kind."""
        ring = ring_around(graph, places, Reach(kind, _AROUND), key_of(seed))
        near = one_hop(graph, places, seed)
        pointers, columns = _columns(graph.table, *ring, near, graph.num_features)
        return cls(pointers, columns, near)

    def replaced(self, rows: NDArray[np.int64], fresh: Columns) -> Columns:
        """Some rows of this one, with fresh ones, in their order, where ``rows`` is -1."""
        return Columns(*_replaced(*self, rows, *fresh))


@dataclass(frozen=True)
class Surprises:
    """Surprises, before any have been counted."""

    def fit(self, ensemble: Ensemble, sample: Ids) -> FittedSurprises:
        """See `Member`."""
        graph = ensemble.graph
        counts, expected = (np.zeros(form.shape, form.dtype) for form in _forms(graph).values())
        sums = counts, expected, np.zeros(len(counts), dtype=np.bool_)
        _add(graph, 1, labelled_places(graph), ensemble.seed, *sums)
        return FittedSurprises(counts, expected, _judged(ensemble, sample))

    def refit(
        self, fitted: FittedMember, ensemble: Ensemble, change: Change, sample: Ids
    ) -> FittedSurprises:
        """See `Member`."""
        assert isinstance(fitted, FittedSurprises)
        nodes = np.union1d(near_nodes(change, ensemble.graph), change.gone)
        counts = fitted.counts.copy()
        expected = fitted.expected.astype(_forms(ensemble.graph)[_EXPECTED].dtype)
        had = np.zeros(len(counts), dtype=np.bool_)
        for sign, graph in ((-1, change.before.graph), (1, ensemble.graph)):
            places = trained_among(graph, nodes)
            _add(graph, sign, places, ensemble.seed, counts, expected, had)
        rows = np.flatnonzero(had)
        touched(counts, fitted.counts, rows)
        touched(expected, fitted.expected, rows)
        made = FittedSurprises(counts, expected, _judged(ensemble, sample, fitted.judged, nodes))
        if "table" in fitted.__dict__ and np.array_equal(made.sizes, fitted.sizes):
            table = fitted.table.copy()
            _value(counts, expected, made.sizes, rows, table)
            made.__dict__["table"] = table
        return made

    def check_tensors(self, tensors: Tensors, ensemble: Ensemble, sample: Ids) -> None:
        """See `Member`."""
        del sample
        check_forms(tensors, _forms(ensemble.graph), "the surprises")

    def restore(self, tensors: Tensors) -> FittedSurprises:
        """See `Member`."""
        expected: NDArray[Any] = np.asarray(tensors[_EXPECTED])
        return FittedSurprises(np.asarray(tensors[_COUNTS], dtype=np.int32), expected, None)


class Judged(NamedTuple):
    """The columns of the sampled nodes; they save time and follow from the graph."""

    sample: Ids
    columns: Columns


@dataclass(frozen=True, eq=False)
class FittedSurprises:
    """Counts over the training nodes.

    Attributes:
        counts: int32 ``[columns + 1, num_classes]``, nodes of a class that have a column; in the
            last row all of them.
        expected: whole numbers ``[columns + 1, num_classes + 1]``, shares of each class around
            them, and last what is left for all classes.
        judged: None after loading.
    """

    counts: NDArray[np.int32]
    expected: NDArray[np.integer]
    judged: Judged | None = field(repr=False)

    @property
    def names(self) -> tuple[str, ...]:
        return NAMES

    @property
    def tensors(self) -> Mapping[str, NDArray[np.generic]]:
        return {_COUNTS: self.counts, _EXPECTED: self.expected}

    def evidence(self, ensemble: Ensemble, positions: Positions) -> Evidence:
        """See `FittedMember`."""
        graph = ensemble.graph
        parts = [np.empty((0, len(NAMES), graph.num_classes))]
        for start in range(0, len(positions), _AT_ONCE):
            places = graph.places_at(positions[start : start + _AT_ONCE])
            columns = Columns.of(graph, places, ANY, ensemble.seed)
            parts.append(self._said(columns, np.full(len(places), UNLABELLED)))
        return np.concatenate(parts)

    def held_out(self, ensemble: Ensemble, sample: Ids) -> Evidence:
        """See `FittedMember`: without what the node itself was counted with in its class."""
        judged = _judged(ensemble, sample) if self.judged is None else self.judged
        return self._said(judged.columns, ensemble.graph.labels(sample))

    def _said(self, columns: Columns, own: NDArray[np.int64]) -> Evidence:
        said: Evidence = _said(
            columns.pointers, columns.columns, own, self.table, self.counts.shape[1]
        )
        return said

    @cached_property
    def sizes(self) -> NDArray[np.float64]:
        """Share of each class; sizes keep two bits, so that they seldom change with a request."""
        part, power = np.frexp(self.counts[-1] + 1.0)
        sizes: NDArray[np.float64] = np.ldexp(np.rint(4 * part) / 4, power)
        return sizes / sizes.sum()

    @cached_property
    def table(self) -> NDArray[np.float32]:
        """The worth of each column for each class, then what it loses with one node less there.

        Whole numbers, each half in whole vectors.
        """
        rows, c = self.counts.shape
        width = -(-c // HALF_LANES) * HALF_LANES
        table = np.zeros((rows, 2 * width), dtype=np.float32)
        _value(self.counts, self.expected, self.sizes, np.arange(rows), table)
        return table


def _judged(
    ensemble: Ensemble, sample: Ids, known: Judged | None = None, stale: Ids | None = None
) -> Judged:
    """Look at the sampled nodes, but not again at those that are known and not stale."""
    graph, kind = ensemble.graph, SHARDED[ensemble.graph.context]
    if known is None or stale is None:
        return Judged(sample, Columns.of(graph, graph.places(sample), kind, ensemble.seed))
    rows = ranks(sample, known.sample)
    rows[ranks(sample, stale) >= 0] = -1
    if sample is known.sample and (rows >= 0).all():
        return known
    fresh = Columns.of(graph, graph.places(sample[rows < 0]), kind, ensemble.seed)
    return Judged(sample, known.columns.replaced(rows, fresh))


def _add(
    graph: Graph,
    sign: int,
    places: Places,
    seed: int,
    counts: NDArray[np.int32],
    expected: NDArray[np.integer],
    had: NDArray[np.bool_],
) -> None:
    """Count the nodes at these places, or take them out; tell which columns they had."""
    for start in range(0, len(places), _AT_ONCE):
        part = places[start : start + _AT_ONCE]
        columns = Columns.of(graph, part, SHARDED[graph.context], seed)
        _count(sign, *columns, labels_at(graph.table, part), counts, expected, had)


def _forms(graph: Graph) -> dict[str, Form]:
    """Return the forms of the sums on a graph."""
    rows, c, most = (
        2 * graph.num_features + graph.num_classes + 1,
        graph.num_classes,
        graph.num_train,
    )
    return {
        _COUNTS: Form(np.int32, (rows, c), 0, most),
        _EXPECTED: Form(np.int32 if most < _MOST else np.int64, (rows, c + 1), 0, most * _ONE),
    }


@compiled
def _columns(table, places, indptr, entries, near, features):  # type: ignore[no-untyped-def]
    """Columns in the order in which neighbours, by their ids, first have them; then classes."""
    m, most = len(near), near.size
    for entry in entries:
        most += size_at(table, places[entry])
    pointers, found = np.zeros(3 * m + 1, dtype=np.int64), np.empty(most, dtype=np.int32)
    own, seen, last = np.empty(features, dtype=np.int32), np.full(features, -1), 0
    for r in range(m):
        for e in range(indptr[r], indptr[r + 1]):
            around = e > indptr[r]
            for i in range(copy_columns(table, places[entries[e]], own)):
                column = own[i]
                if not around:
                    found[last] = column
                    last += 1
                elif seen[column] != r:
                    seen[column] = r
                    found[last] = features + column
                    last += 1
            if not around:
                pointers[3 * r + 1] = last
        pointers[3 * r + 2] = last
        for k in range(near.shape[1]):
            if near[r, k] > 0:
                found[last] = 2 * features + k
                last += 1
        pointers[3 * r + 3] = last
    return pointers, found[:last].copy()


@compiled
def _count(sign, pointers, columns, near, labels, counts, expected, had):  # type: ignore[no-untyped-def]
    c = near.shape[1]
    shares = np.empty(c + 1, dtype=np.int64)
    for r in range(len(labels)):
        total = near[r].sum() + _EVERY
        for k in range(c):
            shares[k] = sign * np.int64(np.rint(_ONE * near[r, k] / total))
        shares[c] = sign * np.int64(np.rint(_ONE * _EVERY / total))
        had[-1] = True
        counts[-1, labels[r]] += sign
        expected[-1] += shares
        for e in range(pointers[3 * r], pointers[3 * r + 3]):
            had[columns[e]] = True
            counts[columns[e], labels[r]] += sign
            row = expected[columns[e]]
            for k in range(c + 1):
                row[k] += shares[k]


@compiled
def _replaced(pointers, columns, near, rows, new_pointers, new_columns, new_near):  # type: ignore[no-untyped-def]
    """Copy the parts of each row, of old ones or, where a row is -1, of the next new one."""
    m, last, end = len(rows), 0, 0
    out_near = np.empty((m, near.shape[1]), dtype=near.dtype)
    out_pointers = np.zeros(3 * m + 1, dtype=np.int64)
    out = np.empty(len(columns) + len(new_columns), dtype=np.int32)
    for r in range(m):
        old = rows[r] >= 0
        row = rows[r] if old else last
        source, starts = (columns, pointers) if old else (new_columns, new_pointers)
        out_near[r] = near[row] if old else new_near[row]
        last += not old
        for part in range(3 * row, 3 * row + 3):
            for e in range(starts[part], starts[part + 1]):
                out[end] = source[e]
                end += 1
            out_pointers[3 * r + part - 3 * row + 1] = end
    return out_pointers, out[:end].copy(), out_near


@compiled
def _value(counts, expected, sizes, rows, table):  # type: ignore[no-untyped-def]
    """Put the worth of some columns into a table."""
    c, width = counts.shape[1], table.shape[1] // 2
    for f in rows:
        for k in range(c):
            n = float(counts[f, k])
            share = (expected[f, k] + expected[f, c] * sizes[k]) / _ONE
            table[f, k] = np.rint(_STEPS * logarithm((n + 1.0) / (share + 1.0)))
            table[f, width + k] = np.rint(_STEPS * logarithm(n / (n + 1.0))) if n > 0 else 0.0


@compiled
def _said(pointers, columns, own, table, c):  # type: ignore[no-untyped-def]
    """Add up what each part's columns are worth, over the root of their number.

    In two sums, of even and of odd entries, so that one addition need not wait for the other.

    ``own[r]`` is the class that row r itself was counted in, or -1.
    """
    m, width = len(own), table.shape[1] // 2
    out, line = np.zeros((m, 3, c)), np.zeros(width, dtype=np.float32)
    for r in range(m):
        for part in range(3):
            first, end = pointers[3 * r + part], pointers[3 * r + part + 1]
            if first == end:
                continue
            for start in range(0, width, HALF_LANES):
                sums, others = zeros(line, HALF), zeros(line, HALF)
                for e in range(first + 1, end, 2):
                    sums = sums + load(table, columns[e - 1] * 2 * width + start, HALF)
                    others = others + load(table, columns[e] * 2 * width + start, HALF)
                if (end - first) % 2:
                    sums = sums + load(table, columns[end - 1] * 2 * width + start, HALF)
                store(line, start, sums + others)
            if own[r] >= 0:
                for e in range(first, end):
                    line[own[r]] += table[columns[e], width + own[r]]
            scale = 1.0 / (_STEPS * math.sqrt(end - first))
            for k in range(c):
                out[r, part, k] = line[k] * scale
    return out
