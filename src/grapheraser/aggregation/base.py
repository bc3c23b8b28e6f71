"""Protocol of aggregators, which turn the posteriors of all shard models into one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from grapheraser.engines import ShardModels, ShardWeights
from grapheraser.graph import Graph
from grapheraser.graph.ids import one_id
from grapheraser.inference import shard_posteriors
from grapheraser.inference.gather import (
    NO_FEATURES,
    WHOLE,
    Bound,
    Gathered,
    gather_field,
)
from grapheraser.inference.posteriors import asked_posteriors, features_read
from grapheraser.models import CustomModel, Model
from grapheraser.partition import Partition
from grapheraser.seeding import derive

# Neighbours of a hub that count where shards are routed; see docs/aggregation.md.
MAX_NEIGHBOURS = 64
# How far a node looks for shards to ask.
ROUTE_HOPS = 2


@dataclass(frozen=True, eq=False)
class Ensemble:
    """Trained shards on their current graph: all that an aggregator may look at.

    Attributes:
        graph: the whole current graph, test nodes included.
        partition: the shard of every node that is in one.
        shards: weights by shard id, ascending; shards without a labelled node are not there.
        model: the architecture of all shards.
        seed: the run's seed.
    """

    graph: Graph
    partition: Partition
    shards: Mapping[int, ShardWeights]
    model: Model
    seed: int

    @property
    def hops(self) -> int:
        """Number of rings to gather: as far as routes look, or a built-in model further."""
        if isinstance(self.model, CustomModel):
            return ROUTE_HOPS
        return max(ROUTE_HOPS, self.model.hops)

    @property
    def shard_ids(self) -> tuple[int, ...]:
        return tuple(ShardModels.of(self.shards).ids.tolist())

    def shards_of(self, nodes: NDArray[np.int64]) -> NDArray[np.int32]:
        """The trained shard that holds each of these nodes (ids); -1 where there is none."""
        shards = self.partition.shard_or_none(nodes)
        if not len(self._untrained):
            return shards
        return np.where(np.isin(shards, self._untrained), np.int32(-1), shards)

    @cached_property
    def _untrained(self) -> NDArray[np.int64]:
        """Ids of the shards that hold nodes, but no model: none of the nodes has a label."""
        trained = ShardModels.of(self.shards).ids
        return np.setdiff1d(self.partition.shard_ids, trained, assume_unique=True)

    def posteriors(
        self, positions: NDArray[np.int64], shards: Sequence[int] | None = None
    ) -> NDArray[np.float32]:
        """Posteriors ``[num_shards, len(positions), num_classes]`` of all or some shard models."""
        wanted = self.shard_ids if shards is None else shards
        weights = [self.shards[shard] for shard in wanted]
        return shard_posteriors(self.model, weights, self.graph, positions)

    def gather(
        self, positions: NDArray[np.int64], bound: Bound | None = None, *, features: bool = True
    ) -> Gathered:
        """Some nodes with their neighbourhoods, to be asked about.

        Args:
            positions: rows of the graph.
            bound: how many neighbours of a node count; None: those that count for predictions.
            features: whether posteriors will be asked for.
        """
        if bound is None:
            key = derive(self.seed, "hubs")
            bound = Bound(MAX_NEIGHBOURS, key) if len(self.shards) > 1 else WHOLE
        read = features_read(self.model) if features else NO_FEATURES
        return gather_field(self.graph, positions, bound, hops=self.hops, features=read)

    def asked_posteriors(self, gathered: Gathered, asked: NDArray[np.int32]) -> NDArray[np.float32]:
        """Ask each gathered node's own few shards about it.

        Args:
            gathered: what `gather` gave.
            asked: int32 ``[gathered.wanted, m]``, ids of shards; -1 for nobody.

        Returns: float32 ``[gathered.wanted, m, num_classes]``; zeros where nobody was asked. A
        user's own module sees the whole graph.
        """
        classes = self.graph.num_classes
        if not isinstance(self.model, CustomModel):
            raw = not self.graph.label_kind.is_classes
            return asked_posteriors(self.model, self.shards, gathered, asked, classes, raw=raw)
        shards = np.unique(asked[asked >= 0])
        rows = self.graph.positions(gathered.nodes[: gathered.wanted])
        found = self.posteriors(rows, shards.tolist())
        out = found[np.searchsorted(shards, np.maximum(asked, 0)), np.arange(len(rows))[:, None]]
        return np.where(asked[:, :, None] >= 0, out, np.float32(0.0))


@dataclass(frozen=True, eq=False)
class Change:
    """A request's effect on an ensemble, for aggregators that keep something between requests.

    Attributes:
        before: the ensemble before the request.
        retrained: ids of the shards with new weights; every posterior of theirs is stale.
        touched: sorted ids of the nodes left that have other neighbours, features or labels than
            before, or are new.
        gone: sorted ids of the nodes that are no longer in the graph.
    """

    before: Ensemble
    retrained: frozenset[int]
    touched: NDArray[np.int64]
    gone: NDArray[np.int64]

    @cached_property
    def changed(self) -> NDArray[np.int64]:
        """Sorted ids of all nodes that are not what they were."""
        return np.union1d(self.touched, self.gone)


@dataclass(frozen=True)
class Say:
    """One member's part in the decision about a node.

    Attributes:
        member: ``shard 7`` or ``global expert``.
        weight: its share of the decision; the weights of all members sum to 1.
        label: the class that it holds most likely; of one of several labels, 0 or 1.
        confidence: how likely; of a number, the number that it says.
    """

    member: str
    weight: float
    label: int
    confidence: float


@dataclass(frozen=True)
class Explanation:
    """The members that decided about a node.

    Attributes:
        node: its id, or its name where nodes have names.
        label: the class that the ensemble decided for; or what it says of the target.
        members: heaviest first; members without any weight are left out.
        why: how the weights came about, in words.
        target: of several labels or numbers the name of the one that is explained.
    """

    node: int | str
    label: float
    members: tuple[Say, ...]
    why: str
    target: str | None = None

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def explain_shards(
    ensemble: Ensemble,
    position: int,
    weights: NDArray[np.float64],
    *,
    label: int,
    why: str,
) -> Explanation:
    """Explain a decision by one weight per shard ``[num_shards]``, in the ensemble's order."""
    heard = [shard for shard, w in zip(ensemble.shard_ids, weights, strict=True) if w > 0]
    posteriors = ensemble.posteriors(np.array([position]), heard)[:, 0]
    shares = weights[weights > 0] / weights.sum()
    says = [
        say(f"shard {shard}", share, posterior)
        for shard, share, posterior in zip(heard, shares, posteriors, strict=True)
    ]
    return explanation(ensemble, position, says, label=label, why=why)


def say(member: str, weight: float, posterior: NDArray[np.floating]) -> Say:
    """Return the part of a member with this posterior ``[num_classes]``."""
    label = int(posterior.argmax())
    return Say(member, float(weight), label, float(posterior[label]))


def explanation(
    ensemble: Ensemble,
    position: int,
    says: Sequence[Say],
    *,
    label: float,
    why: str,
    target: str | None = None,
) -> Explanation:
    """Put the heaviest first; equals stay in the order given."""
    ordered = sorted(says, key=lambda item: -item.weight)
    graph = ensemble.graph
    (node,) = graph.names_of(graph.ids_at(np.array([position])))
    return Explanation(node, label, tuple(ordered), why, target)


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
        """Remarks for a receipt about what was learned, e.g. that the sample is empty."""


@runtime_checkable
class ExplainsTargets(Protocol):
    """A fitted aggregator that several labels and numbers are learned with."""

    def explain_target(self, ensemble: Ensemble, position: int, target: int) -> Explanation:
        """Which members decide about one target of one node, with what weight."""


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
        """Remarks for a receipt about what was learned."""
        return self.fitted.notes

    def explain(self, node: int | str, target: int | str | None = None) -> Explanation:
        """Which members decide about one node, or one of its targets, with what weight."""
        node, graph = one_id(node, "node", "explain"), self.ensemble.graph
        position, kind = int(graph.positions([node])[0]), graph.label_kind
        if target is None and kind.is_classes:
            return self.fitted.explain(self.ensemble, position)
        number = kind.number_of(0 if target is None else target)
        assert isinstance(self.fitted, ExplainsTargets)  # others learn no targets
        return self.fitted.explain_target(self.ensemble, position, number)


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


@runtime_checkable
class ChecksTensors(Protocol):
    """An aggregator that knows what its tensors must look like: all that are built in."""

    def check_tensors(self, tensors: Mapping[str, NDArray[np.generic]], ensemble: Ensemble) -> None:
        """Raise `CorruptRunError` unless `restore` and all that follows can do with these."""
