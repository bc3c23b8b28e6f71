"""What a shard trains on: its members, the edges between them, and on demand a halo.

The halo of a shard is the training nodes of other shards that are neighbours of its members. The
shard sees their features and the edges from members to them; it sees no label of theirs and no
edge between two of them. Of each member's neighbours in other shards at most `MOST` count, chosen
by keyed hash, so the task graph follows from the key, the ids and the shards of the nodes around.

A task graph therefore changes with a member, with an edge or a feature row of a member, with an
edge that a member has chosen, and with a node or feature row at the far end of such an edge. A
neighbour that no member has chosen can go, and nothing changes; where a chosen one goes, the next
moves up, and the graph has changed anyway.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from grapheraser.graph import TRAIN, UNLABELLED, Graph
from grapheraser.graph.arrays import fresh
from grapheraser.graph.csr import csr_from_pairs, slices_of
from grapheraser.graph.roles import NO_ROLE
from grapheraser.kernels.compiled import compiled
from grapheraser.kernels.neighbourhoods import chosen_neighbours, room_for
from grapheraser.partition.base import Partition
from grapheraser.seeding import derive

# Neighbours in other shards that count, of each member; see "Shards that stand alone" in
# docs/aggregation.md for how it was chosen.
MOST = 4


def halo_key(seed: int) -> int:
    """What chooses the halos of a run with this seed."""
    return derive(seed, "halo")


def task_graph(graph: Graph, partition: Partition, shard: int, key: int | None = None) -> Graph:
    """The graph that a shard trains on, with a halo where there is a key for it.

    Nodes of the halo have neither label nor role.
    """
    members = partition.members(shard)
    inner = graph.subgraph(members)
    if key is None:
        return inner
    own = graph.positions(members)
    across = halo_edges(graph, partition, own, key)
    rows = np.union1d(own, across[:, 1])
    new, pairs = np.searchsorted(rows, own), np.searchsorted(rows, across)
    indptr, indices = csr_from_pairs(
        np.concatenate([new[inner.sources], pairs[:, 0], pairs[:, 1]]),
        np.concatenate([new[inner.indices], pairs[:, 1], pairs[:, 0]]),
        len(rows),
    )
    y = np.full(len(rows), UNLABELLED, dtype=np.int64)
    role = np.full(len(rows), NO_ROLE, dtype=np.int8)
    y[new], role[new] = inner.y, inner.role
    fields = {"ids": graph.ids[rows], "indptr": indptr, "indices": indices, "x": graph.x[rows]}
    return replace(graph, **fresh(**fields, y=y, role=role))


def halo_edges(
    graph: Graph, partition: Partition, rows: NDArray[np.int64], key: int
) -> NDArray[np.int64]:
    """Edges ``[m, 2]`` from these training nodes to those that they choose in other shards.

    All by position. An edge is listed from each end that has chosen the other.
    """
    shards = np.full(graph.num_nodes, -1, dtype=np.int32)
    shards[graph.role == TRAIN] = partition.shard_of(graph.train_nodes)
    counts = np.minimum(graph.degree[rows], MOST)
    arrays = (graph.indptr, graph.indices, graph.ids, shards, rows.astype(np.int64))
    return _chosen(*arrays, np.uint64(key), int(counts.sum()))


def halo_edges_to(
    graph: Graph, partition: Partition, nodes: NDArray[np.int64], key: int
) -> NDArray[np.int64]:
    """The halo edges that lead to one of these nodes (ids), from members of any other shard."""
    wanted = np.zeros(graph.num_nodes, dtype=bool)
    wanted[graph.positions(nodes)] = True
    around = np.unique(graph.indices[slices_of(graph.indptr, np.flatnonzero(wanted))])
    found = halo_edges(graph, partition, around[graph.role[around] == TRAIN], key)
    return found[wanted[found[:, 1]]]


@compiled
def _chosen(
    indptr: NDArray[np.int64],
    indices: NDArray[np.int32],
    ids: NDArray[np.int64],
    shards: NDArray[np.int32],
    rows: NDArray[np.int64],
    key: np.uint64,
    room: int,
) -> NDArray[np.int64]:
    hashes, chosen = room_for(MOST)
    outside = np.zeros(len(ids), dtype=np.bool_)
    pairs = np.empty((room, 2), dtype=np.int64)
    end = 0
    for row in rows:
        for e in range(indptr[row], indptr[row + 1]):
            other = shards[indices[e]]
            outside[indices[e]] = other >= 0 and other != shards[row]
        count = chosen_neighbours(indptr, indices, ids, row, outside, key, hashes, chosen)
        for i in range(count):
            pairs[end, 0], pairs[end, 1] = row, chosen[i]
            end += 1
    return pairs[:end].copy()
