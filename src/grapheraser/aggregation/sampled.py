"""Posteriors of the sampled nodes under every shard model, kept between requests.

After a request only the stale ones are computed again. The posteriors of a node have the same bits
whatever other nodes are computed with it, so what is kept and what is computed fit together as if
all had been computed at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from grapheraser.aggregation.base import Change, Ensemble


@dataclass(frozen=True, eq=False)
class SampledPosteriors:
    """What the shard models say about the sampled nodes.

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
        """What each shard gives to each node's true class, ``[k, m]``."""
        labels = ensemble.graph.y[ensemble.graph.positions(self.nodes)]
        return self.values[:, np.arange(len(self.nodes)), labels].astype(np.float64)


def collect(ensemble: Ensemble, nodes: NDArray[np.int64]) -> SampledPosteriors:
    """Compute all of them."""
    values = ensemble.posteriors(ensemble.graph.positions(nodes))
    return SampledPosteriors(nodes, np.array(ensemble.shard_ids, dtype=np.int64), values)


def refresh(
    old: SampledPosteriors, ensemble: Ensemble, change: Change, nodes: NDArray[np.int64]
) -> SampledPosteriors:
    """What `collect` gives, computing only what the change made stale.

    Shards with new weights: all sampled nodes. Other shards: sampled nodes in ``change.stale``,
    and nodes that were not sampled before.
    """
    if change.stale is None:
        return collect(ensemble, nodes)
    shards = np.array(ensemble.shard_ids, dtype=np.int64)
    positions = ensemble.graph.positions(nodes)
    values = np.empty((len(shards), len(nodes), ensemble.graph.num_classes), dtype=np.float32)

    fresh = ~np.isin(shards, old.shards) | np.isin(shards, list(change.retrained))
    if fresh.any():
        values[fresh] = ensemble.posteriors(positions, shards[fresh].tolist())
    kept = shards[~fresh]
    if len(kept):
        stale = ~np.isin(nodes, old.nodes) | np.isin(nodes, change.stale)
        rows = np.flatnonzero(~fresh)
        source = np.searchsorted(old.shards, kept)
        valid = np.flatnonzero(~stale)
        columns = np.searchsorted(old.nodes, nodes[valid])
        values[np.ix_(rows, valid)] = old.values[np.ix_(source, columns)]
        again = np.flatnonzero(stale)
        if len(again):
            values[np.ix_(rows, again)] = ensemble.posteriors(positions[again], kept.tolist())
    return SampledPosteriors(nodes, shards, values)
