"""LBAggr: one importance score per shard, learned from a sample of training nodes.

The paper relearns the scores only when a sampled node is deleted. Here they are relearned after
every request, because the posteriors that they were learned from have changed: from the kept
posteriors, with the stale ones computed again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from grapheraser.aggregation.base import (
    Change,
    Ensemble,
    Explanation,
    FittedAggregator,
    explain_shards,
)
from grapheraser.aggregation.form import SHARE, Form, Tensors, check_equal, check_forms
from grapheraser.aggregation.sample.membership import (
    DEFAULT,
    Sample,
    limit_on,
    limits,
    sampled_nodes,
)
from grapheraser.aggregation.sample.posteriors import SampledPosteriors, collect, refresh
from grapheraser.aggregation.simplex import mixture_weights, paper_weights
from grapheraser.checks import one_of, real
from grapheraser.errors import CorruptRunError

EMPTY_SAMPLE = "the sample holds no nodes any more: every shard has the same weight"


@dataclass(frozen=True)
class LearnedAggregator:
    """Importance scores that minimise the cross-entropy of the weighted posteriors.

    Attributes:
        sample: which training nodes to learn from: a share in (0, 1], a count, ``"all"``, or
            ``"auto"``: 10 %, but 1000 at the most, and all where labels are few.
        solver: ``"convex"`` reaches the minimum; ``"paper"`` takes the paper's gradient steps.
        penalty: weight of the scores' Euclidean norm (lambda).
    """

    sample: Sample = DEFAULT
    solver: str = "convex"
    penalty: float = 0.1
    name: str = "learned"

    def __post_init__(self) -> None:
        limits(self.sample)
        one_of("solver", "LearnedAggregator", self.solver, ("convex", "paper"))
        real("penalty", "LearnedAggregator", self.penalty, 0)

    def fit(self, ensemble: Ensemble) -> FittedLearned:
        """See `Aggregator`."""
        nodes = self._nodes(ensemble)
        return self._learn(ensemble, collect(ensemble, nodes))

    def refit(self, fitted: FittedAggregator, ensemble: Ensemble, change: Change) -> FittedLearned:
        """See `Aggregator`."""
        nodes = self._nodes(ensemble)
        old = SampledPosteriors.restore(fitted.tensors)
        return self._learn(ensemble, refresh(old, ensemble, change, nodes))

    def check_tensors(self, tensors: Tensors, ensemble: Ensemble) -> None:
        """See `ChecksTensors`."""
        nodes, shards = self._nodes(ensemble), np.array(ensemble.shard_ids, dtype=np.int64)
        k, m, c = len(shards), len(nodes), ensemble.graph.num_classes
        forms = {
            "nodes": Form(np.int64, (m,)),
            "shards": Form(np.int64, (k,)),
            "posteriors": Form(np.float32, (k, m, c), 0, SHARE),
            "importance": Form(np.float64, (k,), 0, SHARE),
        }
        check_forms(tensors, forms, f"aggregation '{self.name}'")
        check_equal(tensors["nodes"], nodes, "the nodes that importance scores were learned from")
        check_equal(tensors["shards"], shards, "the shards with importance scores")
        if k and not tensors["importance"].sum() > 0:
            raise CorruptRunError("no shard has an importance score above 0.")

    def restore(self, tensors: Tensors) -> FittedLearned:
        """See `Aggregator`."""
        scores = np.asarray(tensors["importance"], dtype=np.float64)
        return FittedLearned(SampledPosteriors.restore(tensors), scores)

    def _nodes(self, ensemble: Ensemble) -> NDArray[np.int64]:
        limit = limit_on(ensemble.graph, self.sample, limits(DEFAULT))
        return sampled_nodes(ensemble.graph, limit, ensemble.seed)

    def _learn(self, ensemble: Ensemble, sampled: SampledPosteriors) -> FittedLearned:
        solve = mixture_weights if self.solver == "convex" else paper_weights
        return FittedLearned(sampled, solve(sampled.true_class(ensemble), penalty=self.penalty))


@dataclass(frozen=True, eq=False)
class FittedLearned:
    """Importance scores, and the posteriors that they were learned from.

    Attributes:
        sampled: posteriors of the sampled nodes.
        importance: float64 ``[k]``, non-negative, sum 1; in the order of the shard ids.
    """

    sampled: SampledPosteriors
    importance: NDArray[np.float64]

    @property
    def tensors(self) -> Mapping[str, NDArray[np.generic]]:
        return {**self.sampled.tensors, "importance": self.importance}

    @property
    def notes(self) -> tuple[str, ...]:
        return () if len(self.sampled.nodes) else (EMPTY_SAMPLE,)

    def predict_proba(
        self, ensemble: Ensemble, positions: NDArray[np.int64]
    ) -> NDArray[np.float32]:
        """See `FittedAggregator`. Shards without any weight are not asked."""
        heard = np.flatnonzero(self.importance > 0)
        ids = [int(self.sampled.shards[i]) for i in heard]
        total = np.zeros((len(positions), ensemble.graph.num_classes))
        for i, posterior in zip(heard, ensemble.posteriors(positions, ids), strict=True):
            total += self.importance[i] * posterior
        return (total / total.sum(axis=1, keepdims=True)).astype(np.float32)

    def explain(self, ensemble: Ensemble, position: int) -> Explanation:
        """See `FittedAggregator`."""
        label = int(self.predict_proba(ensemble, np.array([position]))[0].argmax())
        why = f"importance scores learned from {len(self.sampled.nodes)} training nodes"
        return explain_shards(ensemble, position, self.importance, label=label, why=why)
