"""Ridge regression where labels are few: solved over the labelled nodes instead of the columns.

With rows H of m nodes, ``W = H' (H H' + ridge)^-1 Y`` are the weights that `ridge` finds from H'H,
at the cost of m instead of the columns. So features need not be hashed. Rows are whole numbers, so
products of two rows are exact: those of rows that a change left alone are kept, and have the bits
of a fresh fit.

Few labels can't spare a sample. So each node is judged by the regression without it alone, which
follows from the inverse: ``y - a / d``, with a the node's row of ``(H H' + ridge)^-1 Y`` and d its
entry on the inverse's diagonal.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from grapheraser.aggregation.base import Change, Ensemble
from grapheraser.aggregation.members.base import (
    SCALE,
    Evidence,
    Ids,
    Places,
    Positions,
    labelled_places,
    trained_among,
)
from grapheraser.aggregation.members.walks import Stale
from grapheraser.graph import Graph
from grapheraser.kernels.cholesky import solve_positive
from grapheraser.kernels.compiled import compiled
from grapheraser.kernels.paged import nodes_at
from grapheraser.kernels.sets import ranks

# Evidence is so many times the regression's output.
SHARPNESS = 8.0
# Rows without hashing are wide: they are made and used in blocks of so many numbers.
MAX_NUMBERS = 2**19


class Rule(Protocol):
    """A regression, as far as its rows are concerned; see `ridge.RidgeMember`."""

    @property
    def name(self) -> str: ...
    @property
    def ridge(self) -> float: ...
    def rows(
        self, graph: Graph, places: Places, seed: int, *, learning: bool
    ) -> NDArray[np.float64]: ...
    def stale(self, change: Change, graph: Graph, seed: int, *, learning: bool) -> Stale: ...
    def width(self, graph: Graph) -> int: ...
    def scored(
        self, ensemble: Ensemble, positions: Positions, weights: NDArray[np.float32], most: int
    ) -> Evidence: ...


@dataclass(frozen=True, eq=False)
class Kernel:
    """Rows and their products; they save time and follow from the graph.

    Attributes:
        nodes: sorted ids of the labelled training nodes.
        rows: of them; float32 holds these whole numbers exactly.
        products: float64 ``[m, m]``, of every two rows; exact.
    """

    nodes: Ids
    rows: NDArray[np.float32]
    products: NDArray[np.float64]

    @classmethod
    def of(cls, rule: Rule, graph: Graph, seed: int) -> Kernel:
        """From all labelled nodes of a graph."""
        none = np.zeros(0, dtype=np.int64)
        empty = cls(none, np.zeros((0, rule.width(graph)), np.float32), np.zeros((0, 0)))
        return empty._with(rule, graph, seed, nodes_at(graph.table, labelled_places(graph)), none)

    def changed(self, rule: Rule, graph: Graph, change: Change, seed: int) -> Kernel:
        """Return what `of` gives after a change, with the rows that it moved made anew."""
        kept = self.nodes[ranks(self.nodes, change.changed) < 0]
        new = nodes_at(graph.table, trained_among(graph, change.changed))
        stale = rule.stale(change, graph, seed, learning=True).nodes
        return self._with(rule, graph, seed, np.union1d(kept, new), stale)

    def _with(self, rule: Rule, graph: Graph, seed: int, nodes: Ids, stale: Ids) -> Kernel:
        known = ranks(nodes, self.nodes)
        known[ranks(nodes, stale) >= 0] = -1
        old, new = np.flatnonzero(known >= 0), np.flatnonzero(known < 0)
        rows = np.empty((len(nodes), self.rows.shape[1]), dtype=np.float32)
        rows[old] = self.rows[known[old]]
        step = max(1, MAX_NUMBERS // rows.shape[1])
        for start in range(0, len(new), step):
            at = new[start : start + step]
            rows[at] = rule.rows(graph, graph.places(nodes[at]), seed, learning=True)
        products = np.empty((len(nodes), len(nodes)))
        products[np.ix_(old, old)] = self.products[np.ix_(known[old], known[old])]
        wide = rows.astype(np.float64)
        products[new] = wide[new] @ wide.T
        products[:, new] = products[new].T
        return Kernel(nodes, rows, products)


@dataclass(frozen=True, eq=False)
class Judged:
    """The labelled nodes, and what the regression without each says about it.

    Attributes:
        kernel: what it was solved from.
        answers: float64 ``[m, num_classes]``.
    """

    kernel: Kernel
    answers: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class FittedDual:
    """A regression on few labelled nodes.

    Attributes:
        rule: what it was fitted by.
        weights: float32 ``[width, num_classes]``.
        judged: None after loading.
    """

    rule: Rule
    weights: NDArray[np.float32]
    judged: Judged | None = field(repr=False)

    @classmethod
    def of(cls, rule: Rule, ensemble: Ensemble) -> FittedDual:
        """Look at all labelled nodes."""
        kernel = Kernel.of(rule, ensemble.graph, ensemble.seed)
        return cls._solved(rule, kernel, ensemble.graph)

    def changed(self, ensemble: Ensemble, change: Change) -> FittedDual:
        """Exactly what `of` would return, from what the change touched."""
        if self.judged is None:
            return FittedDual.of(self.rule, ensemble)
        kernel = self.judged.kernel.changed(self.rule, ensemble.graph, change, ensemble.seed)
        return self._solved(self.rule, kernel, ensemble.graph)

    @classmethod
    def _solved(cls, rule: Rule, kernel: Kernel, graph: Graph) -> FittedDual:
        m, c = len(kernel.nodes), graph.num_classes
        labels = graph.labels(kernel.nodes)
        inverse = solve_positive(kernel.products / SCALE**2 + rule.ridge * np.eye(m), np.eye(m))
        shares = _by_class(inverse, labels, c)
        answers = np.eye(c)[labels] - shares / np.diagonal(inverse)[:, None]
        weights = _weights(kernel.rows, shares / SCALE).astype(np.float32)
        return cls(rule, weights, Judged(kernel, answers))

    @property
    def names(self) -> tuple[str, ...]:
        return (self.rule.name,)

    @property
    def tensors(self) -> Mapping[str, NDArray[np.generic]]:
        return {"weights": self.weights}

    def evidence(self, ensemble: Ensemble, positions: Positions) -> Evidence:
        """See `FittedMember`."""
        return self.rule.scored(ensemble, positions, self.weights, MAX_NUMBERS)

    def held_out(self, ensemble: Ensemble, sample: Ids) -> Evidence:
        """See `FittedMember`: by the regression without the node."""
        judged = self.judged or FittedDual.of(self.rule, ensemble).judged
        assert judged is not None
        answers = judged.answers[ranks(sample, judged.kernel.nodes)]
        return (SHARPNESS * answers)[:, None]


@compiled
def _by_class(inverse, labels, num_classes):  # type: ignore[no-untyped-def]
    """Multiply the inverse by one-hot labels, each sum in the order of the nodes.

    Not by a BLAS: these numbers are no whole ones, and another order would round differently.
    """
    m = len(labels)
    out = np.zeros((m, num_classes))
    for i in range(m):
        for j in range(m):
            out[i, labels[j]] += inverse[i, j]
    return out


@compiled
def _weights(rows, shares):  # type: ignore[no-untyped-def]
    """Multiply transposed rows by shares, each sum in the order of the nodes; see `_by_class`."""
    out = np.zeros((rows.shape[1], shares.shape[1]))
    for i in range(len(rows)):
        for u in range(rows.shape[1]):
            value = np.float64(rows[i, u])
            if value != 0.0:
                for k in range(shares.shape[1]):
                    out[u, k] += value * shares[i, k]
    return out
