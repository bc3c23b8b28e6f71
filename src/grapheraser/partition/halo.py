"""The graph that a shard trains on: its members, the edges between them, and on demand a halo.

The halo of a shard is the nodes of other shards that are neighbours of its members. The
shard sees their features and the edges from members to them; it sees no label of theirs and no
edge between two of them. Of each member's neighbours in other shards at most `MAX_CHOSEN` count,
chosen by keyed hash, so the task graph follows from the key, the ids and the shards of the nodes
around.

A task graph therefore changes with a member, with an edge or a feature row of a member, with an
edge that a member has chosen, and with a node or feature row at the far end of such an edge. A
neighbour that no member has chosen can go, and nothing changes; where a chosen one goes, the next
moves up, and the graph has changed anyway.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from grapheraser.arrays import Ints
from grapheraser.graph import Graph
from grapheraser.graph.arrays import fresh
from grapheraser.graph.csr import csr_from_pairs
from grapheraser.graph.roles import CONTEXT
from grapheraser.kernels.neighbourhoods import smallest_of_each
from grapheraser.kernels.paged import feature_rows, neighbour_rows
from grapheraser.partition.base import Partition
from grapheraser.seeding import derive, paired_hash

# Neighbours in other shards that count, of each member; see "Shards that stand alone" in
# docs/aggregation.md for how it was chosen.
MAX_CHOSEN = 4


def halo_key(seed: int) -> int:
    """Return the key that chooses the halos of a run with this seed."""
    return derive(seed, "halo")


def task_graph(graph: Graph, partition: Partition, shard: int, key: int | None = None) -> Graph:
    """The graph that a shard trains on; only its training nodes have a label."""
    members = partition.members(shard)
    inner = graph.trained_subgraph(members)
    if key is None:
        return inner
    across = halo_edges(graph, partition, members, key)
    ids = np.union1d(members, across[:, 1])
    new, pairs = np.searchsorted(ids, members), np.searchsorted(ids, across)
    indptr, indices = csr_from_pairs(
        np.concatenate([new[inner.sources], pairs[:, 0], pairs[:, 1]]),
        np.concatenate([new[inner.indices], pairs[:, 1], pairs[:, 0]]),
        len(ids),
    )
    y = np.full((len(ids), *inner.y.shape[1:]), inner.label_kind.unknown, dtype=inner.y.dtype)
    role = np.full(len(ids), CONTEXT, dtype=np.int8)
    y[new], role[new] = inner.y, inner.role
    ends, columns, values = feature_rows(graph.table, graph.places(ids))
    parts = (values, columns, ends.astype(inner.x.indptr.dtype))
    x = sp.csr_array(parts, shape=(len(ids), graph.num_features))
    carried = graph.values_between(np.repeat(ids, np.diff(indptr)), ids[indices])
    fields = {"ids": ids, "indptr": indptr, "indices": indices, "x": x, "edge_values": carried}
    made = inner.with_fields(**fresh(**fields, y=y, role=role))
    if "label_frame" in vars(inner):
        vars(made)["label_frame"] = inner.label_frame
    return made


def halo_edges(graph: Graph, partition: Partition, nodes: Ints, key: int) -> Ints:
    """Edges ``[m, 2]`` from these nodes in shards to those that they choose in other shards.

    All by id. An edge is listed from each end that has chosen the other.
    """
    indptr, around = neighbour_rows(graph.table, graph.places(nodes))
    owner = np.repeat(np.arange(len(nodes)), np.diff(indptr))
    shards, own = partition.shard_or_none(around), partition.shard_of(nodes)[owner]
    across = (shards >= 0) & (shards != own)
    owner, around = owner[across], around[across]
    hashes = paired_hash(paired_hash(np.uint64(key), nodes)[owner], around)
    chosen = smallest_of_each(owner, hashes, MAX_CHOSEN)
    return np.stack([nodes[owner[chosen]], around[chosen]], axis=1)


def halo_edges_to(graph: Graph, partition: Partition, nodes: Ints, key: int) -> Ints:
    """The halo edges that lead to one of these nodes, from members of any other shard."""
    around = graph.around(nodes)
    found = halo_edges(graph, partition, around[partition.contains(around)], key)
    return found[np.isin(found[:, 1], nodes)]
