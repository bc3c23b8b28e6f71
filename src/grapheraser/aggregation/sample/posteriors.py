"""Posteriors of the sampled nodes under every shard model, kept between requests.

After a request only the stale ones are computed again. The posteriors of a node have the same bits
whatever other nodes are computed with it, so what is kept and what is computed fit together as if
all had been computed at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from grapheraser.aggregation.base import Change, Ensemble
from grapheraser.aggregation.sample.view import moved, seen_before, sees, thinning
from grapheraser.inference.posteriors import posteriors
from grapheraser.kernels.compiled import compiled
from grapheraser.models import ModelSpec


@dataclass(frozen=True, eq=False)
class SampledPosteriors:
    """Posteriors of the shard models about the sampled nodes.

    Attributes:
        nodes: int64 ``[m]``, sorted ids.
        shards: int64 ``[k]``, ids of the shards, ascending.
        values: float32 ``[k, m, num_classes]``.
    """

    nodes: NDArray[np.int64]
    shards: NDArray[np.int64]
    values: NDArray[np.float32]

    @property
    def tensors(self) -> Mapping[str, NDArray[np.generic]]:
        return {"nodes": self.nodes, "shards": self.shards, "posteriors": self.values}

    @classmethod
    def restore(cls, tensors: Mapping[str, NDArray[np.generic]]) -> SampledPosteriors:
        """From what `tensors` gave."""
        return cls(
            np.asarray(tensors["nodes"], dtype=np.int64),
            np.asarray(tensors["shards"], dtype=np.int64),
            np.asarray(tensors["posteriors"], dtype=np.float32),
        )

    def true_class(self, ensemble: Ensemble) -> NDArray[np.float64]:
        """Return what each shard gives to each node's true class, ``[k, m]``."""
        labels = ensemble.graph.labels(self.nodes)
        return _picked(self.values, labels)


@compiled
def _picked(values: NDArray[np.float32], labels: NDArray[np.int64]) -> NDArray[np.float64]:
    out = np.empty(values.shape[:2])
    for i in range(values.shape[0]):
        for w in range(values.shape[1]):
            out[i, w] = values[i, w, labels[w]]
    return out


def collect(ensemble: Ensemble, nodes: NDArray[np.int64]) -> SampledPosteriors:
    """Compute all of them."""
    values = _thinned(ensemble, ensemble.graph.positions(nodes), ensemble.shard_ids)
    return SampledPosteriors(nodes, np.array(ensemble.shard_ids, dtype=np.int64), values)


def refresh(
    old: SampledPosteriors, ensemble: Ensemble, change: Change, nodes: NDArray[np.int64]
) -> SampledPosteriors:
    """Return what `collect` gives, computing only what the change made stale.

    Shards with new weights: all sampled nodes. Other shards: sampled nodes whose (thinned)
    neighbourhood has changed, and nodes that were not sampled before. A user's own module may give
    other bits to a node with other nodes beside it, so all of its posteriors are computed again.
    """
    if not isinstance(ensemble.model, ModelSpec):
        return collect(ensemble, nodes)
    shards = np.array(ensemble.shard_ids, dtype=np.int64)
    positions = ensemble.graph.positions(nodes)
    values = np.empty((len(shards), len(nodes), ensemble.graph.num_classes), dtype=np.float32)

    fresh = ~np.isin(shards, old.shards) | np.isin(shards, list(change.retrained))
    if fresh.any():
        values[fresh] = _thinned(ensemble, positions, shards[fresh].tolist())
    kept = shards[~fresh]
    if len(kept):
        different = moved(change.before.graph, ensemble.graph, change.touched, ensemble.seed)
        changed = sees(seen_before(change.before, old.nodes), different)
        stale = ~np.isin(nodes, old.nodes[~changed])
        rows = np.flatnonzero(~fresh)
        _copy(old, shards, nodes, ~fresh, ~stale, values)
        again = np.flatnonzero(stale)
        if len(again):
            values[np.ix_(rows, again)] = _thinned(ensemble, positions[again], kept.tolist())
    return SampledPosteriors(nodes, shards, values)


def _copy(
    old: SampledPosteriors,
    shards: NDArray[np.int64],
    nodes: NDArray[np.int64],
    kept: NDArray[np.bool_],
    valid: NDArray[np.bool_],
    values: NDArray[np.float32],
) -> None:
    """Copy what is still valid: for kept shards, the valid nodes."""
    rows = np.searchsorted(old.shards, shards[kept])
    if np.array_equal(nodes, old.nodes):
        values[kept] = old.values[rows]  # stale ones too: they are about to be overwritten
        return
    columns = np.searchsorted(old.nodes, nodes[valid])
    for row, source in zip(np.flatnonzero(kept), rows, strict=True):
        values[row, valid] = old.values[source, columns]


def _thinned(
    ensemble: Ensemble, positions: NDArray[np.int64], shards: Sequence[int]
) -> NDArray[np.float32]:
    """Posteriors of some shards on thinned neighbourhoods; a user's own module sees the graph.

    Thinned edges have a direction, which such a module may read the other way round.
    """
    if not isinstance(ensemble.model, ModelSpec):
        return ensemble.posteriors(positions, shards)
    weights = [ensemble.shards[shard] for shard in shards]
    return posteriors(ensemble.model, weights, ensemble.graph, positions, thinning(ensemble.seed))
