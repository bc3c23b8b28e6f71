"""Routing: each node asks the shards where its neighbours live.

A shard model is an expert on its own neighbourhood. The weight of a shard for a node is the mean
of its one-hop and its two-hop share (see `routing`), plus a floor for all shards. Nothing is
learned, and labels have no part in it. A node none of whose one- and two-hop neighbours is trained
on (an isolated one, say) asks all shards alike. A node inserted later is routed like any other, by
the edges that it came with; once it is trained on, it counts as a neighbour of others.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from grapheraser.aggregation.base import Ensemble, Explanation
from grapheraser.aggregation.explain import explain_shards
from grapheraser.aggregation.mean_majority import Stateless
from grapheraser.aggregation.routing import hop_shares
from grapheraser.checks import real


@dataclass(frozen=True)
class RoutedAggregator(Stateless):
    """Shards weighted per node by where its one- and two-hop neighbours live.

    Attributes:
        floor: added to every shard's weight. With a floor of 0, only shards with neighbours of a
            node are asked about it, which makes predictions faster.
    """

    floor: float = 0.005
    name: str = "routed"

    def __post_init__(self) -> None:
        real("floor", "RoutedAggregator", self.floor, 0)

    def weights(self, ensemble: Ensemble, positions: NDArray[np.int64]) -> NDArray[np.float64]:
        """Weights of the shards ``[len(positions), num_shards]``; rows sum to 1."""
        one, two = hop_shares(ensemble, positions)
        weights = 0.5 * one + 0.5 * two + self.floor
        nobody = weights.sum(axis=1) == 0
        weights[nobody] = 1.0
        return weights / weights.sum(axis=1, keepdims=True)

    def predict_proba(
        self, ensemble: Ensemble, positions: NDArray[np.int64]
    ) -> NDArray[np.float32]:
        """See `FittedAggregator`."""
        weights = self.weights(ensemble, positions)
        total = weighted_posteriors(ensemble, positions, weights)
        return (total / total.sum(axis=1, keepdims=True)).astype(np.float32)

    def explain(self, ensemble: Ensemble, position: int) -> Explanation:
        """See `FittedAggregator`."""
        positions = np.array([position])
        label = int(self.predict_proba(ensemble, positions)[0].argmax())
        why = "shards weigh as many of the node's one- and two-hop neighbours as they hold"
        weights = self.weights(ensemble, positions)[0]
        return explain_shards(ensemble, position, weights, label=label, why=why)


def weighted_posteriors(
    ensemble: Ensemble, positions: NDArray[np.int64], weights: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Sum of the shards' posteriors by weights of their own for each node.

    A shard is asked only about the nodes that give it any weight.

    Args:
        ensemble: the shards.
        positions: rows of its graph.
        weights: ``[len(positions), num_shards]``, in the ensemble's order.

    Returns: float64 ``[len(positions), num_classes]``.
    """
    total = np.zeros((len(positions), ensemble.graph.num_classes))
    if (weights > 0).all():
        posteriors = ensemble.posteriors(positions)
        for i in range(len(posteriors)):
            total += weights[:, i, None] * posteriors[i]
        return total
    for i, shard in enumerate(ensemble.shard_ids):
        rows = np.flatnonzero(weights[:, i] > 0)
        if len(rows):
            posterior = ensemble.posteriors(positions[rows], [shard])[0]
            total[rows] += weights[rows, i, None] * posterior
    return total
