"""Routing: each node asks the shards where its neighbours live.

A shard model is an expert on its own neighbourhood. See `routing` for the weights; the few shards
that weigh most are asked. Nothing is learned, and labels have no part in it. A node inserted later
is routed like any other, by the edges that it came with; once it is trained on, it counts as a
neighbour of others.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from grapheraser.aggregation.base import Ensemble, Explanation
from grapheraser.aggregation.explain import explanation, say
from grapheraser.aggregation.mean_majority import Stateless
from grapheraser.aggregation.routing import Routes, mixed, routes
from grapheraser.checks import real, whole

# Chosen on validation nodes; see docs/aggregation.md.
SHARDS_ASKED = 8


@dataclass(frozen=True)
class RoutedAggregator(Stateless):
    """Shards weighted per node by where its one- and two-hop neighbours live.

    Attributes:
        floor: added to every shard's weight. With a floor of 0, only shards with neighbours of a
            node are asked about it.
        shards_asked: how many shards are asked about a node: those that weigh most.
    """

    floor: float = 0.005
    shards_asked: int = SHARDS_ASKED
    name: str = "routed"

    def __post_init__(self) -> None:
        real("floor", "RoutedAggregator", self.floor, 0)
        asked = whole("shards_asked", "RoutedAggregator", self.shards_asked, 1)
        object.__setattr__(self, "shards_asked", asked)

    def answers(
        self, ensemble: Ensemble, positions: NDArray[np.int64]
    ) -> tuple[Routes, NDArray[np.float32]]:
        """Whom each node asks, and what they say ``[num_nodes, shards_asked, num_classes]``."""
        gathered = ensemble.gather(positions)
        found = routes(ensemble, gathered, self.shards_asked, floor=self.floor)
        return found, ensemble.asked_posteriors(gathered, found.asked)

    def predict_proba(
        self, ensemble: Ensemble, positions: NDArray[np.int64]
    ) -> NDArray[np.float32]:
        """See `FittedAggregator`."""
        found, posteriors = self.answers(ensemble, positions)
        total = mixed(found.weights, posteriors)
        return (total / total.sum(axis=1, keepdims=True)).astype(np.float32)

    def explain(self, ensemble: Ensemble, position: int) -> Explanation:
        """See `FittedAggregator`."""
        found, posteriors = self.answers(ensemble, np.array([position]))
        label = int(mixed(found.weights, posteriors)[0].argmax())
        says = [
            say(f"shard {shard}", weight, posterior)
            for shard, weight, posterior in zip(
                found.asked[0], found.weights[0], posteriors[0], strict=True
            )
            if weight > 0
        ]
        why = "shards weigh as many of the node's one- and two-hop neighbours as they hold"
        return explanation(ensemble, position, says, label=label, why=why)
