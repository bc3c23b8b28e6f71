"""How much each shard has to say: its mean share of the decisions about the nodes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from grapheraser.aggregation.base import Ensemble
from grapheraser.aggregation.learned import FittedLearned
from grapheraser.aggregation.members.shards import FittedShards
from grapheraser.aggregation.pooled import FittedPool
from grapheraser.aggregation.routed import RoutedAggregator
from grapheraser.aggregation.routing import routes
from grapheraser.eraser import GraphEraser
from grapheraser.seeding import derive, keyed_hash
from grapheraser.service.serving import Model

# Nodes whose decisions are looked at, at the most; of an aggregation that has to be asked node by
# node, fewer.
_MOST, _MOST_ASKED = 2000, 100
_SHARD = "shard "

Shares = NDArray[np.float64]


def shard_importance(model: Model) -> dict[int, float]:
    """The importance of every shard that has a model, by its id.

    With the aggregation ``learned`` these are its importance scores. With others it is the share
    of the decision that a shard has on average, over all nodes or a keyed sample of them; what is
    missing to 1 is that of closed-form members. Empty for a run that predicts links.
    """
    if not isinstance(model, GraphEraser):
        return {}
    ensemble = model.aggregator_.ensemble
    shares = _shares(model.aggregator_.fitted, ensemble)
    return {shard: float(shares[shard]) for shard in ensemble.shard_ids}


def _shares(fitted: Any, ensemble: Ensemble) -> Shares:
    """The mean share of every shard, by its id."""
    if isinstance(fitted, FittedLearned):
        shares = np.zeros(ensemble.partition.num_shards)
        shares[fitted.sampled.shards] = fitted.importance / fitted.importance.sum()
        return shares
    if isinstance(fitted, RoutedAggregator):
        return _routed(fitted, ensemble)
    if isinstance(fitted, FittedPool):
        found = [m for m in fitted.members.values() if isinstance(m, FittedShards)]
        weights = fitted.weights
        total = sum(weights.values()) or 1.0
        parts = (_routed(m.routing, ensemble) * weights["shards"] / total for m in found)
        return sum(parts, np.zeros(ensemble.partition.num_shards))
    return _asked(fitted, ensemble)


def _routed(routing: RoutedAggregator, ensemble: Ensemble) -> Shares:
    positions = _sample(ensemble, _MOST)
    gathered = ensemble.gather(positions, features=False)
    asked, weights = routes(ensemble, gathered, routing.shards_asked, floor=routing.floor)
    total = np.bincount(
        asked.ravel() + 1, weights=weights.ravel(), minlength=ensemble.partition.num_shards + 1
    )
    return total[1:] / max(1, len(positions))


def _asked(fitted: Any, ensemble: Ensemble) -> Shares:
    shares = np.zeros(ensemble.partition.num_shards)
    positions = _sample(ensemble, _MOST_ASKED)
    for position in positions.tolist():
        for said in fitted.explain(ensemble, position).members:
            if said.member.startswith(_SHARD):
                shares[int(said.member.removeprefix(_SHARD))] += said.weight
    return shares / max(1, len(positions))


def _sample(ensemble: Ensemble, most: int) -> NDArray[np.int64]:
    """Positions of all nodes, or of those with the smallest keyed hashes."""
    graph = ensemble.graph
    if graph.num_nodes <= most:
        return np.arange(graph.num_nodes)
    hashes = keyed_hash(graph.ids, derive(ensemble.seed, "importance"))
    return np.sort(np.argpartition(hashes, most)[:most])
