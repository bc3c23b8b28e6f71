"""The global expert: a member that sees the whole training graph and still forgets exactly.

It is ridge regression from smoothed features H to one-hot labels Y. All that it keeps of the
training nodes are two sums over them, H'H and H'Y. A request changes the rows of H within two hops
of what it takes: their old products are subtracted, their new ones added, and the regression is
solved again. The rows are whole numbers (see `smoothing`), so the sums are exact: updated and
computed afresh they are the same bits.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from grapheraser.aggregation.base import Change, Ensemble
from grapheraser.aggregation.expert.sketch import MOST_COLUMNS, Sketch
from grapheraser.aggregation.expert.smoothing import SCALE, FirstSteps, sees_any, smoothed_rows
from grapheraser.checks import real, whole
from grapheraser.graph import TRAIN, UNLABELLED, Graph, changed_feature_rows
from grapheraser.kernels.cholesky import solve_positive
from grapheraser.kernels.compiled import compiled

# Products are at most 2**34; so many of them add up exactly in float64, which is what a BLAS is
# fast at. Beyond that, in int64.
_BLOCK = 2**18
# Rows are made and used in blocks of so many numbers, half a gigabyte: all of a graph of eighty
# thousand nodes at 768 columns, a quarter of it at 3,072.
_MOST_NUMBERS = 2**26

Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Expert:
    """The global expert before it has seen anything.

    Attributes:
        columns: features are projected to so many columns where there are more.
        apart: project a node's own features by themselves, so that they can be told from those
            around it; worth it where there are columns to spare.
        ridge: added to the diagonal of H'H; makes the regression solvable with fewer nodes than
            columns.
        sharpness: the softmax is taken of so many times the regression's output (the inverse of a
            temperature).
    """

    columns: int = 768
    apart: bool = False
    ridge: float = 1.0
    sharpness: float = 8.0

    def __post_init__(self) -> None:
        whole("columns", "Expert", self.columns, 1, MOST_COLUMNS)
        for name in ("ridge", "sharpness"):
            real(name, "Expert", getattr(self, name), above=0)

    @classmethod
    def wide(cls) -> Expert:
        """For wide features of which single columns matter: much better there, slower to forget."""
        return cls(columns=3072, apart=True)

    def fit(self, ensemble: Ensemble) -> FittedExpert:
        """Sum over all training nodes."""
        sketch = self.sketch(ensemble)
        graph = ensemble.graph
        gram = np.zeros((sketch.width, sketch.width), dtype=np.int64)
        cross = np.zeros((sketch.width, graph.num_classes), dtype=np.int64)
        for block in _blocks(_trained(graph), sketch.width):
            rows, _ = smoothed_rows(sketch, graph, block, _visible(graph), ensemble.seed)
            gram += (rows.T @ rows).astype(np.int64)
            cross += _by_class(rows, graph.y[block], graph.num_classes)
        return self._solve(gram, cross)

    def refit(self, fitted: FittedExpert, ensemble: Ensemble, change: Change) -> FittedExpert:
        """Exactly what `fit` gives, from the sums before and the rows that changed."""
        sketch, before, graph = self.sketch(ensemble), change.before.graph, ensemble.graph
        seed = ensemble.seed
        # The first steps of most nodes around are what they were.
        moved = _other_first_steps(before, graph, change.touched)
        ids = _changed_rows(before, graph, moved, seed)
        new, new_labels, steps = _rows_of(sketch, graph, ids, seed)
        old, labels, _ = _rows_of(sketch, before, ids, seed, steps.without(moved))
        labels = np.where(new_labels == UNLABELLED, labels, new_labels)
        difference, total = new - old, new + old
        kept = np.flatnonzero(difference.any(axis=1))
        difference, total = difference[kept], total[kept]
        gram = fitted.gram
        for start in range(0, len(kept), _BLOCK):
            # (n'n - o'o) from one product: d's + s'd with d = n - o and s = n + o is twice that.
            half = difference[start : start + _BLOCK].T @ total[start : start + _BLOCK]
            gram = _plus_symmetric(gram, half)
        cross = fitted.cross + _by_class(difference, labels[kept], graph.num_classes)
        return self._solve(gram, cross)

    def restore(self, tensors: Mapping[str, NDArray[np.generic]]) -> FittedExpert:
        """From what `FittedExpert.tensors` gave."""
        lower = np.asarray(tensors["gram"], dtype=np.int64)
        cross = np.asarray(tensors["cross"], dtype=np.int64)
        weights = np.asarray(tensors["weights"], dtype=np.float32)
        gram = np.zeros((len(weights), len(weights)), dtype=np.int64)
        gram[np.tril_indices(len(weights))] = lower
        return FittedExpert(self, gram, cross, weights)

    def sketch(self, ensemble: Ensemble) -> Sketch:
        """The projection of the features; a function of the run's seed."""
        features = ensemble.graph.num_features
        return Sketch.of(features, self.columns, ensemble.seed, apart=self.apart)

    def _solve(self, gram: Integers, cross: Integers) -> FittedExpert:
        left = gram / SCALE**2
        left[np.diag_indices(len(gram))] += self.ridge
        weights = solve_positive(left, cross / SCALE).astype(np.float32)
        return FittedExpert(self, gram, cross, weights)


@dataclass(frozen=True, eq=False)
class FittedExpert:
    """The sums over the training nodes and the regression that follows from them.

    Attributes:
        rule: what it was fitted by.
        gram: H'H, int64 ``[width, width]``; only its lower half counts.
        cross: H'Y, int64 ``[width, num_classes]``.
        weights: float32 ``[width, num_classes]``.
    """

    rule: Expert
    gram: Integers
    cross: Integers
    weights: NDArray[np.float32]

    @cached_property
    def tensors(self) -> Mapping[str, NDArray[np.generic]]:
        lower = self.gram[np.tril_indices(len(self.gram))]
        return {"gram": lower, "cross": self.cross, "weights": self.weights}

    def predict_proba(
        self, ensemble: Ensemble, positions: NDArray[np.int64]
    ) -> NDArray[np.float32]:
        """Posteriors ``[len(positions), num_classes]``, on the whole graph, row by row."""
        sketch, graph = self.rule.sketch(ensemble), ensemble.graph
        everywhere = np.ones(graph.num_nodes, dtype=bool)
        wanted, back = np.unique(np.asarray(positions, dtype=np.int64), return_inverse=True)
        out = np.empty((len(wanted), graph.num_classes), dtype=np.float32)
        start = 0
        for block in _blocks(wanted, sketch.width):
            rows, _ = smoothed_rows(sketch, graph, block, everywhere, ensemble.seed)
            answers = _posteriors(rows, self.weights, self.rule.sharpness)
            out[start : start + len(block)] = answers
            start += len(block)
        return out[back]


def _blocks(positions: NDArray[np.int64], width: int) -> Iterator[NDArray[np.int64]]:
    """Positions whose rows are held at once; each row is the same in any block."""
    size = min(_BLOCK, max(1, _MOST_NUMBERS // width))
    for start in range(0, len(positions), size):
        yield positions[start : start + size]


def _trained(graph: Graph) -> NDArray[np.int64]:
    return np.flatnonzero(_visible(graph) & (graph.y != UNLABELLED))


def _visible(graph: Graph) -> NDArray[np.bool_]:
    """Nodes that the expert may learn from: like the shards, it never sees a test node."""
    return graph.role == TRAIN


def _rows_of(
    sketch: Sketch,
    graph: Graph,
    ids: NDArray[np.int64],
    seed: int,
    known: FirstSteps | None = None,
) -> tuple[NDArray[np.float64], NDArray[np.int64], FirstSteps]:
    """Rows and labels of these nodes; 0 and unlabelled where the graph doesn't train on one."""
    rows = np.zeros((len(ids), sketch.width))
    labels = np.full(len(ids), UNLABELLED)
    there = np.flatnonzero(graph.contains(ids))
    positions = graph.positions(ids[there])
    trained = (graph.role[positions] == TRAIN) & (graph.y[positions] != UNLABELLED)
    there, positions = there[trained], positions[trained]
    rows[there], steps = smoothed_rows(sketch, graph, positions, _visible(graph), seed, known)
    labels[there] = graph.y[positions]
    return rows, labels, steps


def _other_first_steps(
    before: Graph, graph: Graph, touched: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Sorted ids of the nodes left whose mean over one step may differ.

    Those with other neighbours, and those next to a node with other features.
    """
    rewritten = touched[changed_feature_rows(before, graph, touched)]
    around = graph.ids[graph.within_hops(graph.positions(rewritten), 1)]
    return np.union1d(touched, around)


def _changed_rows(
    before: Graph, graph: Graph, moved: NDArray[np.int64], seed: int
) -> NDArray[np.int64]:
    """Sorted ids of the training nodes whose row differs, or that are gone or new.

    A row is made of the first steps of the node and of neighbours that count. Whoever was reached
    through a node that is gone is among the moved ones itself.
    """
    gone = before.train_nodes[~graph.contains(before.train_nodes)]
    at = graph.positions(moved)
    marked = np.zeros(graph.num_nodes, dtype=bool)
    marked[at] = True
    near = graph.within_hops(at, 1)
    near = near[graph.role[near] == TRAIN]
    stale = near[sees_any(graph, near, _visible(graph), seed, marked)]
    return np.union1d(graph.ids[stale], gone)


def _by_class(rows: NDArray[np.float64], labels: NDArray[np.int64], num_classes: int) -> Integers:
    """Sums of the rows of each class, ``[width, num_classes]``."""
    sums = np.zeros((num_classes, rows.shape[1]), dtype=np.int64)
    for label in range(num_classes):
        sums[label] = rows[labels == label].astype(np.int64).sum(axis=0)
    return np.ascontiguousarray(sums.T)


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
def _posteriors(
    rows: NDArray[np.float64], weights: NDArray[np.float32], sharpness: float
) -> NDArray[np.float32]:
    """Softmax of the sharpened regression, each row by itself."""
    out = np.empty((rows.shape[0], weights.shape[1]), dtype=np.float32)
    scores = np.zeros(weights.shape[1])
    for r in range(rows.shape[0]):
        scores[:] = 0.0
        for u in range(rows.shape[1]):
            value = rows[r, u] / SCALE
            if value != 0.0:
                for c in range(weights.shape[1]):
                    scores[c] += value * weights[u, c]
        best = scores.max()
        total = 0.0
        for c in range(weights.shape[1]):
            scores[c] = np.exp(sharpness * (scores[c] - best))
            total += scores[c]
        for c in range(weights.shape[1]):
            out[r, c] = scores[c] / total
    return out
