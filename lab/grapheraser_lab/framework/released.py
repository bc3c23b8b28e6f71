"""Aggregation as the paper's released code does it: a third reading of LBAggr, to compare with.

Written from a description of what that code computes. The posteriors are logarithms. ``log-mean``
averages them. ``released`` learns a score for each shard from 1,000 training nodes and the edges
between those alone: from 1/k, 50 epochs of Adam (rate 0.001) in batches of 32 on the cross-entropy
of a softmax over ``softmax(sum_i w_i log p_i)``, a softmax twice, plus the norm of the scores;
negative scores go to 0 after each step, and at the end the scores are divided by their sum. Where
all of them end at 0, the released code divides by 0; here every shard has the same weight then.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from grapheraser.aggregation.base import (
    Change,
    Ensemble,
    Explanation,
    FittedAggregator,
    explain_shards,
)
from grapheraser.seeding import generator

NODES, EPOCHS, BATCH, RATE = 1000, 50, 32, 0.001
_TINY = 1e-12

Scores = NDArray[np.float64]


@dataclass(frozen=True)
class LogMean:
    """The mean of the shards' log posteriors."""

    name: str = "log-mean"

    def fit(self, ensemble: Ensemble) -> FittedLogs:
        """See `Aggregator`."""
        return FittedLogs(np.full(len(ensemble.shards), 1.0 / len(ensemble.shards)))

    def refit(self, fitted: FittedAggregator, ensemble: Ensemble, change: Change) -> FittedLogs:
        """See `Aggregator`."""
        del fitted, change
        return self.fit(ensemble)

    def restore(self, tensors: Mapping[str, NDArray[np.generic]]) -> FittedLogs:
        """See `Aggregator`."""
        return FittedLogs(np.asarray(tensors["importance"], dtype=np.float64))


@dataclass(frozen=True)
class ReleasedAggregator(LogMean):
    """Scores learned by the released code's objective."""

    name: str = "released"

    def fit(self, ensemble: Ensemble) -> FittedLogs:
        """See `Aggregator`."""
        graph, rng = ensemble.graph, generator(ensemble.seed, "experiment", "released")
        nodes = np.sort(rng.permutation(graph.train_nodes)[:NODES])
        alone = graph.subgraph(nodes)
        posteriors = replace(ensemble, graph=alone).posteriors(np.arange(alone.num_nodes))
        logs = np.log(np.maximum(posteriors.astype(np.float64), _TINY))
        return FittedLogs(learned_scores(logs, alone.y, rng))


@dataclass(frozen=True, eq=False)
class FittedLogs:
    """A weight for each shard's log posteriors, in the order of the shard ids."""

    importance: Scores
    notes: tuple[str, ...] = ()

    @property
    def tensors(self) -> Mapping[str, NDArray[np.generic]]:
        return {"importance": self.importance}

    def predict_proba(
        self, ensemble: Ensemble, positions: NDArray[np.int64]
    ) -> NDArray[np.float32]:
        """See `FittedAggregator`."""
        posteriors = ensemble.posteriors(positions).astype(np.float64)
        logs = np.log(np.maximum(posteriors, _TINY))
        return softmax(np.einsum("s,snc->nc", self.importance, logs)).astype(np.float32)

    def explain(self, ensemble: Ensemble, position: int) -> Explanation:
        """See `FittedAggregator`."""
        label = int(self.predict_proba(ensemble, np.array([position]))[0].argmax())
        why = "log posteriors, weighed as in the paper's released code"
        return explain_shards(ensemble, position, self.importance, label=label, why=why)


def learned_scores(
    logs: NDArray[np.float64], labels: NDArray[np.int64], rng: np.random.Generator
) -> Scores:
    """The scores ``[k]`` after all epochs, from log posteriors ``[k, n, c]``."""
    k, n, classes = logs.shape
    scores, first, second, step = np.full(k, 1.0 / k), np.zeros(k), np.zeros(k), 0
    truth = np.eye(classes)[labels]
    for _ in range(EPOCHS):
        order = rng.permutation(n)
        for start in range(0, n, BATCH):
            batch = order[start : start + BATCH]
            slope = gradient(logs[:, batch], truth[batch], scores)
            step += 1
            first, second = 0.9 * first + 0.1 * slope, 0.999 * second + 0.001 * slope**2
            size = np.sqrt(second / (1 - 0.999**step)) + 1e-8
            scores = np.maximum(scores - RATE * first / (1 - 0.9**step) / size, 0.0)
    total = scores.sum()
    return scores / total if total > 0 else np.full(k, 1.0 / k)


def gradient(
    logs: NDArray[np.float64], truth: NDArray[np.float64], scores: Scores
) -> NDArray[np.float64]:
    """Return the gradient of `objective`, by hand ``[k]``."""
    p = softmax(np.einsum("s,snc->nc", scores, logs))
    outer = (softmax(p) - truth) / len(truth)
    inner = p * (outer - (outer * p).sum(axis=1, keepdims=True))
    norm = float(np.linalg.norm(scores))
    pull = scores / norm if norm > 0 else np.zeros_like(scores)
    slope: NDArray[np.float64] = np.einsum("snc,nc->s", logs, inner) + pull
    return slope


def objective(logs: NDArray[np.float64], truth: NDArray[np.float64], scores: Scores) -> float:
    """Cross-entropy of a softmax of the softmax, plus the norm of the scores."""
    twice = softmax(softmax(np.einsum("s,snc->nc", scores, logs)))
    loss = -float(np.log((twice * truth).sum(axis=1)).mean())
    return loss + float(np.linalg.norm(scores))


def softmax(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the softmax of each row."""
    powers = np.exp(values - values.max(axis=1, keepdims=True))
    shares: NDArray[np.float64] = powers / powers.sum(axis=1, keepdims=True)
    return shares
