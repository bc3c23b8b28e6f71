"""Routing: each node asks the shards where its neighbours live.

A shard model is an expert on its own neighbourhood. For a node w, the one-hop share of shard s is
the part of w's neighbours that s was trained on. The two-hop share is the mean of the one-hop
shares of w's neighbours. Both are shares of walks that end at a training node; walks that end
elsewhere count for no shard. A shard weighs the mean of both, and a floor. The few shards that
weigh most are asked, ties go to the smaller id. About a node from which no walk ends at a training
node, shards chosen by a keyed hash are asked alike.

Nothing is learned, and labels have no part in it. A node inserted later is routed like any other,
by the edges that it came with; once it is trained on, it counts as a neighbour of others.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from grapheraser.aggregation.base import Ensemble, Explanation, explanation, say
from grapheraser.aggregation.mean_majority import Stateless
from grapheraser.checks import real, whole
from grapheraser.inference.gather import Gathered
from grapheraser.kernels.compiled import compiled
from grapheraser.kernels.hashing import paired
from grapheraser.kernels.neighbourhoods import admit, places_for
from grapheraser.seeding import derive

# Chosen on validation nodes; see docs/aggregation.md.
SHARDS_ASKED = 8


@dataclass(frozen=True)
class RoutedAggregator(Stateless):
    """Shards weighted per node by where its one- and two-hop neighbours live.

    Attributes:
        floor: added to every shard's weight. With a floor of 0, only shards with neighbours of a
            node are asked about it.
        shards_asked: how many shards are asked about a node: those that weigh most.
    """

    floor: float = 0.005
    shards_asked: int = SHARDS_ASKED
    name: str = "routed"

    def __post_init__(self) -> None:
        real("floor", "RoutedAggregator", self.floor, 0)
        asked = whole("shards_asked", "RoutedAggregator", self.shards_asked, 1)
        object.__setattr__(self, "shards_asked", asked)

    def answers(
        self, ensemble: Ensemble, positions: NDArray[np.int64]
    ) -> tuple[Routes, NDArray[np.float32]]:
        """Return whom each node asks, and answers ``[num_nodes, shards_asked, num_classes]``."""
        gathered = ensemble.gather(positions)
        found = routes(ensemble, gathered, self.shards_asked, floor=self.floor)
        return found, ensemble.asked_posteriors(gathered, found.asked)

    def predict_proba(
        self, ensemble: Ensemble, positions: NDArray[np.int64]
    ) -> NDArray[np.float32]:
        """See `FittedAggregator`."""
        found, posteriors = self.answers(ensemble, positions)
        total = mixed(found.weights, posteriors)
        return (total / total.sum(axis=1, keepdims=True)).astype(np.float32)

    def explain(self, ensemble: Ensemble, position: int) -> Explanation:
        """See `FittedAggregator`."""
        found, posteriors = self.answers(ensemble, np.array([position]))
        label = int(mixed(found.weights, posteriors)[0].argmax())
        says = [
            say(f"shard {shard}", weight, posterior)
            for shard, weight, posterior in zip(
                found.asked[0], found.weights[0], posteriors[0], strict=True
            )
            if weight > 0
        ]
        why = "shards weigh as many of the node's one- and two-hop neighbours as they hold"
        return explanation(ensemble, position, says, label=label, why=why)


Labels = NDArray[np.int32]


class Routes(NamedTuple):
    """Shards that are asked about each of some nodes.

    Attributes:
        asked: int32 ``[num_nodes, most]``, ids of shards, ascending, then -1 where there are fewer.
        weights: float64 of the same shape; rows sum to 1.
    """

    asked: Labels
    weights: NDArray[np.float64]


def routes(
    ensemble: Ensemble,
    gathered: Gathered,
    most: int,
    *,
    floor: float = 0.0,
    without_own: bool = False,
) -> Routes:
    """Choose the shards to ask about some nodes.

    Args:
        ensemble: the shards.
        gathered: the nodes with their neighbourhoods in its graph, two hops.
        most: how many shards to ask about a node.
        floor: added to every shard's weight; with 0, only shards with neighbours are asked.
        without_own: leave out the shard that a training node itself belongs to, unless there is
            no other.
    """
    present = np.array(ensemble.shard_ids, dtype=np.int32)
    count = min(most, len(present))
    asked = np.full((gathered.wanted, most), -1, dtype=np.int32)
    weights = np.zeros((gathered.wanted, most))
    _route(
        gathered.indptr,
        gathered.indices,
        gathered.nodes,
        ensemble.shards_of(gathered.nodes),
        np.uint64(derive(ensemble.seed, "routing")),
        present,
        ensemble.partition.num_shards,
        count,
        floor,
        without_own and len(present) > 1,
        asked,
        weights,
    )
    return Routes(asked, weights)


@compiled
def _route(
    indptr: NDArray[np.int64],
    indices: Labels,
    nodes: NDArray[np.int64],
    labels: Labels,
    key: np.uint64,
    present: Labels,
    num_shards: int,
    count: int,
    floor: float,
    without_own: bool,
    asked: Labels,
    weights: NDArray[np.float64],
) -> None:
    one, two = np.empty(num_shards + 1), np.empty(num_shards + 1)
    for r in range(len(asked)):
        own = labels[r] if without_own else -1
        _walk(indptr, indices, nodes, labels, r, one, two)
        chosen = _heaviest(one, two, own, count, floor, asked[r], weights[r])
        if chosen == 0:
            chosen = _hashed(present, own, paired(key, np.uint64(nodes[r])), asked[r, :count])
            for i in range(chosen):
                weights[r, i] = 1.0
        elif floor > 0.0:
            chosen = _filled(one, two, present, own, chosen, count, floor, asked[r], weights[r])
        _finish(asked[r, :chosen], weights[r, :chosen])


@compiled
def _walk(
    indptr: NDArray[np.int64],
    indices: Labels,
    nodes: NDArray[np.int64],
    labels: Labels,
    r: int,
    one: NDArray[np.float64],
    two: NDArray[np.float64],
) -> None:
    """Add up the walks of one and two steps by the shard where they end, at its id + 1.

    Those that end in no shard are at 0. Walks are added in the order of the gathered neighbours:
    the last bits of the shares depend on it.
    """
    for shard in range(len(one)):
        one[shard] = two[shard] = 0.0
    start, end = indptr[r], indptr[r + 1]
    for e in range(start, end):
        near = indices[e]
        first = 1.0 / (end - start)
        one[labels[near] + 1] += first
        second = first / (indptr[near + 1] - indptr[near])
        for f in range(indptr[near], indptr[near + 1]):
            far = indices[f]
            # The walk back to where it came from says nothing about the neighbourhood.
            two[labels[far] + 1] += second if nodes[far] != nodes[r] else 0.0


@compiled
def _heaviest(
    one: NDArray[np.float64],
    two: NDArray[np.float64],
    own: int,
    count: int,
    floor: float,
    asked: Labels,
    weights: NDArray[np.float64],
) -> int:
    """Write the shards that weigh most, heaviest first; returns how many there are."""
    num_shards = len(one) - 1
    one_total, two_total = 0.0, 0.0
    for shard in range(num_shards):
        if shard != own:
            one_total += one[shard + 1]
            two_total += two[shard + 1]
    chosen = 0
    for shard in range(num_shards):
        if shard == own or (one[shard + 1] == 0.0 and two[shard + 1] == 0.0):
            continue
        weight = floor
        if one_total > 0.0:
            weight += 0.5 * (one[shard + 1] / one_total)
        if two_total > 0.0:
            weight += 0.5 * (two[shard + 1] / two_total)
        if chosen == count and weights[count - 1] >= weight:
            continue
        at = min(chosen, count - 1)
        while at > 0 and weights[at - 1] < weight:
            asked[at], weights[at] = asked[at - 1], weights[at - 1]
            at -= 1
        asked[at], weights[at] = shard, weight
        chosen = min(chosen + 1, count)
    return chosen


@compiled
def _hashed(present: Labels, own: int, key: np.uint64, out: Labels) -> int:
    """Write the shards with the smallest keyed hashes; returns how many there are."""
    hashes, chosen = places_for(len(out))
    count = 0
    for shard in present:
        if shard != own:
            count = admit(paired(key, np.uint64(shard)), shard, hashes, chosen, count)
    for i in range(count):
        out[i] = chosen[i]
    return count


@compiled
def _filled(
    one: NDArray[np.float64],
    two: NDArray[np.float64],
    present: Labels,
    own: int,
    chosen: int,
    count: int,
    floor: float,
    asked: Labels,
    weights: NDArray[np.float64],
) -> int:
    """Let in shards without any neighbour, smallest ids first, until there are enough."""
    for shard in present:
        if chosen == count:
            break
        if shard != own and one[shard + 1] == 0.0 and two[shard + 1] == 0.0:
            asked[chosen], weights[chosen] = shard, floor
            chosen += 1
    return chosen


@compiled
def _finish(asked: Labels, weights: NDArray[np.float64]) -> None:
    """Put the shards in the order of their ids, and make the weights sum to 1."""
    for i in range(1, len(asked)):
        at = i
        while at > 0 and asked[at - 1] > asked[at]:
            asked[at - 1], asked[at] = asked[at], asked[at - 1]
            weights[at - 1], weights[at] = weights[at], weights[at - 1]
            at -= 1
    total = 0.0
    for weight in weights:
        total += weight
    for i in range(len(weights)):
        weights[i] /= total


@compiled
def mixed(weights, values):  # type: ignore[no-untyped-def]
    """Sum the asked shards' posteriors by each node's weights, float64 ``[n, num_classes]``.

    In the order of the shards' ids, each node by itself.
    """
    n, most, c = values.shape
    out = np.zeros((n, c))
    for v in range(n):
        for i in range(most):
            if weights[v, i] > 0.0:
                for u in range(c):
                    out[v, u] += weights[v, i] * values[v, i, u]
    return out
