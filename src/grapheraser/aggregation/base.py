"""What an aggregator is: it turns the posteriors of all shard models into one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from grapheraser.graph import Graph
from grapheraser.models import Model
from grapheraser.partition import Partition
from grapheraser.training import ShardWeights, shard_posteriors


@dataclass(frozen=True, eq=False)
class Ensemble:
    """Trained shards on their current graph: all that an aggregator may look at.

    Attributes:
        graph: the whole current graph, test nodes included.
        partition: the shard of every training node.
        shards: weights by shard id, ascending; emptied shards are not there.
        model: the architecture of all shards.
        seed: the run's seed.
    """

    graph: Graph
    partition: Partition
    shards: Mapping[int, ShardWeights]
    model: Model
    seed: int

    @property
    def shard_ids(self) -> tuple[int, ...]:
        return tuple(self.shards)

    def posteriors(self, positions: NDArray[np.int64]) -> NDArray[np.float32]:
        """Posteriors ``[num_shards, len(positions), num_classes]`` of every shard model."""
        return shard_posteriors(self.model, list(self.shards.values()), self.graph, positions)


@dataclass(frozen=True, eq=False)
class Change:
    """What a request did to an ensemble, for aggregators that keep something between requests.

    Attributes:
        before: the ensemble before the request.
        retrained: ids of the shards with new weights; every posterior of theirs is stale.
        stale: sorted ids of the nodes whose posteriors under *any* model may have changed; None
            when that can't be told, and then all are.
    """

    before: Ensemble
    retrained: frozenset[int]
    stale: NDArray[np.int64] | None


class FittedAggregator(Protocol):
    """An aggregator with what it has learned."""

    @property
    def tensors(self) -> Mapping[str, NDArray[np.generic]]:
        """All that was learned or is cached: saved, hashed and compared bit for bit."""

    def predict_proba(
        self, ensemble: Ensemble, positions: NDArray[np.int64]
    ) -> NDArray[np.float32]:
        """Posteriors ``[len(positions), num_classes]`` of the whole ensemble; rows sum to 1."""


@runtime_checkable
class Aggregator(Protocol):
    """A way to combine shards, not yet fitted."""

    @property
    def name(self) -> str: ...

    def fit(self, ensemble: Ensemble) -> FittedAggregator:
        """Learn from the ensemble whatever there is to learn."""

    def refit(
        self, fitted: FittedAggregator, ensemble: Ensemble, change: Change
    ) -> FittedAggregator:
        """Exactly what ``fit(ensemble)`` would return, reusing what the change left valid."""

    def restore(self, tensors: Mapping[str, NDArray[np.generic]]) -> FittedAggregator:
        """The fitted aggregator that has these tensors."""
