"""A model as it was served at one time, and what it answers about nodes handed to it.

Looking at two versions, an attacker asks both about the same candidates on the same graph. A shard
that the request between them left alone answers the same, so it is asked once (`Answers`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from grapheraser.aggregation import Ensemble, FittedAggregator
from grapheraser.eraser import GraphEraser
from grapheraser.graph import TEST, Graph
from grapheraser.models import Model
from grapheraser.partition import Partition
from grapheraser.training import ShardWeights, shard_posteriors


@dataclass(frozen=True, eq=False)
class Version:
    """A model as it was served at one time: all that its answers depend on, but for the graph."""

    partition: Partition
    shards: Mapping[int, ShardWeights]
    aggregator: FittedAggregator
    model: Model
    seed: int

    @classmethod
    def of(cls, eraser: GraphEraser) -> Version:
        """The version that a fitted eraser serves now."""
        bound = eraser.aggregator_
        ensemble = bound.ensemble
        return cls(
            partition=ensemble.partition,
            shards=ensemble.shards,
            aggregator=bound.fitted,
            model=ensemble.model,
            seed=ensemble.seed,
        )

    def ensemble(
        self, graph: Graph, candidates: NDArray[np.int64], known: Answers | None = None
    ) -> Ensemble:
        """The version on a graph in which the candidates have no shard."""
        role = graph.role.copy()
        role[graph.positions(candidates)] = TEST
        others = np.setdiff1d(self.partition.nodes, candidates)
        return _Asked(
            graph=replace(graph, role=role),
            partition=self.partition.restricted_to(others),
            shards=self.shards,
            model=self.model,
            seed=self.seed,
            known=known,
        )

    def posteriors(
        self, graph: Graph, candidates: ArrayLike, known: Answers | None = None
    ) -> NDArray[np.float32]:
        """What it says about candidates that are handed to it with their features and ties.

        Args:
            graph: the graph to ask on; may hold more nodes than the version was trained on.
            candidates: ids of nodes of it.
            known: what shard models have answered already, on the same graph.
        """
        ids = np.asarray(candidates, dtype=np.int64)
        ensemble = self.ensemble(graph, ids, known)
        return self.aggregator.predict_proba(ensemble, graph.positions(ids))


@dataclass(eq=False)
class Answers:
    """What the shard models of one version say about many candidates, each asked once.

    A shard model's answer follows from its weights and the graph alone. So a shard that a request
    left as it was need not be asked again after it.

    Attributes:
        version: whose shard models.
        graph: which they are asked on.
        positions: sorted rows of the graph, of all candidates that are expected.
        rows: by shard ``[len(positions), num_classes]``, filled when asked for.
    """

    version: Version
    graph: Graph
    positions: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    rows: dict[int, NDArray[np.float32]] = field(default_factory=dict)

    def expect(self, candidates: NDArray[np.int64]) -> None:
        """These are going to be asked about: then all of them are, at once."""
        wider = np.union1d(self.positions, self.graph.positions(candidates))
        if len(wider) > len(self.positions):
            self.positions = wider
            self.rows.clear()

    def holds(self, shard: int, weights: ShardWeights) -> bool:
        """Whether the version has the same weights for that shard."""
        return self.version.shards.get(shard) is weights

    def of_shards(
        self, shards: Sequence[int], positions: NDArray[np.int64]
    ) -> NDArray[np.float32] | None:
        """Answers ``[len(shards), len(positions), c]``; None where somebody else is asked about."""
        if not np.isin(positions, self.positions).all():
            return None
        at = np.searchsorted(self.positions, positions)
        missing = [shard for shard in shards if shard not in self.rows]
        weights = [self.version.shards[shard] for shard in missing]
        if missing:
            rows = shard_posteriors(self.version.model, weights, self.graph, self.positions)
            self.rows.update(zip(missing, rows, strict=True))
        return np.stack([self.rows[shard][at] for shard in shards])


@dataclass(frozen=True, eq=False)
class _Asked(Ensemble):
    """An ensemble that asks no shard model what is known already."""

    known: Answers | None = None

    def posteriors(
        self, positions: NDArray[np.int64], shards: Sequence[int] | None = None
    ) -> NDArray[np.float32]:
        """See `Ensemble`."""
        wanted = list(self.shard_ids if shards is None else shards)
        if self.known is None:
            return super().posteriors(positions, wanted)
        same = [self.known.holds(shard, self.shards[shard]) for shard in wanted]
        old, new = _split(wanted, same)
        known = self.known.of_shards(old, positions) if old else None
        if known is None:
            return super().posteriors(positions, wanted)
        out = np.empty((len(wanted), *known.shape[1:]), dtype=np.float32)
        out[np.flatnonzero(same)] = known
        if new:
            out[np.flatnonzero(np.logical_not(same))] = super().posteriors(positions, new)
        return out


def _split(shards: Sequence[int], by: Sequence[bool]) -> tuple[list[int], list[int]]:
    yes = [shard for shard, truth in zip(shards, by, strict=True) if truth]
    return yes, [shard for shard, truth in zip(shards, by, strict=True) if not truth]
