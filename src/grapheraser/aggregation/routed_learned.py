"""Routing with a few learned weights.

Three ways to weigh the shards are mixed: by one-hop neighbours, by two-hop neighbours, and by one
importance score per shard, the same for all nodes. How much each counts, and the scores, are
learned from the sample like those of `learned`, and relearned after every request.

A sampled node was trained on in one of the shards, which therefore knows its label. Judged by that
shard, routing would look better than it is. So a sampled node is never judged by its own shard:
its weight goes to the others.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from grapheraser.aggregation.base import Change, Ensemble, Explanation, FittedAggregator
from grapheraser.aggregation.explain import explain_shards
from grapheraser.aggregation.learned import EMPTY_SAMPLE
from grapheraser.aggregation.routed import weighted_posteriors
from grapheraser.aggregation.routing import Shares, hop_shares, shard_by_position
from grapheraser.aggregation.sample import DEFAULT, Sample, limits, sampled_nodes
from grapheraser.aggregation.sampled import SampledPosteriors, collect, refresh
from grapheraser.aggregation.simplex import mixture_weights
from grapheraser.errors import ParameterError

WAYS = ("one hop", "two hops", "importance")
# Without a sample to learn from: plain routing, with importance for nodes that have no neighbours.
_UNLEARNED = (0.5, 0.5, 0.0)


@dataclass(frozen=True)
class RoutedLearnedAggregator:
    """Routing whose hop weights and fallback are learned.

    Attributes:
        sample: see `LearnedAggregator`.
        penalty: of the importance scores, see `LearnedAggregator`.
        held_out: keep a sampled node's own shard from judging it.
    """

    sample: Sample = DEFAULT
    penalty: float = 0.1
    held_out: bool = True
    name: str = "routed-learned"

    def __post_init__(self) -> None:
        limits(self.sample)
        if not self.penalty >= 0:
            raise ParameterError.of(
                "penalty", "RoutedLearnedAggregator", "non-negative", self.penalty
            )

    def fit(self, ensemble: Ensemble) -> FittedRoutedLearned:
        """See `Aggregator`."""
        nodes = sampled_nodes(ensemble.graph, self.sample, ensemble.seed)
        return self._learn(ensemble, collect(ensemble, nodes))

    def refit(
        self, fitted: FittedAggregator, ensemble: Ensemble, change: Change
    ) -> FittedRoutedLearned:
        """See `Aggregator`."""
        nodes = sampled_nodes(ensemble.graph, self.sample, ensemble.seed)
        old = SampledPosteriors.restore(fitted.tensors)
        return self._learn(ensemble, refresh(old, ensemble, change, nodes))

    def restore(self, tensors: Mapping[str, NDArray[np.generic]]) -> FittedRoutedLearned:
        """See `Aggregator`."""
        return FittedRoutedLearned(
            SampledPosteriors.restore(tensors),
            np.asarray(tensors["importance"], dtype=np.float64),
            np.asarray(tensors["ways"], dtype=np.float64),
        )

    def _learn(self, ensemble: Ensemble, sampled: SampledPosteriors) -> FittedRoutedLearned:
        k, m = sampled.values.shape[:2]
        truth = sampled.true_class(ensemble)  # [k, m]
        if m == 0 or k == 1:
            return FittedRoutedLearned(sampled, np.full(k, 1.0 / k), np.array(_UNLEARNED))
        positions = ensemble.graph.positions(sampled.nodes)
        own = shard_by_position(ensemble)[positions]
        judged = truth.copy()
        if self.held_out:
            # What the others say on average, so that the node neither helps nor hurts its shard.
            others = (truth.sum(axis=0) - truth[own, np.arange(m)]) / (k - 1)
            judged[own, np.arange(m)] = others
        importance = mixture_weights(judged, penalty=self.penalty)
        one, two = hop_shares(ensemble, positions, without_own=self.held_out)
        ways = np.empty((3, m))
        ways[2] = _weighted(judged, np.broadcast_to(importance, (m, k)))
        for way, shares in enumerate((one, two)):
            nobody = shares.sum(axis=1) == 0
            ways[way] = np.where(nobody, ways[2], _weighted(judged, shares))
        return FittedRoutedLearned(sampled, importance, mixture_weights(ways))


@dataclass(frozen=True, eq=False)
class FittedRoutedLearned:
    """What was learned, and the posteriors that it was learned from.

    Attributes:
        sampled: posteriors of the sampled nodes.
        importance: float64 ``[k]``, one score per shard, sum 1.
        ways: float64 ``[3]``, how much each of `WAYS` counts, sum 1.
    """

    sampled: SampledPosteriors
    importance: NDArray[np.float64]
    ways: NDArray[np.float64]

    @property
    def tensors(self) -> Mapping[str, NDArray[np.generic]]:
        return {**self.sampled.tensors, "importance": self.importance, "ways": self.ways}

    @property
    def notes(self) -> tuple[str, ...]:
        return () if len(self.sampled.nodes) else (EMPTY_SAMPLE,)

    def weights(self, ensemble: Ensemble, positions: NDArray[np.int64]) -> Shares:
        """Weights of the shards ``[len(positions), num_shards]``; rows sum to 1.

        A node without trained neighbours at some distance uses the importance scores there.
        """
        weights = np.zeros((len(positions), len(self.importance)))
        for way, shares in enumerate(hop_shares(ensemble, positions)):
            shares[shares.sum(axis=1) == 0] = self.importance
            weights += self.ways[way] * shares
        weights += self.ways[2] * self.importance
        return weights / weights.sum(axis=1, keepdims=True)

    def predict_proba(
        self, ensemble: Ensemble, positions: NDArray[np.int64]
    ) -> NDArray[np.float32]:
        """See `FittedAggregator`."""
        total = weighted_posteriors(ensemble, positions, self.weights(ensemble, positions))
        return (total / total.sum(axis=1, keepdims=True)).astype(np.float32)

    def explain(self, ensemble: Ensemble, position: int) -> Explanation:
        """See `FittedAggregator`."""
        positions = np.array([position])
        label = int(self.predict_proba(ensemble, positions)[0].argmax())
        parts = [f"{name} {share:.2f}" for name, share in zip(WAYS, self.ways, strict=True)]
        why = f"shards weigh by {', '.join(parts)}"
        weights = self.weights(ensemble, positions)[0]
        return explain_shards(ensemble, position, weights, label=label, why=why)


def _weighted(truth: NDArray[np.float64], shares: Shares) -> NDArray[np.float64]:
    """What shards with these weights ``[m, k]`` give to the true class, ``[m]``, in their order."""
    total = np.zeros(truth.shape[1])
    for i in range(len(truth)):
        total += shares[:, i] * truth[i]
    return total
