"""Thinned neighbourhoods, by which sampled nodes are judged: a few neighbours per node.

To learn weights, a sampled node is shown to shard models with a thinned neighbourhood: of each
node's neighbours only the `FANOUT` with the smallest keyed hashes count. That bounds what has to be
computed for a retrained shard, and a deletion then changes the posteriors of a few sampled nodes
instead of all within three hops: relearning stays a matter of milliseconds on dense graphs.

Which neighbours count follows from ids alone, so it is the same in a fresh fit.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from grapheraser.aggregation.base import Ensemble
from grapheraser.graph import Graph
from grapheraser.inference.gather import NO_FEATURES, Bound, Gathered, gather_field
from grapheraser.kernels.compiled import compiled
from grapheraser.kernels.neighbourhoods import ANY, chosen_alike, features_differ, places_for
from grapheraser.kernels.paged import NOWHERE, Table, entry_of, locate, node_at, weight_at
from grapheraser.kernels.sets import rank_of
from grapheraser.seeding import derive

# With 2 a model of two layers looks at 7 nodes at most to judge a sampled one, with 4 at 21. On
# validation nodes 4 gain 0.3 points of F1 with `learned` and nothing in the pool, and 8 nothing
# over 4.
FANOUT = 2

Ids = NDArray[np.int64]


def thinning(seed: int) -> Bound:
    """Return the bound by which neighbours count for sampled nodes."""
    return Bound(FANOUT, derive(seed, "view"))


def seen_before(ensemble: Ensemble, nodes: Ids) -> Ids:
    """Ids of the nodes in the thinned neighbourhoods of some nodes; see `seen_ids`."""
    graph = ensemble.graph
    positions, bound = graph.positions(nodes), thinning(ensemble.seed)
    hops = ensemble.hops
    gathered = gather_field(graph, positions, bound, hops=hops, features=NO_FEATURES)
    return seen_ids(gathered, hops)


def most_seen(hops: int) -> int:
    """Return the size of a thinned neighbourhood: a node, its neighbours that count, theirs..."""
    return sum(FANOUT**ring for ring in range(hops + 1))


def seen_ids(gathered: Gathered, hops: int) -> Ids:
    """Ids of the nodes in thinned neighbourhoods ``[gathered.wanted, most_seen(hops)]``.

    A node's own id comes first, and is repeated where there are fewer.
    """
    edges = gathered.indptr, gathered.indices
    seen: Ids = _seen(*edges, gathered.nodes, gathered.wanted, most_seen(hops), hops)
    return seen


@compiled
def _seen(
    indptr: NDArray[np.int64],
    indices: NDArray[np.int32],
    ids: Ids,
    count: int,
    width: int,
    hops: int,
) -> Ids:
    out, found = np.empty((count, width), dtype=np.int64), np.empty(width, dtype=np.int32)
    for r in range(count):
        for i in range(width):
            out[r, i] = ids[r]
        found[0] = r
        done, size = 0, 1
        for _ in range(hops):
            last = size
            for i in range(done, last):
                for e in range(indptr[found[i]], indptr[found[i] + 1]):
                    found[size], out[r, size] = indices[e], ids[indices[e]]
                    size += 1
            done = last
    return out


def moved(before: Graph, after: Graph, touched: Ids, seed: int) -> Ids:
    """Ids of the touched nodes that are new, or have other features or neighbours that count.

    A neighbour with another weight is another one. A node that lost or gained a neighbour which
    does not count looks the same.

    Args:
        before: the graph before a change.
        after: the graph after it.
        touched: sorted ids of the nodes left with other neighbours or features.
        seed: the run's seed.
    """
    bound = thinning(seed)
    differs = _differs(before.table, after.table, touched, bound.most, np.uint64(bound.key))
    return touched[differs]


@compiled
def _differs(
    before: Table, after: Table, touched: Ids, most: int, key: np.uint64
) -> NDArray[np.bool_]:
    out = np.ones(len(touched), dtype=np.bool_)
    hashes, chosen = places_for(most)
    room = hashes, chosen, np.empty_like(chosen)
    for i in range(len(touched)):
        was, place = locate(before, touched[i]), locate(after, touched[i])
        if was != NOWHERE:
            count = chosen_alike(before, was, after, place, ANY, key, room)
            out[i] = count < 0 or features_differ(before, was, after, place)
            if after.weighted or after.directed:
                for near in chosen[: max(count, 0)]:
                    node = node_at(after, near)
                    old = weight_at(before, was, entry_of(before, was, node))
                    out[i] |= old != weight_at(after, place, entry_of(after, place, node))
    return out


@compiled
def sees(seen: Ids, moved: Ids) -> NDArray[np.bool_]:
    """Find the nodes that look different after a change: those that saw a node which has moved.

    A path through a removed node also passes one of that node's neighbours, which has moved.

    Args:
        seen: what `seen_ids` gave before the change.
        moved: what `moved` gives.
    """
    out = np.zeros(len(seen), dtype=np.bool_)
    for r in range(len(seen)):
        for node in seen[r]:
            out[r] |= rank_of(node, moved) >= 0
    return out
