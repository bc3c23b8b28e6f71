"""Ridge regression from rows of whole numbers to one-hot labels, over all training nodes.

All that it keeps of the training nodes are two sums over their rows H: H'H and H'Y. A request takes
the old products of the rows that it changes out of the sums and puts the new ones in, and solves
the regression anew. Rows are whole numbers, so the sums are exact: changed or computed afresh, they
have the same bits.

To judge the sampled nodes held out, the regression is solved once more without all of them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from grapheraser.aggregation.base import Change, Ensemble
from grapheraser.aggregation.members.base import (
    Evidence,
    FittedMember,
    Ids,
    Places,
    Positions,
    labelled_places,
    trained_among,
)
from grapheraser.graph import UNLABELLED, Graph
from grapheraser.kernels.cholesky import solve_positive
from grapheraser.kernels.compiled import compiled
from grapheraser.kernels.paged import labels_at, nodes_at

SCALE = 2.0**16
# Products are at most 2**34; so many of them add up exactly in float64, which is what a BLAS is
# fast at. Beyond that, in int64.
_BLOCK = 2**18
# Rows are made and used in blocks of so many numbers, half a gigabyte.
_MOST_NUMBERS = 2**26
# Evidence is so many times the regression's output.
_SHARPNESS = 8.0

Rows = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Sums:
    """H'H and H'Y.

    Attributes:
        gram: int64 ``[width, width]``; only its lower half counts.
        cross: int64 ``[width, num_classes]``.
    """

    gram: Integers
    cross: Integers

    @classmethod
    def zeros(cls, width: int, num_classes: int) -> Sums:
        """Over no rows at all."""
        gram = np.zeros((width, width), dtype=np.int64)
        return cls(gram, np.zeros((width, num_classes), dtype=np.int64))

    def plus(self, rows: Rows, labels: NDArray[np.int64]) -> Sums:
        """With these rows."""
        gram = self.gram + (rows.T @ rows).astype(np.int64)
        return Sums(gram, self.cross + _by_class(rows, labels, self.cross.shape[1]))

    def replaced(
        self, old: Rows, old_labels: NDArray[np.int64], new: Rows, new_labels: NDArray[np.int64]
    ) -> Sums:
        """With new rows in the place of old ones; a row of zeros stands for none."""
        classes = self.cross.shape[1]
        cross = self.cross - _by_class(old, old_labels, classes)
        cross += _by_class(new, new_labels, classes)
        difference, total = new - old, new + old
        moved = np.flatnonzero(difference.any(axis=1))
        difference, total = difference[moved], total[moved]
        gram = self.gram
        for start in range(0, len(moved), _BLOCK):
            # (n'n - o'o) from one product: d's + s'd with d = n - o and s = n + o is twice that.
            half = difference[start : start + _BLOCK].T @ total[start : start + _BLOCK]
            gram = _plus_symmetric(gram, half)
        return Sums(gram, cross)

    def without(self, other: Sums) -> Sums:
        """Without the rows of another sum."""
        return Sums(self.gram - other.gram, self.cross - other.cross)

    def solve(self, ridge: float) -> NDArray[np.float32]:
        """The regression's weights ``[width, num_classes]``."""
        left = self.gram / SCALE**2
        left[np.diag_indices(len(left))] += ridge
        return solve_positive(left, self.cross / SCALE).astype(np.float32)


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

    @abstractmethod
    def width(self, graph: Graph) -> int:
        """Number of columns; follows from the graph's schema alone."""

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
    ) -> Ids:
        """Sorted ids of the nodes left whose row may not be what it was.

        Args:
            change: what happened.
            graph: after it.
            seed: of the run.
            learning: as for `rows`.
            among: look at these nodes alone.
        """

    def fit(self, ensemble: Ensemble, sample: Ids) -> FittedRidge:
        """See `Member`."""
        sums = self._summed(ensemble, labelled_places(ensemble.graph))
        return self._fitted(sums, self._judged(ensemble, sample))

    def refit(
        self, fitted: FittedMember, ensemble: Ensemble, change: Change, sample: Ids
    ) -> FittedRidge:
        """See `Member`."""
        assert isinstance(fitted, FittedRidge)
        before, graph, seed = change.before.graph, ensemble.graph, ensemble.seed
        judged = fitted.judged
        others = np.zeros(0, dtype=np.int64) if judged is None else judged.sample
        stale = self.stale(change, graph, seed, learning=True)
        nodes = np.union1d(change.gone, stale)
        nodes = np.union1d(nodes, np.setxor1d(others, sample, assume_unique=True))
        old, old_labels = self._at(before, nodes, seed)
        new, new_labels = self._at(graph, nodes, seed)
        sums = fitted.sums.replaced(old, old_labels, new, new_labels)
        if judged is None:
            return self._fitted(sums, self._judged(ensemble, sample))
        was, now = np.isin(nodes, others)[:, None], np.isin(nodes, sample)[:, None]
        sampled = judged.sums.replaced(old * was, old_labels, new * now, new_labels)
        stale = self.stale(change, graph, seed, learning=False, among=sample)
        again = ~np.isin(sample, others) | np.isin(sample, stale)
        rows = np.empty((len(sample), self.width(graph)))
        rows[~again] = judged.rows[np.searchsorted(others, sample[~again])]
        rows[again] = self.rows(graph, graph.places(sample[again]), seed, learning=False)
        return self._fitted(sums, Judged(sample, sampled, rows))

    def restore(self, tensors: Mapping[str, NDArray[np.generic]]) -> FittedRidge:
        """See `Member`."""
        lower = np.asarray(tensors["gram"], dtype=np.int64)
        cross = np.asarray(tensors["cross"], dtype=np.int64)
        weights = np.asarray(tensors["weights"], dtype=np.float32)
        gram = np.zeros((len(weights), len(weights)), dtype=np.int64)
        gram[np.tril_indices(len(weights))] = lower
        return FittedRidge(self, Sums(gram, cross), weights, None)

    def _fitted(self, sums: Sums, judged: Judged) -> FittedRidge:
        return FittedRidge(self, sums, sums.solve(self.ridge), judged)

    def _judged(self, ensemble: Ensemble, sample: Ids) -> Judged:
        graph = ensemble.graph
        places = graph.places(sample)
        rows = self.rows(graph, places, ensemble.seed, learning=False)
        return Judged(sample, self._summed(ensemble, places), rows)

    def _summed(self, ensemble: Ensemble, places: Places) -> Sums:
        graph, seed = ensemble.graph, ensemble.seed
        sums = Sums.zeros(self.width(graph), graph.num_classes)
        for block in blocks(places, self.width(graph)):
            rows = self.rows(graph, block, seed, learning=True)
            sums = sums.plus(rows, labels_at(graph.table, block))
        return sums

    def _at(self, graph: Graph, nodes: Ids, seed: int) -> tuple[Rows, NDArray[np.int64]]:
        """Rows and labels of these nodes; 0 and unlabelled where the graph doesn't train on one."""
        rows = np.zeros((len(nodes), self.width(graph)))
        labels = np.full(len(nodes), UNLABELLED)
        trained = trained_among(graph, nodes)
        at = np.searchsorted(nodes, nodes_at(graph.table, trained))
        rows[at] = self.rows(graph, trained, seed, learning=True)
        labels[at] = labels_at(graph.table, trained)
        return rows, labels


@dataclass(frozen=True, eq=False)
class Judged:
    """What judging the sampled nodes takes; it saves time and follows from the graph.

    Attributes:
        sample: sorted ids.
        sums: over their rows, as learned from.
        rows: of the same nodes, as asked about.
    """

    sample: Ids
    sums: Sums
    rows: Rows


@dataclass(frozen=True, eq=False)
class FittedRidge:
    """The sums over the training nodes and the regression that follows from them.

    Attributes:
        rule: what it was fitted by.
        sums: over all training nodes.
        weights: float32 ``[width, num_classes]``.
        judged: None after loading.
    """

    rule: RidgeMember
    sums: Sums
    weights: NDArray[np.float32]
    judged: Judged | None = field(repr=False)

    @property
    def names(self) -> tuple[str, ...]:
        return (self.rule.name,)

    @cached_property
    def tensors(self) -> Mapping[str, NDArray[np.generic]]:
        lower = self.sums.gram[np.tril_indices(len(self.weights))]
        return {"gram": lower, "cross": self.sums.cross, "weights": self.weights}

    def evidence(self, ensemble: Ensemble, positions: Positions) -> Evidence:
        """See `FittedMember`."""
        graph = ensemble.graph
        out = np.empty((len(positions), 1, graph.num_classes))
        start = 0
        for block in blocks(graph.places_at(positions), len(self.weights)):
            rows = self.rule.rows(graph, block, ensemble.seed, learning=False)
            out[start : start + len(block), 0] = _scores(rows, self.weights)
            start += len(block)
        return out

    def held_out(self, ensemble: Ensemble, sample: Ids) -> Evidence:
        """See `FittedMember`: by the regression without all sampled nodes."""
        judged = self.rule._judged(ensemble, sample) if self.judged is None else self.judged
        weights = self.sums.without(judged.sums).solve(self.rule.ridge)
        return _scores(judged.rows, weights)[:, None]


def blocks(places: Places, width: int) -> Iterator[Places]:
    """Places whose rows are held at once; each row is the same in any block."""
    size = min(_BLOCK, max(1, _MOST_NUMBERS // width))
    for start in range(0, len(places), size):
        yield places[start : start + size]


def _by_class(rows: Rows, labels: NDArray[np.int64], num_classes: int) -> Integers:
    """Sums of the rows of each class ``[width, num_classes]``."""
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
def _plus_symmetric(gram: Integers, half: NDArray[np.float64]) -> Integers:
    """The lower half of ``gram + (half + half') / 2``, tile by tile for the cache's sake."""
    n, tile = len(gram), 32
    out = np.zeros_like(gram)
    for top in range(0, n, tile):
        for left in range(0, top + 1, tile):
            for i in range(top, min(top + tile, n)):
                for j in range(left, min(left + tile, i + 1)):
                    out[i, j] = gram[i, j] + np.int64((half[i, j] + half[j, i]) * 0.5)
    return out


@compiled
def _scores(rows, weights):  # type: ignore[no-untyped-def]
    """The sharpened regression, each row by itself in a fixed order."""
    out = np.zeros((rows.shape[0], weights.shape[1]))
    for r in range(rows.shape[0]):
        scores = out[r]
        for u in range(rows.shape[1]):
            value = _SHARPNESS * rows[r, u] / SCALE
            if value != 0.0:
                for c in range(weights.shape[1]):
                    scores[c] += value * weights[u, c]
    return out
