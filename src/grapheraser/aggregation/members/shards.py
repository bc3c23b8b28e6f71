"""Shards: what the routed shard models say together, as a member of the pool.

A sampled node was trained on in one of the shards, which therefore knows its label. So it is judged
by the others alone, on a thinned neighbourhood (see `sample.view`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from grapheraser.aggregation.base import Change, Ensemble
from grapheraser.aggregation.members.base import Evidence, FittedMember, Ids, Positions
from grapheraser.aggregation.routed import RoutedAggregator
from grapheraser.aggregation.routing import Shares, hop_shares
from grapheraser.aggregation.sample.posteriors import SampledPosteriors, collect, refresh
from grapheraser.kernels.compiled import compiled
from grapheraser.kernels.elementary import logarithms

_LEAST = 1e-6


@dataclass(frozen=True)
class RoutedShards:
    """The shards, weighted by where a node's neighbours live.

    Attributes:
        routing: how shards are weighted.
    """

    routing: RoutedAggregator = field(default_factory=lambda: RoutedAggregator(floor=0.0))

    def fit(self, ensemble: Ensemble, sample: Ids) -> FittedShards:
        """See `Member`."""
        return FittedShards(self.routing, collect(ensemble, sample))

    def refit(
        self, fitted: FittedMember, ensemble: Ensemble, change: Change, sample: Ids
    ) -> FittedShards:
        """See `Member`."""
        assert isinstance(fitted, FittedShards)
        return FittedShards(self.routing, refresh(fitted.sampled, ensemble, change, sample))

    def restore(self, tensors: Mapping[str, NDArray[np.generic]]) -> FittedShards:
        """See `Member`."""
        return FittedShards(self.routing, SampledPosteriors.restore(tensors))


@dataclass(frozen=True, eq=False)
class FittedShards:
    """The shards' posteriors of the sampled nodes.

    Attributes:
        routing: how shards are weighted.
        sampled: what every shard says about the sampled nodes.
    """

    routing: RoutedAggregator
    sampled: SampledPosteriors

    @property
    def names(self) -> tuple[str, ...]:
        return ("shards",)

    @property
    def tensors(self) -> Mapping[str, NDArray[np.generic]]:
        return self.sampled.tensors

    def evidence(self, ensemble: Ensemble, positions: Positions) -> Evidence:
        """See `FittedMember`."""
        posteriors = self.routing.predict_proba(ensemble, positions).astype(np.float64)
        evidence: Evidence = logarithms(np.maximum(posteriors, _LEAST))
        return evidence[:, None]

    def held_out(self, ensemble: Ensemble, sample: Ids) -> Evidence:
        """See `FittedMember`: without the shard that a node was trained in."""
        weights = _without_own(ensemble, ensemble.graph.positions(sample))
        mixed = _mixed(weights, self.sampled.values)
        evidence: Evidence = logarithms(np.maximum(mixed, _LEAST))
        return evidence[:, None]


def _without_own(ensemble: Ensemble, positions: Positions) -> Shares:
    """Weights of the shards ``[len(positions), num_shards]``, none for a node's own."""
    one, two = hop_shares(ensemble, positions, without_own=True)
    weights = one + two
    alone = weights.sum(axis=1) == 0
    weights[alone] = 1.0
    own = ensemble.shard_at[positions]
    if len(ensemble.shards) > 1:
        mine = np.flatnonzero(own >= 0)
        weights[mine, own[mine]] = 0.0
    return weights / weights.sum(axis=1, keepdims=True)


@compiled
def _mixed(weights, values):  # type: ignore[no-untyped-def]
    """Sum of the shards' posteriors by each node's weights ``[num_nodes, num_classes]``."""
    k, m, c = values.shape
    out = np.zeros((m, c))
    for v in range(m):
        for s in range(k):
            if weights[v, s] > 0.0:
                for u in range(c):
                    out[v, u] += weights[v, s] * values[s, v, u]
    return out
