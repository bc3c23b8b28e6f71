"""The nearest prior art: unlearning of linear models on features that were smoothed over two hops.

- `GraphEditor`, after Cong and Mahdavi (2022): ridge regression in closed form. A request takes the
  rows that it changes out of the inverse and puts the new ones in, by Woodbury's identity.
- `Projector`, after Cong and Mahdavi (2023): softmax regression from weights of zero, which lie in
  the span of the features. A request projects them onto the span of the features that are left.
- `Certified` (CGU), after Chien, Pan and Milenkovic (2022, 2023): a logistic regression for each
  class with a random linear term. A request is one step of Newton's method; what the step may leave
  behind is added up, and beyond the budget of the certificate everything is trained again.
- `ScaleGun`, after Yi and Wei (2025): the same with features that are passed on where they are
  large enough, so that on large graphs a request changes few of them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.sparse.linalg import LinearOperator, cg, lsmr, svds
from scipy.special import expit, log_softmax, softmax

from grapheraser.graph import UNLABELLED, Edges, Graph, Nodes
from grapheraser.seeding import generator
from grapheraser_lab.rivals.gcn import View, looped

Matrix = NDArray[np.float64]
_PASSED = 1e-7  # of the mean column's length: less is not passed on (ScaleGUN's code)
_LEAST = 1e-6  # a ridge regression's share of a class, which may be negative, is at least this


@dataclass(frozen=True)
class LinearSettings:
    """Weight of the squared norm; for `Certified` also the noise and what is promised."""

    penalty: float = 0.01
    noise: float = 0.1
    epsilon: float = 1.0
    delta: float = 1e-4

    @property
    def budget(self) -> float:
        """How long a gradient may be, for one class, where the promise still holds."""
        return self.noise * self.epsilon / float(np.sqrt(2 * np.log(1.5 / self.delta)))


@dataclass(frozen=True, eq=False)
class Rows:
    """Smoothed features of nodes ``[m, d]`` with their ids, and their classes in columns of 0/1."""

    ids: NDArray[np.int64]
    x: sp.csr_array
    y: Matrix


def smoothed(graph: Graph, *, walk: bool) -> sp.csr_array:
    """Features of all nodes after two hops ``[n, d]``.

    By random walks on rows of length 1, as CGU's bounds need; else normalised on both sides as in
    the GCN, with a column of ones.
    """
    adjacency, x = looped(graph), graph.x.astype(np.float64)
    degree = np.asarray(adjacency.sum(axis=1)).ravel()
    if walk:
        length = np.sqrt(np.asarray(x.multiply(x).sum(axis=1)).ravel())
        x = sp.diags_array(1 / np.maximum(length, _LEAST)) @ x
        step = sp.diags_array(1 / degree) @ adjacency
        return sp.csr_array(step @ (step @ x))
    scale = sp.diags_array(1 / np.sqrt(degree))
    step = scale @ adjacency @ scale
    return _with_ones(step @ (step @ x))


def _with_ones(x: sp.csr_array) -> sp.csr_array:
    ones = sp.csr_array(np.ones((x.shape[0], 1)))
    return sp.csr_array(sp.hstack([x, ones]))


@dataclass(frozen=True, eq=False)
class Linear(ABC):
    """A linear model, and what a request does to it."""

    graph: Graph
    rows: Rows
    weights: Matrix
    seed: int
    settings: LinearSettings = field(default_factory=LinearSettings)

    walk: ClassVar[bool] = False

    @classmethod
    def fit(cls, graph: Graph, seed: int, settings: LinearSettings | None = None) -> Self:
        """Train on the training graph."""
        rows, given = cls.read(graph), settings or LinearSettings()
        empty = np.zeros((rows.x.shape[1], graph.num_classes))
        return cls(graph, rows, empty, seed, given).trained()

    @classmethod
    def features(cls, graph: Graph) -> sp.csr_array:
        """Return what the model sees of every node ``[n, d]``."""
        return smoothed(graph, walk=cls.walk)

    @classmethod
    def read(cls, graph: Graph) -> Rows:
        """Return the rows of the training nodes that have a class."""
        training = graph.training_graph
        known = np.flatnonzero(training.y != UNLABELLED)
        classes = np.eye(graph.num_classes)[np.asarray(training.y)[known]]
        return Rows(training.ids[known], cls.features(training)[known], classes)

    @abstractmethod
    def trained(self) -> Self:
        """Return this model, trained on its rows from nothing."""

    @abstractmethod
    def changed(self, rest: Rows, gone: NDArray[np.int64], new: NDArray[np.int64]) -> Self:
        """Return this model with the rest in place of its rows; some went, some are new."""

    def forget(self, request: Nodes | Edges) -> Self:
        graph = self.graph.without(request)
        rest = self.read(graph)
        gone = np.flatnonzero(~np.isin(self.rows.ids, rest.ids))
        kept = np.setdiff1d(np.arange(len(self.rows.ids)), gone)
        apart = abs(self.rows.x[kept] - rest.x).sum(axis=1)
        moved = np.flatnonzero(np.asarray(apart).ravel())
        return replace(self, graph=graph).changed(rest, np.union1d(gone, kept[moved]), moved)

    def retrained(self) -> Self:
        return replace(self, rows=self.read(self.graph)).trained()

    def answers(self, view: View, nodes: NDArray[np.int64]) -> NDArray[np.float32]:
        x = self.features(view.graph)[view.graph.positions(nodes)]
        shares = self.shares(np.asarray(x @ self.weights))
        return (shares / shares.sum(axis=1, keepdims=True)).astype(np.float32)

    def shares(self, scores: Matrix) -> Matrix:
        """Return what each class gets of a node's posterior, up to a factor ``[n, c]``."""
        found: Matrix = softmax(scores, axis=1)
        return found

    def tensors(self) -> Mapping[str, NDArray[Any]]:
        return {"weights": self.weights}


@dataclass(frozen=True, eq=False)
class GraphEditor(Linear):
    """Ridge regression with its inverse ``[d, d]`` and ``X' Y``."""

    inverse: Matrix = field(default_factory=lambda: np.zeros((0, 0)))
    moments: Matrix = field(default_factory=lambda: np.zeros((0, 0)))

    def trained(self) -> Self:
        x = self.rows.x
        gram = np.asarray((x.T @ x).todense()) + self.settings.penalty * np.eye(x.shape[1])
        inverse: Matrix = np.asarray(np.linalg.inv(gram), dtype=np.float64)
        moments = np.asarray(x.T @ self.rows.y)
        return replace(self, inverse=inverse, moments=moments, weights=inverse @ moments)

    def changed(self, rest: Rows, gone: NDArray[np.int64], new: NDArray[np.int64]) -> Self:
        here = replace(self, rows=rest)
        if len(gone) + len(new) >= len(self.inverse):  # solving anew is the shorter way
            return here.trained()
        old, fresh = self.rows, rest
        rows = sp.csr_array(sp.vstack([old.x[gone], fresh.x[new]]))
        sign = np.concatenate([-np.ones(len(gone)), np.ones(len(new))])
        moments = self.moments + rows.T @ (
            sign[:, None] * np.concatenate([old.y[gone], fresh.y[new]])
        )
        reach = rows @ self.inverse  # U M, and M is symmetric
        core = np.diag(sign) + reach @ rows.T.toarray()
        inverse = self.inverse - reach.T @ np.linalg.solve(core, reach)
        return replace(here, inverse=inverse, moments=moments, weights=inverse @ moments)

    def shares(self, scores: Matrix) -> Matrix:
        return np.maximum(scores, _LEAST)


@dataclass(frozen=True, eq=False)
class Projector(Linear):
    """Softmax regression, projected. Edges carry no features of their own: weights stay."""

    def trained(self) -> Self:
        x, y, m = self.rows.x, self.rows.y, len(self.rows.ids)

        def loss(w: Matrix) -> tuple[float, Matrix]:
            logs = log_softmax(x @ w, axis=1)
            slope = x.T @ (np.exp(logs) - y) / m + self.settings.penalty * w
            return float(-(y * logs).sum() / m + self.settings.penalty / 2 * (w**2).sum()), slope

        return replace(self, weights=minimised(loss, np.zeros_like(self.weights)))

    def changed(self, rest: Rows, gone: NDArray[np.int64], new: NDArray[np.int64]) -> Self:
        del gone, new
        basis = _with_ones(self.graph.training_graph.x.astype(np.float64))
        inside = [
            basis.T @ lsmr(basis.T, column, atol=1e-10, btol=1e-10, maxiter=5000)[0]
            for column in self.weights.T
        ]
        return replace(self, rows=rest, weights=np.stack(inside, axis=1))


@dataclass(frozen=True, eq=False)
class Certified(Linear):
    """Logistic regressions, what the steps so far may have left, and how often it was retrained."""

    spent: float = 0.0
    retrainings: int = 0

    walk: ClassVar[bool] = True

    def trained(self) -> Self:
        x, sign = self.rows.x, 2 * self.rows.y - 1
        draws = generator(self.seed, "peers", "cgu", self.retrainings)
        noise = self.settings.noise * draws.standard_normal(self.weights.shape)

        def loss(w: Matrix) -> tuple[float, Matrix]:
            margin = sign * (x @ w)
            total = np.logaddexp(0, -margin).sum() + self._ridge(w) + (noise * w).sum()
            return float(total), self._slope(self.rows, w) + noise

        return replace(self, weights=minimised(loss, np.zeros_like(self.weights)), spent=0.0)

    def _ridge(self, w: Matrix) -> float:
        return float(self.settings.penalty * len(self.rows.ids) / 2 * (w**2).sum())

    def _slope(self, rows: Rows, w: Matrix) -> Matrix:
        """Return the gradient on these rows, without the noise."""
        sign = 2 * rows.y - 1
        pull = rows.x.T @ (-sign * expit(-sign * (rows.x @ w)))
        return np.asarray(pull + self.settings.penalty * len(rows.ids) * w)

    def changed(self, rest: Rows, gone: NDArray[np.int64], new: NDArray[np.int64]) -> Self:
        del gone, new
        w, x, decay = self.weights, rest.x, self.settings.penalty * len(rest.ids)
        change = self._slope(self.rows, w) - self._slope(rest, w)
        share = expit(x @ w)
        size, steps = (len(w), len(w)), np.zeros_like(w)
        for k in range(w.shape[1]):
            curved = sp.diags_array(share[:, k] * (1 - share[:, k])) @ x
            product = LinearOperator(size, _hessian(x, curved, decay))
            steps[:, k] = cg(product, change[:, k], rtol=1e-8)[0]
        widest = float(svds(x, k=1, return_singular_vectors=False)[0])
        lengths = np.linalg.norm(steps, axis=0) * np.linalg.norm(x @ steps, axis=0)
        spent = self.spent + widest * float(lengths.sum()) / 4
        after = replace(self, rows=rest, weights=w + steps, spent=spent)
        if spent > self.settings.budget * w.shape[1]:
            return replace(after, retrainings=self.retrainings + 1).trained()
        return after

    def shares(self, scores: Matrix) -> Matrix:
        return np.asarray(expit(scores))


@dataclass(frozen=True, eq=False)
class ScaleGun(Certified):
    """CGU on standardised features that are passed on symmetrically, where they are large enough.

    The authors keep what they passed on and add what a request changes; here it is passed on anew,
    which gives the same up to the threshold, and costs more on large graphs alone. They leave
    means and deviations of the features as they were before the request; here these forget too.
    """

    @classmethod
    def features(cls, graph: Graph) -> sp.csr_array:
        x = graph.x.toarray().astype(np.float64)
        deviation = x.std(axis=0)
        x = (x - x.mean(axis=0)) / np.where(deviation > 0, deviation, 1.0)
        x /= max(float(np.linalg.norm(x, axis=1).max()), _LEAST)
        least = _PASSED * float(np.abs(x).sum(axis=0).mean())
        adjacency = looped(graph)
        scale = sp.diags_array(1 / np.sqrt(np.asarray(adjacency.sum(axis=1)).ravel()))
        step = scale @ adjacency @ scale
        for _ in range(2):
            x = step @ np.where(np.abs(x) > least, x, 0.0)
        return sp.csr_array(x)


def _hessian(x: sp.csr_array, curved: sp.csr_array, decay: float) -> Callable[[Matrix], Matrix]:
    return lambda v: np.asarray(x.T @ (curved @ v) + decay * v)


def minimised(loss: Callable[[Matrix], tuple[float, Matrix]], start: Matrix) -> Matrix:
    """Return where a loss that comes with its gradient is least, by L-BFGS from a start."""

    def flat(w: Matrix) -> tuple[float, Matrix]:
        value, slope = loss(w.reshape(start.shape))
        return value, np.asarray(slope).ravel()

    found = minimize(
        flat,
        start.ravel(),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": 500, "ftol": 1e-14, "gtol": 1e-7},
    )
    return np.asarray(found.x).reshape(start.shape)
