"""What an aggregator is: it turns the posteriors of all shard models into one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from grapheraser.graph import TRAIN, Graph
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

    @cached_property
    def shard_at(self) -> NDArray[np.int32]:
        """By position, the place in `shards` of the shard that a node was trained in; else -1."""
        place = np.full(self.partition.num_shards, -1, dtype=np.int32)
        place[list(self.shard_ids)] = np.arange(len(self.shards))
        at = np.full(self.graph.num_nodes, -1, dtype=np.int32)
        trained = np.flatnonzero(self.graph.role == TRAIN)
        if not np.array_equal(self.graph.ids[trained], self.partition.nodes):
            trained = self.graph.positions(self.partition.nodes)
        at[trained] = place[self.partition.labels]
        return at

    def posteriors(
        self, positions: NDArray[np.int64], shards: Sequence[int] | None = None
    ) -> NDArray[np.float32]:
        """Posteriors ``[num_shards, len(positions), num_classes]`` of all or some shard models."""
        wanted = self.shard_ids if shards is None else shards
        weights = [self.shards[shard] for shard in wanted]
        return shard_posteriors(self.model, weights, self.graph, positions)


@dataclass(frozen=True, eq=False)
class Change:
    """What a request did to an ensemble, for aggregators that keep something between requests.

    Attributes:
        before: the ensemble before the request.
        retrained: ids of the shards with new weights; every posterior of theirs is stale.
        touched: sorted ids of the nodes left that have other neighbours or features than before.
    """

    before: Ensemble
    retrained: frozenset[int]
    touched: NDArray[np.int64]


@dataclass(frozen=True)
class Say:
    """What one member of the ensemble had to say about a node.

    Attributes:
        member: ``shard 7`` or ``global expert``.
        weight: its share of the decision; the weights of all members sum to 1.
        label: the class that it holds most likely.
        confidence: how likely.
    """

    member: str
    weight: float
    label: int
    confidence: float


@dataclass(frozen=True)
class Explanation:
    """Who decided about a node.

    Attributes:
        node: its id.
        label: the class that the ensemble decided for.
        members: heaviest first; members without any weight are left out.
        why: how the weights came about, in words.
    """

    node: int
    label: int
    members: tuple[Say, ...]
    why: str

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


class FittedAggregator(Protocol):
    """An aggregator with what it has learned."""

    @property
    def tensors(self) -> Mapping[str, NDArray[np.generic]]:
        """All that was learned, and what it was learned from: saved, hashed, compared bit for bit.

        What merely saves time and follows from the graph need not be among it.
        """

    def predict_proba(
        self, ensemble: Ensemble, positions: NDArray[np.int64]
    ) -> NDArray[np.float32]:
        """Posteriors ``[len(positions), num_classes]`` of the whole ensemble; rows sum to 1."""

    def explain(self, ensemble: Ensemble, position: int) -> Explanation:
        """Which members decide about one node, with what weight."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What a receipt should say about what was learned, e.g. that the sample is empty."""


@dataclass(frozen=True, eq=False)
class BoundAggregator:
    """A fitted aggregator with the ensemble that it speaks for: asked by node, not by position."""

    fitted: FittedAggregator
    ensemble: Ensemble

    @property
    def tensors(self) -> Mapping[str, NDArray[np.generic]]:
        """All that was learned or is cached."""
        return self.fitted.tensors

    @property
    def notes(self) -> tuple[str, ...]:
        """What a receipt should say about what was learned."""
        return self.fitted.notes

    def explain(self, node: int) -> Explanation:
        """Which members decide about one node, with what weight."""
        (position,) = self.ensemble.graph.positions([node])
        return self.fitted.explain(self.ensemble, int(position))


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
