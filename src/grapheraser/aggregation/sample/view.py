"""Thinned neighbourhoods, by which sampled nodes are judged: a few neighbours per node.

To learn weights, a sampled node is shown to every shard model with a thinned neighbourhood: of each
node's neighbours only the `FANOUT` with the smallest keyed hashes count. That bounds what has to be
computed for a retrained shard, and a deletion then changes the posteriors of a few sampled nodes
instead of all within three hops: relearning stays a matter of milliseconds on dense graphs.

Which neighbours count follows from ids alone, so it is the same in a fresh fit. Predictions always
use whole neighbourhoods.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from grapheraser.graph import Graph, changed_feature_rows
from grapheraser.kernels.compiled import compiled
from grapheraser.kernels.neighbourhoods import chosen_neighbours, room_for
from grapheraser.seeding import derive
from grapheraser.training.inference.gather import Bound

# With 2 a model looks at 7 nodes at most to judge a sampled one, with 4 it would be 21. On
# validation nodes 4 gain 0.3 points of F1 with `learned` and nothing in the pool, and 8 nothing
# over 4.
FANOUT = 2
_HOPS = 2

Positions = NDArray[np.int64]


def thinning(seed: int) -> Bound:
    """Which neighbours count for sampled nodes."""
    return Bound(FANOUT, derive(seed, "view"))


def thinned(graph: Graph, positions: Positions, seed: int) -> Graph:
    """The graph with thinned neighbourhoods around some nodes, as far as two-layer models see.

    Rows further away have the right length and nothing else. The edges have a direction: a node may
    count among the neighbours of another that does not count among its own.
    """
    indptr = np.zeros(graph.num_nodes + 1, dtype=np.int64)
    np.minimum(graph.degree, FANOUT).cumsum(out=indptr[1:])
    indices = np.zeros(int(indptr[-1]), dtype=np.int32)
    _fill(graph.indptr, graph.indices, graph.ids, positions, _key(seed), indptr, indices)
    return replace(graph, indptr=indptr, indices=indices)


def stale_nodes(
    before: Graph,
    whole: Graph,
    view: Graph,
    nodes: NDArray[np.int64],
    touched: NDArray[np.int64],
    seed: int,
) -> NDArray[np.bool_]:
    """Which sampled nodes see another neighbourhood than before.

    A node that lost or gained a neighbour which does not count looks the same. A path through a
    removed node also passes one of that node's neighbours, which looks different.

    Args:
        before: the whole graph before the change.
        whole: the whole graph after it.
        view: the same, thinned around ``nodes``.
        nodes: ids of the sampled nodes.
        touched: ids of the nodes left with other neighbours or features.
        seed: the run's seed.
    """
    at = view.positions(touched)
    moved = np.ones(len(touched), dtype=bool)
    known = np.flatnonzero(before.contains(touched))
    rows = before.positions(touched[known])
    same_features = ~changed_feature_rows(before, whole, touched[known])
    kept = _kept(before.indptr, before.indices, before.ids, rows, _key(seed))
    keeps = _kept(whole.indptr, whole.indices, whole.ids, at[known], _key(seed))
    moved[known] = ~(same_features & (kept == keeps).all(axis=1))
    changed = np.zeros(view.num_nodes, dtype=bool)
    changed[at[moved]] = True
    return _reaches(view.indptr, view.indices, view.positions(nodes), changed)


def _key(seed: int) -> np.uint64:
    return np.uint64(derive(seed, "view"))


@compiled
def _fill(
    indptr: Positions,
    indices: NDArray[np.int32],
    ids: NDArray[np.int64],
    rows: Positions,
    key: np.uint64,
    out_indptr: Positions,
    out: NDArray[np.int32],
) -> None:
    """Write the neighbours that count for these rows, and for those neighbours likewise."""
    hashes, chosen = room_for(FANOUT)
    every = np.ones(len(ids), dtype=np.bool_)
    queue = np.empty(len(ids), dtype=np.int64)
    seen = np.zeros(len(ids), dtype=np.bool_)
    start, end = 0, 0
    for row in rows:
        if not seen[row]:
            seen[row] = True
            queue[end] = row
            end += 1
    for _ in range(_HOPS):
        last = end
        for q in range(start, last):
            row = queue[q]
            count = chosen_neighbours(indptr, indices, ids, row, every, key, hashes, chosen)
            for i in range(count):
                out[out_indptr[row] + i] = chosen[i]
                if not seen[chosen[i]]:
                    seen[chosen[i]] = True
                    queue[end] = chosen[i]
                    end += 1
        start = last


@compiled
def _kept(
    indptr: Positions,
    indices: NDArray[np.int32],
    ids: NDArray[np.int64],
    rows: Positions,
    key: np.uint64,
) -> NDArray[np.int64]:
    """Ids of the neighbours that count for each row ``[len(rows), FANOUT]``, filled with -1."""
    hashes, chosen = room_for(FANOUT)
    every = np.ones(len(ids), dtype=np.bool_)
    out = np.full((len(rows), FANOUT), -1, dtype=np.int64)
    for r in range(len(rows)):
        count = chosen_neighbours(indptr, indices, ids, rows[r], every, key, hashes, chosen)
        for i in range(count):
            out[r, i] = ids[chosen[i]]
    return out


@compiled
def _reaches(
    indptr: Positions, indices: NDArray[np.int32], rows: Positions, changed: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Whether a changed node is at most two steps from each row."""
    out = np.zeros(len(rows), dtype=np.bool_)
    for r in range(len(rows)):
        node = rows[r]
        found = changed[node]
        for e in range(indptr[node], indptr[node + 1]):
            near = indices[e]
            found |= changed[near]
            for f in range(indptr[near], indptr[near + 1]):
                found |= changed[indices[f]]
        out[r] = found
    return out
