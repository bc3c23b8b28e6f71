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
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from grapheraser.aggregation.base import Change, Ensemble, Explanation, FittedAggregator
from grapheraser.aggregation.explain import explain_shards
from grapheraser.aggregation.learned import EMPTY_SAMPLE
from grapheraser.aggregation.routed import weighted_posteriors
from grapheraser.aggregation.routing import Shares, hop_shares
from grapheraser.aggregation.sample.membership import DEFAULT, Sample, limits, sampled_nodes
from grapheraser.aggregation.sample.posteriors import SampledPosteriors, collect, refresh
from grapheraser.aggregation.solvers.simplex import mixture, mixture_weights
from grapheraser.checks import real
from grapheraser.kernels.compiled import compiled

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

    takes_expert: ClassVar[bool] = True

    sample: Sample = DEFAULT
    penalty: float = 0.1
    held_out: bool = True
    name: str = "routed-learned"

    def __post_init__(self) -> None:
        limits(self.sample)
        real("penalty", "RoutedLearnedAggregator", self.penalty, 0)

    def fit(self, ensemble: Ensemble) -> FittedRoutedLearned:
        """See `Aggregator`."""
        nodes = sampled_nodes(ensemble.graph, self.sample, ensemble.seed)
        return self._learn(ensemble, collect(ensemble, nodes), self._walks(ensemble, nodes))

    def refit(
        self, fitted: FittedAggregator, ensemble: Ensemble, change: Change
    ) -> FittedRoutedLearned:
        """See `Aggregator`."""
        assert isinstance(fitted, FittedRoutedLearned)
        nodes = sampled_nodes(ensemble.graph, self.sample, ensemble.seed)
        sampled = refresh(fitted.sampled, ensemble, change, nodes)
        return self._learn(ensemble, sampled, self._walked(fitted, sampled, ensemble, change))

    def restore(self, tensors: Mapping[str, NDArray[np.generic]]) -> FittedRoutedLearned:
        """See `Aggregator`."""
        return FittedRoutedLearned(
            SampledPosteriors.restore(tensors),
            np.asarray(tensors["importance"], dtype=np.float64),
            np.asarray(tensors["ways"], dtype=np.float64),
        )

    def _walks(self, ensemble: Ensemble, nodes: NDArray[np.int64]) -> Shares:
        """One-hop and two-hop shares ``[2, len(nodes), num_shards]``."""
        positions = ensemble.graph.positions(nodes)
        return np.stack(hop_shares(ensemble, positions, without_own=self.held_out))

    def _walked(
        self,
        fitted: FittedRoutedLearned,
        sampled: SampledPosteriors,
        ensemble: Ensemble,
        change: Change,
    ) -> Shares:
        """What `_walks` gives for the sampled nodes, walking only where something has changed.

        A walk of two steps goes over a touched node if it starts at one or next to one.
        """
        old, nodes, walks = fitted.sampled, sampled.nodes, fitted.walks
        if walks is None or not np.array_equal(old.shards, sampled.shards):
            return self._walks(ensemble, nodes)
        graph = ensemble.graph
        near = graph.ids[graph.within_hops(graph.positions(change.touched), 1)]
        if np.array_equal(nodes, old.nodes):
            again, out = np.isin(nodes, near), walks.copy()
        else:
            again = np.isin(nodes, near) | ~np.isin(nodes, old.nodes)
            out = np.empty((2, len(nodes), len(sampled.shards)))
            out[:, ~again] = walks[:, np.searchsorted(old.nodes, nodes[~again])]
        out[:, again] = self._walks(ensemble, nodes[again])
        return out

    def _learn(
        self, ensemble: Ensemble, sampled: SampledPosteriors, walks: Shares
    ) -> FittedRoutedLearned:
        k, m = sampled.values.shape[:2]
        truth = sampled.true_class(ensemble)  # [k, m]
        if m == 0 or k == 1:
            return FittedRoutedLearned(sampled, np.full(k, 1.0 / k), np.array(_UNLEARNED))
        positions = ensemble.graph.positions(sampled.nodes)
        own = ensemble.shard_at[positions]
        judged = truth.copy()
        if self.held_out:
            # What the others say on average, so that the node neither helps nor hurts its shard.
            others = (truth.sum(axis=0) - truth[own, np.arange(m)]) / (k - 1)
            judged[own, np.arange(m)] = others
        importance = mixture_weights(judged, penalty=self.penalty)
        ways = np.empty((3, m))
        ways[2] = mixture(judged, importance)
        for way, shares in enumerate(walks):
            nobody = shares.sum(axis=1) == 0
            ways[way] = np.where(nobody, ways[2], _weighted(judged, shares))
        return FittedRoutedLearned(sampled, importance, mixture_weights(ways), walks)


@dataclass(frozen=True, eq=False)
class FittedRoutedLearned:
    """What was learned, and the posteriors that it was learned from.

    Attributes:
        sampled: posteriors of the sampled nodes.
        importance: float64 ``[k]``, one score per shard, sum 1.
        ways: float64 ``[3]``, how much each of `WAYS` counts, sum 1.
        walks: shares of the sampled nodes, to save walking again; None after loading.
    """

    sampled: SampledPosteriors
    importance: NDArray[np.float64]
    ways: NDArray[np.float64]
    walks: Shares | None = None

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


@compiled
def _weighted(truth: NDArray[np.float64], shares: Shares) -> NDArray[np.float64]:
    """What shards with these weights ``[m, k]`` give to the true class, ``[m]``, in their order."""
    total = np.zeros(truth.shape[1])
    for start in range(0, len(total), 64):  # so many rows of the weights stay in the cache
        for i in range(len(truth)):
            for w in range(start, min(start + 64, len(total))):
                total[w] += shares[w, i] * truth[i, w]
    return total
