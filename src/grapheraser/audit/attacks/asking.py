"""What a published state answers about nodes that are handed to it.

An attacker who sees two states asks both about the same candidates on the same graph. A shard that
the request between them left alone gives the same answers, so it is asked once (`Answers`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from grapheraser.aggregation import Ensemble
from grapheraser.eraser import GraphEraser
from grapheraser.eraser.state import State
from grapheraser.graph import TEST, Graph
from grapheraser.training import ShardWeights, shard_posteriors


def state_of(eraser: GraphEraser) -> State:
    """The state that a fitted eraser serves now."""
    return State(eraser.aggregator_.ensemble, eraser.aggregator_.fitted)


def without_edges(graph: Graph) -> Graph:
    """The same nodes, each by itself: what an attacker shows who hands over features alone."""
    nothing = np.zeros(graph.num_nodes + 1, dtype=np.int64)
    return replace(graph, indptr=nothing, indices=np.zeros(0, dtype=np.int32))


def ask(
    state: State, graph: Graph, candidates: ArrayLike, known: Answers | None = None
) -> NDArray[np.float32]:
    """Posteriors of candidates that are handed to a state with their features and edges.

    Args:
        state: whose answers to get.
        graph: the graph to ask on; may hold more nodes than the state was trained on.
        candidates: ids of nodes of it; they have no shard while they are asked about.
        known: what shard models have answered already, on the same graph.
    """
    ids = np.asarray(candidates, dtype=np.int64)
    positions = graph.positions(ids)
    role = graph.role.copy()
    role[positions] = TEST
    ensemble = state.ensemble
    others = np.setdiff1d(ensemble.partition.nodes, ids)
    asked = _Asked(
        graph=replace(graph, role=role),
        partition=ensemble.partition.restricted_to(others),
        shards=ensemble.shards,
        model=ensemble.model,
        seed=ensemble.seed,
        known=known,
    )
    return state.aggregator.predict_proba(asked, positions)


@dataclass(eq=False)
class Answers:
    """What the shard models of one state say about many candidates, each asked once.

    A shard model's answer follows from its weights and the graph alone. So a shard that a request
    left as it was need not be asked again after it.

    Attributes:
        state: whose shard models.
        graph: which they are asked on.
        positions: sorted rows of the graph, of all candidates that are expected.
        rows: by shard ``[len(positions), num_classes]``, filled when asked for.
    """

    state: State
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
        """Whether the state has the same weights for that shard."""
        return self.state.shards.get(shard) is weights

    def of_shards(
        self, shards: Sequence[int], positions: NDArray[np.int64]
    ) -> NDArray[np.float32] | None:
        """Answers ``[len(shards), len(positions), c]``; None where somebody else is asked about."""
        if not np.isin(positions, self.positions).all():
            return None
        at = np.searchsorted(self.positions, positions)
        missing = [shard for shard in shards if shard not in self.rows]
        weights = [self.state.shards[shard] for shard in missing]
        if missing:
            rows = shard_posteriors(self.state.ensemble.model, weights, self.graph, self.positions)
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
