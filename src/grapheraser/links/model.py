"""The model of a link run: weights of a few numbers, learned from a sample of pairs.

The weights are all that is kept of the graph besides the graph itself. They are learned anew with
every request; of the sampled pairs only those that a change has touched are described again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from grapheraser.aggregation.base import Change, Ensemble, FittedAggregator
from grapheraser.aggregation.form import MAX_WEIGHT, Form, Tensors, check_forms
from grapheraser.errors import ParameterError
from grapheraser.links.index import Index
from grapheraser.links.pair_features import Described, Pairs, numbers_of
from grapheraser.links.regression import (
    COLUMNS,
    DIRECTED,
    Vector,
    columns_of,
    logistic,
    scores,
    solve,
)
from grapheraser.links.sample import PairSample
from grapheraser.links.shards import shard_evidence, without_edges

CLOSED_FORM, SHARDS = "closed-form", "shards"
# Pairs that are described at once.
_BLOCK = 100_000


@dataclass(frozen=True)
class LinkModel:
    """The aggregator of a link run, before it has seen a graph."""

    members: tuple[str, ...] = (CLOSED_FORM,)  # `CLOSED_FORM`, `SHARDS` or both
    sample: int = 1000  # how many edges, and how many other pairs, to learn from at the most
    sides: bool = False  # whether the graph is bipartite, its classes the sides
    name: str = "links"

    def fit(self, ensemble: Ensemble) -> FittedLinks:
        """See `Aggregator`."""
        sample = PairSample.of(ensemble.graph, self.sample, ensemble.seed, sides=self.sides)
        described = None
        if CLOSED_FORM in self.members:
            described = Described.of(ensemble.graph, sample.pairs, ensemble.seed)
        return self._fitted(ensemble, sample, described)

    def refit(self, fitted: FittedAggregator, ensemble: Ensemble, change: Change) -> FittedLinks:
        """See `Aggregator`."""
        assert isinstance(fitted, FittedLinks)
        if fitted.sample is None:  # just loaded
            return self.fit(ensemble)
        graph, seed = ensemble.graph, ensemble.seed
        sample = fitted.sample.changed(graph, change.changed, seed, sides=self.sides)
        described = fitted.described
        if described is not None:
            described = described.changed(change, graph, sample.pairs, seed)
        made = self._fitted(ensemble, sample, described)
        if fitted.index is None:
            return made
        return replace(made, index=fitted.index.changed(change, graph, seed))

    def check_tensors(self, tensors: Tensors, ensemble: Ensemble) -> None:
        """See `ChecksTensors`."""
        directed = ensemble.graph.directed
        names = self.column_names(directed=directed)
        most = 2 * self.sample if directed else self.sample  # see `EdgeCandidates.turned`
        forms = {
            "weights": Form(np.float64, (len(names),), -MAX_WEIGHT, MAX_WEIGHT),
            "counts": Form(np.int64, (2,), 0, most),
        }
        check_forms(tensors, forms, "a link run")

    def restore(self, tensors: Tensors) -> FittedLinks:
        """See `Aggregator`."""
        weights = np.asarray(tensors["weights"], dtype=np.float64)
        counts = np.asarray(tensors["counts"], dtype=np.int64)
        return FittedLinks(self, weights, counts, None, None)

    def column_names(self, *, directed: bool) -> tuple[str, ...]:
        """Name the columns that have a weight, in a directed graph or another."""
        closed: tuple[str, ...] = COLUMNS[:1]
        if CLOSED_FORM in self.members:
            closed = (*COLUMNS, *DIRECTED) if directed else COLUMNS
        return (*closed, SHARDS) if SHARDS in self.members else closed

    def columns(
        self, numbers: NDArray[np.float64] | None, evidence: Vector | None, count: int
    ) -> NDArray[np.float64]:
        """The columns of pairs, from their numbers and from what the shards say."""
        parts = [np.ones((1, count)) if numbers is None else columns_of(numbers)]
        if evidence is not None:
            parts.append(evidence[None])
        return np.concatenate(parts)

    def _fitted(
        self, ensemble: Ensemble, sample: PairSample, described: Described | None
    ) -> FittedLinks:
        pairs, labels = sample.pairs, sample.labels
        evidence = None
        if SHARDS in self.members:
            # No shard has been trained on an edge between two shards.
            across = ensemble.shards_of(pairs[:, 0]) != ensemble.shards_of(pairs[:, 1])
            graph = without_edges(ensemble.graph, pairs[labels == 1])
            evidence = shard_evidence(ensemble, graph, pairs)
        else:
            across = np.ones(len(pairs), dtype=bool)
        numbers = None if described is None else described.numbers
        columns = self.columns(numbers, evidence, len(pairs))
        weights = solve(columns[:, across], labels[across])
        edges = int(labels[across].sum())
        counts = np.array([edges, int(across.sum()) - edges], dtype=np.int64)
        return FittedLinks(self, weights, counts, sample, described)


@dataclass(frozen=True, eq=False)
class FittedLinks:
    """The learned weights, and what learns them again cheaply."""

    rule: LinkModel  # what they were learned by
    weights: Vector  # float64, one for each column
    # Int64 ``[2]``, how many edges and how many other pairs they were learned from.
    counts: NDArray[np.int64]
    # sample, described: follow from the graph; None after loading.
    sample: PairSample | None = field(repr=False)
    described: Described | None = field(repr=False)
    # Of all nodes; follows from the graph, and is made when it is first asked for.
    index: Index | None = field(default=None, repr=False)

    def named_weights(self, *, directed: bool) -> dict[str, float]:
        """The weight of each column, by its name; of a directed graph or another."""
        names = self.rule.column_names(directed=directed)
        return dict(zip(names, self.weights.tolist(), strict=True))

    def index_of(self, ensemble: Ensemble) -> Index:
        """The index of all nodes of the ensemble's graph."""
        if self.index is None:
            object.__setattr__(self, "index", Index.of(ensemble.graph, ensemble.seed))
        assert self.index is not None
        return self.index

    @property
    def tensors(self) -> Mapping[str, NDArray[np.generic]]:
        """See `FittedAggregator`."""
        return {"weights": self.weights, "counts": self.counts}

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes for receipts about what was learned."""
        edges, others = self.counts.tolist()
        if edges and others:
            return ()
        what = "edge" if edges == 0 else "pair without an edge"
        return (f"no {what} could be sampled: every pair has the probability 0.5",)

    def log_odds(self, ensemble: Ensemble, pairs: Pairs) -> Vector:
        """The logarithm of the odds of an edge between pairs of ids, each by itself."""
        pairs = pairs if ensemble.graph.directed else np.sort(pairs, axis=1)
        out = np.empty(len(pairs))
        for start in range(0, len(pairs), _BLOCK):
            block = pairs[start : start + _BLOCK]
            out[start : start + len(block)] = self._log_odds(ensemble, block)
        return out

    def _log_odds(self, ensemble: Ensemble, pairs: Pairs) -> Vector:
        graph, rule = ensemble.graph, self.rule
        numbers = None
        if CLOSED_FORM in rule.members:
            numbers = numbers_of(graph, pairs, ensemble.seed)
        evidence = None
        if SHARDS in rule.members:
            evidence = shard_evidence(ensemble, graph, pairs)
            # An edge is judged without itself, one at a time.
            for at in np.flatnonzero(graph.has_edges(pairs)):
                alone = pairs[at : at + 1]
                evidence[at] = shard_evidence(ensemble, without_edges(graph, alone), alone)[0]
        return scores(rule.columns(numbers, evidence, len(pairs)), self.weights)

    def predict_proba(
        self, ensemble: Ensemble, positions: NDArray[np.int64]
    ) -> NDArray[np.float32]:
        """The probability of an edge between pairs of positions ``[m, 2]``."""
        pairs = ensemble.graph.ids_at(positions.reshape(-1)).reshape(-1, 2)
        return probabilities(self.log_odds(ensemble, pairs))

    def explain(self, ensemble: Ensemble, position: int) -> NoReturn:
        """Refuses: a link has two ends."""
        del ensemble, position
        raise ParameterError("a link run has nothing to say about one node by itself.")


def probabilities(log_odds: Vector) -> NDArray[np.float32]:
    """From the logarithm of the odds, each by itself."""
    found: NDArray[np.float32] = logistic(log_odds).astype(np.float32)
    return found
