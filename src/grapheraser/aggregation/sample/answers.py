"""Answers of each sampled node's own few shards, kept between requests.

Every sampled node is judged by the shards that weigh most for it, without the one that was trained
on it, on a thinned neighbourhood. After a request only the stale answers are computed again: those
of shards with new weights, those about nodes whose thinned neighbourhood has changed, and those
that were not asked for before.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from grapheraser.aggregation.base import Change, Ensemble
from grapheraser.aggregation.routed import Routes, mixed, routes
from grapheraser.aggregation.sample.view import moved, seen_before, seen_ids, sees, thinning
from grapheraser.kernels.compiled import compiled
from grapheraser.kernels.sets import ranks
from grapheraser.models import ModelSpec

Ids = NDArray[np.int64]
# The number of no shard, not even of nobody, who is -1.
_NONE = -2


@dataclass(frozen=True, eq=False)
class SampledAnswers:
    """The sampled nodes, whom they ask, and what they hear.

    Attributes:
        nodes: int64 ``[s]``, sorted ids.
        routes: whom each asks, ``[s, m]``.
        values: float32 ``[s, m, num_classes]``, their posteriors; zeros where nobody is asked.
        seen: int64 ``[s, most_seen]``, ids of the nodes in each thinned neighbourhood, repeated
            where it has fewer; None where that was not kept. It saves time and follows from the
            graph.
    """

    nodes: Ids
    routes: Routes
    values: NDArray[np.float32]
    seen: Ids | None = None

    @property
    def tensors(self) -> Mapping[str, NDArray[np.generic]]:
        asked, weights = self.routes
        return {"nodes": self.nodes, "asked": asked, "weights": weights, "posteriors": self.values}

    @classmethod
    def restore(cls, tensors: Mapping[str, NDArray[np.generic]]) -> SampledAnswers:
        """From what `tensors` gave."""
        asked = np.asarray(tensors["asked"], dtype=np.int32)
        weights = np.asarray(tensors["weights"], dtype=np.float64)
        return cls(
            np.asarray(tensors["nodes"], dtype=np.int64),
            Routes(asked, weights),
            np.asarray(tensors["posteriors"], dtype=np.float32),
        )

    def mixed(self) -> NDArray[np.float64]:
        """The weighted sum of what each node hears, ``[s, num_classes]``."""
        mean: NDArray[np.float64] = mixed(self.routes.weights, self.values)
        return mean


def collect(ensemble: Ensemble, nodes: Ids, most: int) -> SampledAnswers:
    """Ask ``most`` shards about every node."""
    positions = ensemble.graph.positions(nodes)
    found = _routes(ensemble, positions, most)
    gathered = ensemble.gather(positions, thinning(ensemble.seed))
    values = ensemble.asked_posteriors(gathered, found.asked)
    return SampledAnswers(nodes, found, values, seen_ids(gathered, ensemble.hops))


def refresh(
    old: SampledAnswers, ensemble: Ensemble, change: Change, nodes: Ids, most: int
) -> SampledAnswers:
    """Return what `collect` gives, computing only what the change made stale.

    A user's own module may give other bits to a node with other nodes beside it, so all of its
    posteriors are computed again.
    """
    if not isinstance(ensemble.model, ModelSpec) or len(old.nodes) == 0:
        return collect(ensemble, nodes, most)
    positions = ensemble.graph.positions(nodes)
    (asked, weights), values, seen, new = _aligned(old, change.before, nodes)
    due = _asks_any(asked, change.retrained)
    rows = _rerouted(ensemble, change, nodes, new)
    if len(rows):
        heard_from, heard = asked[rows], values[rows]
        asked[rows], weights[rows] = _routes(ensemble, positions[rows], most)
        values[rows], known = _carried(heard_from, heard, asked[rows])
        due[rows] = ~known | _asks_any(asked[rows], change.retrained)
    stale = new | sees(
        seen, moved(change.before.graph, ensemble.graph, change.touched, ensemble.seed)
    )
    due[stale] = True
    due &= asked >= 0
    rows = np.flatnonzero(due.any(axis=1) | stale)
    if len(rows):
        gathered = ensemble.gather(positions[rows], thinning(ensemble.seed))
        again = due[rows]
        found = ensemble.asked_posteriors(gathered, np.where(again, asked[rows], np.int32(-1)))
        values[rows] = np.where(again[:, :, None], found, values[rows])
        seen[rows] = seen_ids(gathered, ensemble.hops)
    return SampledAnswers(nodes, Routes(asked, weights), values, seen)


def _routes(ensemble: Ensemble, positions: NDArray[np.int64], most: int) -> Routes:
    return routes(ensemble, ensemble.gather(positions, features=False), most, without_own=True)


def _aligned(
    old: SampledAnswers, ensemble: Ensemble, nodes: Ids
) -> tuple[Routes, NDArray[np.float32], Ids, NDArray[np.bool_]]:
    """Copies of what was kept in the order of ``nodes``, and which of them are new.

    Args:
        old: what was kept.
        ensemble: of that time.
        nodes: sorted ids of the nodes sampled now.
    """
    seen = seen_before(ensemble, old.nodes) if old.seen is None else old.seen
    if nodes is old.nodes:
        asked, weights = old.routes
        none = np.zeros(len(nodes), dtype=bool)
        return Routes(asked.copy(), weights.copy()), old.values.copy(), seen.copy(), none
    at = np.minimum(np.searchsorted(old.nodes, nodes), len(old.nodes) - 1)
    new = old.nodes[at] != nodes
    asked, weights, values = old.routes.asked[at], old.routes.weights[at], old.values[at]
    asked[new], values[new] = -1, 0.0
    return Routes(asked, weights), values, seen[at], new


def _rerouted(
    ensemble: Ensemble, change: Change, nodes: Ids, new: NDArray[np.bool_]
) -> NDArray[np.int64]:
    """The sampled nodes that may ask other shards than before.

    All walks of two steps that a change makes or ends pass a touched node next to where they begin,
    or begin there.
    """
    if ensemble.shard_ids != change.before.shard_ids:
        return np.arange(len(nodes))  # a node that knows nobody asks among those present
    near = ranks(nodes, ensemble.graph.around(change.touched)) >= 0
    return np.flatnonzero(new | near | (ranks(nodes, change.touched) >= 0))


def _asks_any(asked: NDArray[np.int32], shards: frozenset[int]) -> NDArray[np.bool_]:
    """Where one of these shards is asked; mostly there is one."""
    if len(shards) > 1:
        return np.isin(asked, list(shards))
    return asked == next(iter(shards), _NONE)


@compiled
def _carried(
    heard_from: NDArray[np.int32], heard: NDArray[np.float32], asked: NDArray[np.int32]
) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
    """Return the old answers of the shards that are asked now, and which of them there are."""
    values = np.zeros(heard.shape, dtype=np.float32)
    known = np.zeros(asked.shape, dtype=np.bool_)
    for r in range(asked.shape[0]):
        for i in range(asked.shape[1]):
            known[r, i] = asked[r, i] < 0
            for j in range(asked.shape[1]):
                if heard_from[r, j] == asked[r, i] >= 0:
                    known[r, i] = True
                    for c in range(heard.shape[2]):
                        values[r, i, c] = heard[r, j, c]
    return values, known
