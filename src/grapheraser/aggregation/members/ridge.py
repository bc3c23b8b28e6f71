"""Ridge regression from rows of whole numbers to one-hot labels, over all training nodes.

All that it keeps of the training nodes are two sums over their rows H: H'H and H'Y. A request takes
the old products of the rows that it changes out of the sums and puts the new ones in, and solves
the regression anew. Rows are whole numbers, so the sums are exact: changed or computed afresh, they
have the same bits.

To judge the sampled nodes held out, the regression is solved once more without all of them. Where
labels are few it is solved another way; see `dual`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from grapheraser.aggregation.base import Change, Ensemble
from grapheraser.aggregation.form import Form, Tensors, check_forms
from grapheraser.aggregation.members.base import (
    SCALE,
    Evidence,
    FittedMember,
    Ids,
    Places,
    Positions,
    Rows,
    labelled_places,
    trained_among,
)
from grapheraser.aggregation.members.dual import SHARPNESS, FittedDual
from grapheraser.aggregation.members.sums import MAX_ROWS, Sums
from grapheraser.aggregation.members.target_sums import (
    TargetSums,
    is_partial,
    spread_targets,
    target_forms,
    targets_at,
)
from grapheraser.aggregation.members.walks import Stale
from grapheraser.aggregation.sample.membership import few_labels
from grapheraser.graph import UNLABELLED, Graph
from grapheraser.kernels.compiled import compiled
from grapheraser.kernels.paged import label_at, labels_at, node_at
from grapheraser.kernels.sets import ranks
from grapheraser.kernels.vectors import HALF, HALF_LANES, LANES, ONE, load, store, zeros

# Rows are made and used in blocks of so many numbers, half a gigabyte.
_MAX_NUMBERS = 2**26

Learned = tuple[Rows, NDArray[Any]]
AnySums: TypeAlias = Any  # `Sums` of classes, or `TargetSums`: alike in what is done to them


@dataclass(frozen=True)
class RidgeMember(ABC):
    """A regression on rows that follow from the graph, before it has seen any.

    Attributes:
        ridge: added to the diagonal of H'H; makes the regression solvable with fewer nodes than
            columns.
    """

    ridge: float = 1.0

    @property
    @abstractmethod
    def name(self) -> str: ...

    def of_few(self) -> RidgeMember:
        """The regression to use where labels are few; see `dual`."""
        return self

    @abstractmethod
    def width(self, graph: Graph) -> int:
        """Number of columns; follows from the graph's schema alone."""

    @property
    def asks_as_it_learns(self) -> bool:
        """True where rows to be learned from and rows to be asked about are the same."""
        return False

    @abstractmethod
    def rows(self, graph: Graph, places: Places, seed: int, *, learning: bool) -> Rows:
        """Rows ``[len(places), width]`` of whole numbers of at most `SCALE`.

        Args:
            graph: the current graph.
            places: of the nodes in it.
            seed: of the run.
            learning: whether the rows are to be learned from, or to be asked about.
        """

    @abstractmethod
    def stale(
        self, change: Change, graph: Graph, seed: int, *, learning: bool, among: Ids | None = None
    ) -> Stale:
        """Find the nodes whose row may not be what it was.

        Args:
            change: what happened.
            graph: after it.
            seed: of the run.
            learning: as for `rows`.
            among: sorted ids; no other rows are asked for.
        """

    def rows_before_and_after(
        self, change: Change, old: Places, graph: Graph, new: Places, moved: Ids, seed: int
    ) -> tuple[Rows, Rows]:
        """Rows to be learned from, of places in the graph before a change and in the one after.

        Args:
            change: what happened.
            old: places in the graph before.
            graph: after it.
            new: places in that.
            moved: see `Stale`.
            seed: of the run.
        """
        del moved
        rows = self.rows(change.before.graph, old, seed, learning=True)
        return rows, self.rows(graph, new, seed, learning=True)

    def fit(self, ensemble: Ensemble, sample: Ids) -> FittedRidge | FittedDual:
        """See `Member`."""
        if _is_dual(ensemble.graph):
            return FittedDual.of(self.of_few(), ensemble)
        sums = self._summed(ensemble, labelled_places(ensemble.graph))
        return self._fitted(ensemble.graph, sums, self._judged(ensemble, sample))

    def refit(
        self, fitted: FittedMember, ensemble: Ensemble, change: Change, sample: Ids
    ) -> FittedRidge | FittedDual:
        """See `Member`."""
        afresh = _is_dual(ensemble.graph) != isinstance(fitted, FittedDual)
        if afresh or self._is_moved(change.before.graph, ensemble.graph):
            return self.fit(ensemble, sample)
        if isinstance(fitted, FittedDual):
            return fitted.changed(ensemble, change)
        assert isinstance(fitted, FittedRidge)
        graph, seed, judged = ensemble.graph, ensemble.seed, fitted.judged
        others = np.zeros(0, dtype=np.int64) if judged is None else judged.sample
        stale = self.stale(change, graph, seed, learning=True)
        parts = [change.gone, stale.nodes]
        if sample is not others:
            parts.append(np.setxor1d(others, sample, assume_unique=True))
        nodes = np.unique(np.concatenate(parts))
        old, new = self._before_and_after(change, graph, nodes, stale.moved, seed)
        sums = fitted.sums.replaced(*old, *new)
        if judged is None:
            return self._fitted(graph, sums, self._judged(ensemble, sample))
        was, now = _only(old, nodes, others), _only(new, nodes, sample)
        if self.asks_as_it_learns:
            again = nodes[ranks(nodes, sample) >= 0]
            asked = new[0][ranks(again, nodes)]
        else:
            again = self._to_ask(judged, graph, change, sample, seed)
            asked = (
                self.rows(graph, graph.places(again), seed, learning=False)
                if len(again)
                else new[0][:0]
            )
        rows = judged.asked_again(sample, again, asked)
        return self._fitted(graph, sums, Judged(sample, judged.sums.replaced(*was, *now), rows))

    def _to_ask(self, judged: Judged, graph: Graph, change: Change, sample: Ids, seed: int) -> Ids:
        """Sorted ids of the sampled nodes whose row is new, or may not be what it was."""
        stale = self.stale(change, graph, seed, learning=False, among=sample).nodes
        if sample is judged.sample:
            return stale
        return np.union1d(stale, sample[ranks(sample, judged.sample) < 0])

    def check_tensors(self, tensors: Tensors, ensemble: Ensemble, sample: Ids) -> None:
        """See `Member`."""
        del sample
        graph, owner = ensemble.graph, f"the regression '{self.name}'"
        if not graph.label_kind.is_classes:
            check_forms(tensors, target_forms(graph, self.width(graph)), owner)
            return
        few, c = few_labels(graph), graph.num_classes
        width = (self.of_few() if few else self).width(graph)
        forms = {"weights": Form(np.float32, (width, c))}
        if not few:
            most = graph.num_train * SCALE
            forms["gram"] = Form(np.int64, (width * (width + 1) // 2,), -most * SCALE, most * SCALE)
            forms["cross"] = Form(np.int64, (width, c), -most, most)
        check_forms(tensors, forms, owner)

    def restore(self, tensors: Tensors) -> FittedRidge | FittedDual:
        """See `Member`."""
        if "counts" in tensors:
            targets = np.asarray(tensors["weights"], dtype=np.float64)
            return FittedRidge(self, TargetSums.restore(tensors), targets, None)
        weights = np.asarray(tensors["weights"], dtype=np.float32)
        if "gram" not in tensors:
            return FittedDual(self.of_few(), weights, None)
        gram = np.asarray(tensors["gram"], dtype=np.int64)
        cross = np.asarray(tensors["cross"], dtype=np.int64)
        return FittedRidge(self, Sums(gram, cross), weights, None)

    def scored(
        self,
        ensemble: Ensemble,
        positions: Positions,
        weights: NDArray[Any],
        most: int | None = None,
    ) -> Evidence:
        """Return what weights say about some nodes, ``[len(positions), 1, num_classes]``.

        Args:
            ensemble: with the graph.
            positions: rows of the graph.
            weights: ``[width, num_classes]``.
            most: numbers that a block of rows may have; None: as many as usual.
        """
        graph = ensemble.graph
        out = np.empty((len(positions), 1, graph.num_classes))
        start = 0
        for block in blocks(graph.places_at(positions), len(weights), most):
            rows = self.rows(graph, block, ensemble.seed, learning=False)
            out[start : start + len(block), 0] = self.said(graph, rows, weights)
            start += len(block)
        return out

    def said(self, graph: Graph, rows: NDArray[Any], weights: NDArray[Any]) -> Evidence:
        """Return what weights make of rows; of targets in the graph's frame, NaN for nothing."""
        return (_scores if graph.label_kind.is_classes else _targets_said)(rows, weights)

    def _fitted(self, graph: Graph, sums: AnySums, judged: Judged) -> FittedRidge:
        return FittedRidge(self, sums, sums.solve(self.ridge, graph), judged)

    def _is_moved(self, before: Graph, graph: Graph) -> bool:
        """Tell whether all rows or sums are others: made in another frame, or for each target."""
        if graph.label_kind.is_classes:
            return False
        moved = self.asks_as_it_learns and not graph.label_frame.same(before.label_frame)
        return moved or is_partial(graph) != is_partial(before)

    def _judged(self, ensemble: Ensemble, sample: Ids) -> Judged:
        graph = ensemble.graph
        places = graph.places(sample)
        rows = self.rows(graph, places, ensemble.seed, learning=False)
        return Judged(sample, self._summed(ensemble, places), rows.astype(np.float32))

    def _summed(self, ensemble: Ensemble, places: Places) -> AnySums:
        graph, seed = ensemble.graph, ensemble.seed
        sums: Any = Sums.zeros(self.width(graph), graph.num_classes)
        labels: Any = _classes_at
        if not graph.label_kind.is_classes:
            shape = self.width(graph), graph.num_classes
            sums, labels = TargetSums.zeros(*shape, partial=is_partial(graph)), targets_at
        for block in blocks(places, self.width(graph)):
            rows = self.rows(graph, block, seed, learning=True)
            sums = sums.plus(rows, labels(graph, block))
        made: AnySums = sums
        return made

    def _before_and_after(
        self, change: Change, graph: Graph, nodes: Ids, moved: Ids, seed: int
    ) -> tuple[Learned, Learned]:
        """Rows and labels of these nodes; none where a graph doesn't train on one."""
        before = change.before.graph
        old, new = trained_among(before, nodes), trained_among(graph, nodes)
        rows = self.rows_before_and_after(change, old, graph, new, moved, seed)
        parts = ((before, old, rows[0]), (graph, new, rows[1]))
        if not graph.label_kind.is_classes:
            first, second = (spread_targets(*part, nodes) for part in parts)
            return first, second
        first, second = (_spread(part.table, places, some, nodes) for part, places, some in parts)
        return first, second


def _only(learned: Learned, nodes: Ids, some: Ids) -> Learned:
    """Rows and labels of the nodes, of which only some are there."""
    rows, labels = learned
    there = ranks(nodes, some) >= 0
    if labels.ndim == 2:
        return rows, np.where(there[:, None], labels, np.nan)
    return rows, np.where(there, labels, UNLABELLED)


def _is_dual(graph: Graph) -> bool:
    """Tell whether the regression is solved over nodes; one to targets never is."""
    return graph.label_kind.is_classes and few_labels(graph)


def _classes_at(graph: Graph, places: Places) -> NDArray[np.int64]:
    labels: NDArray[np.int64] = labels_at(graph.table, places)
    return labels


@dataclass(frozen=True, eq=False)
class Judged:
    """Sums and rows to judge the sampled nodes by; they save time and follow from the graph.

    Attributes:
        sample: sorted ids.
        sums: over their rows, as learned from.
        rows: of the same nodes, as asked about; float32 holds these whole numbers exactly.
    """

    sample: Ids
    sums: AnySums
    rows: NDArray[np.float32]

    def asked_again(self, sample: Ids, again: Ids, asked: Rows) -> NDArray[np.float32]:
        """The rows of another sample: of some of its nodes these ones, of all others the old."""
        if sample is self.sample:
            if len(again) == 0:
                return self.rows
            rows = self.rows.copy()
        else:
            known = ranks(sample, self.sample)
            rows = np.empty((len(sample), self.rows.shape[1]), dtype=np.float32)
            rows[known >= 0] = self.rows[known[known >= 0]]
        rows[ranks(again, sample)] = asked
        return rows


@dataclass(frozen=True, eq=False)
class FittedRidge:
    """The sums over the training nodes and the regression that follows from them.

    Attributes:
        rule: what it was fitted by.
        sums: over all training nodes.
        weights: float32 ``[width, num_classes]``; to targets float64, the mean of each last.
        judged: None after loading.
    """

    rule: RidgeMember
    sums: AnySums
    weights: NDArray[Any]
    judged: Judged | None = field(repr=False)

    @property
    def names(self) -> tuple[str, ...]:
        return (self.rule.name,)

    @property
    def tensors(self) -> Mapping[str, NDArray[np.generic]]:
        kept: dict[str, NDArray[np.generic]] = self.sums.tensors
        return kept | {"weights": self.weights}

    def evidence(self, ensemble: Ensemble, positions: Positions) -> Evidence:
        """See `FittedMember`."""
        return self.rule.scored(ensemble, positions, self.weights)

    def held_out(self, ensemble: Ensemble, sample: Ids) -> Evidence:
        """See `FittedMember`: by the regression without all sampled nodes."""
        judged = self.rule._judged(ensemble, sample) if self.judged is None else self.judged
        weights = self.sums.without(judged.sums).solve(self.rule.ridge, ensemble.graph)
        return self.rule.said(ensemble.graph, judged.rows, weights)[:, None]


def blocks(places: Places, width: int, most: int | None = None) -> Iterator[Places]:
    """Places whose rows are held at once; each row is the same in any block."""
    size = min(MAX_ROWS, max(1, (most or _MAX_NUMBERS) // width))
    for start in range(0, len(places), size):
        yield places[start : start + size]


@compiled
def _spread(table, places, some, nodes):  # type: ignore[no-untyped-def]
    """Rows and labels of all nodes, from those at the places of some of them; both ascend."""
    rows = np.zeros((len(nodes), some.shape[1]))
    labels = np.full(len(nodes), UNLABELLED, dtype=np.int64)
    at = 0
    for r in range(len(places)):
        while nodes[at] != node_at(table, places[r]):
            at += 1
        for u in range(some.shape[1]):
            rows[at, u] = some[r, u]
        labels[at] = label_at(table, places[r])
    return rows, labels


def _scores(rows: NDArray[np.floating], weights: NDArray[np.float32]) -> Evidence:
    """Return the sharpened regression, each row by itself in a fixed order."""
    # A power of two: products have the same bits.
    return _weighted_rows(rows, (weights * (SHARPNESS / SCALE)).astype(np.float64))


def _targets_said(rows: NDArray[np.floating], weights: NDArray[np.float64]) -> Evidence:
    """Return the regression in the graph's frame, each row by itself in a fixed order."""
    return _weighted_rows(rows, weights[:-1] / SCALE) + weights[-1]


def _weighted_rows(rows: NDArray[np.floating], weights: NDArray[np.float64]) -> Evidence:
    """Multiply rows by weights, each row by itself in a fixed order."""
    width, c = weights.shape
    wide = np.zeros((width, -(-c // HALF_LANES) * HALF_LANES))
    wide[:, :c] = weights
    found: Evidence = _weighted(rows, wide)
    return found[:, :c]


@compiled
def _weighted(rows, weights):  # type: ignore[no-untyped-def]
    """Multiply rows by weights, four rows side by side; the last ones again, where they are fewer.

    Each output is one sum over the columns in order, without fused multiplications, so a row has
    the same bits beside any other rows. Classes lie in lanes: no lane is ever added to another.
    """
    m, (width, c) = len(rows), weights.shape
    out, four = np.empty((m, c)), np.empty((4, width))
    for start in range(0, m, 4):
        for v in range(4):
            row = rows[min(start + v, m - 1)]
            for u in range(width):
                four[v, u] = row[u]
        at = 0
        while at + LANES <= c:
            _weighted_four(four, weights, at, out, start, ONE)
            at += LANES
        if at < c:
            _weighted_four(four, weights, at, out, start, HALF)
    return out


@compiled
def _weighted_four(four, weights, at, out, start, tile):  # type: ignore[no-untyped-def]
    (width, c), last = weights.shape, len(out) - 1
    p = q = s = t = zeros(out, tile)
    for u in range(width):
        weight = load(weights, u * c + at, tile)
        p = p + weight * four[0, u]
        q = q + weight * four[1, u]
        s = s + weight * four[2, u]
        t = t + weight * four[3, u]
    store(out, start * c + at, p)
    store(out, min(start + 1, last) * c + at, q)
    store(out, min(start + 2, last) * c + at, s)
    store(out, min(start + 3, last) * c + at, t)
