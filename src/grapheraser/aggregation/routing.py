"""Where a node's neighbours live: how many walks of one and two steps end in each shard.

For a node w, the one-hop share of shard s is the part of w's neighbours that s was trained on. The
two-hop share is the mean of the one-hop shares of w's neighbours. Both are shares of walks that
end at a training node; walks that end elsewhere count for no shard. Where no walk of that length
ends at a training node, all shares are 0.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from grapheraser.aggregation.base import Ensemble
from grapheraser.kernels.compiled import compiled

Shares = NDArray[np.float64]


def hop_shares(
    ensemble: Ensemble, positions: NDArray[np.int64], *, without_own: bool = False
) -> tuple[Shares, Shares]:
    """One-hop and two-hop shares ``[len(positions), num_shards]``; a row sums to 1 or is 0.

    Args:
        ensemble: shards are in its order.
        positions: rows of its graph.
        without_own: leave out the shard that a training node itself belongs to.
    """
    graph = ensemble.graph
    shard_at = ensemble.shard_at
    walk_one, walk_two = _walks(
        graph.indptr, graph.indices, np.asarray(positions), shard_at, len(ensemble.shards)
    )
    if without_own:
        own = shard_at[positions]
        trained = np.flatnonzero(own >= 0)
        for shares in (walk_one, walk_two):
            shares[trained, own[trained]] = 0.0
    return _normalised(walk_one), _normalised(walk_two)


def _normalised(shares: Shares) -> Shares:
    # Row by row in a fixed order: numpy's pairwise sum depends on the row's length alone.
    total = shares.sum(axis=1, keepdims=True)
    return np.divide(shares, total, out=np.zeros_like(shares), where=total > 0)


@compiled
def _walks(
    indptr: NDArray[np.int64],
    indices: NDArray[np.int32],
    positions: NDArray[np.int64],
    shard_at: NDArray[np.int32],
    num_shards: int,
) -> tuple[Shares, Shares]:
    one = np.zeros((len(positions), num_shards))
    two = np.zeros((len(positions), num_shards))
    for r in range(len(positions)):
        start, end = indptr[positions[r]], indptr[positions[r] + 1]
        for e in range(start, end):
            near = indices[e]
            first = 1.0 / (end - start)
            if shard_at[near] >= 0:
                one[r, shard_at[near]] += first
            second = first / (indptr[near + 1] - indptr[near])
            for f in range(indptr[near], indptr[near + 1]):
                far = indices[f]
                # The walk back to where it came from says nothing about the neighbourhood.
                if far != positions[r] and shard_at[far] >= 0:
                    two[r, shard_at[far]] += second
    return one, two
