"""Find the shards that see what a change names: their training graphs differ with it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from grapheraser.arrays import Bools, Ints
from grapheraser.graph import Graph
from grapheraser.partition import Partition
from grapheraser.partition.halo import halo_edges, halo_edges_to

Ids = Ints


class Named(NamedTuple):
    """The ids that a change names, in the graph that has them."""

    nodes: Ids  # sorted, in shards: those that come or go with all they have
    edges: Ids  # ``[m, 2]``, u < v
    features: Ids  # sorted, of nodes in shards
    labels: Ids  # sorted, of training nodes
    moving: Ids  # sorted, of the nodes that enter or leave a shard


class Seen(NamedTuple):
    """Counts of what each shard sees of a change ``[num_shards]``."""

    # nodes, edges, features, labels: members, edges, feature rows and labels of its training graph.
    nodes: Ids
    edges: Ids
    features: Ids
    labels: Ids
    halo: Ids  # nodes of its halo that come or go
    cut_edges: int  # how many edges no shard sees

    @property
    def any(self) -> Bools:
        """Mask of the shards that see anything."""
        return (self.nodes + self.edges + self.features + self.labels + self.halo) > 0


def seen_by_shards(graph: Graph, partition: Partition, named: Named, halo: int | None) -> Seen:
    """Count what each shard sees; ``halo`` is the key of the halos, None where there are none."""
    k = partition.num_shards
    ends = partition.shard_or_none(named.edges.ravel()).astype(np.int64).reshape(-1, 2)
    inside = (ends[:, 0] == ends[:, 1]) & (ends[:, 0] >= 0)
    edges = np.bincount(ends[inside, 0], minlength=k)
    features = np.bincount(partition.shard_of(named.features), minlength=k)
    around, seen = np.zeros(k, dtype=np.int64), inside
    if halo is not None:
        around = _halo_rows(graph, partition, named.moving, halo)
        features += _halo_rows(graph, partition, named.features, halo)
        from_ends = _halo_edges_named(graph, partition, named.edges, halo)
        edges += np.bincount(ends[from_ends], minlength=k)
        seen = inside | from_ends.any(axis=1)
    return Seen(
        np.bincount(partition.shard_of(named.nodes), minlength=k),
        edges,
        features,
        np.bincount(partition.shard_of(named.labels), minlength=k),
        around,
        int((~seen).sum()),
    )


def _halo_rows(graph: Graph, partition: Partition, nodes: Ids, key: int) -> Ids:
    """Count these nodes in the halo of each shard ``[num_shards]``."""
    pairs = halo_edges_to(graph, partition, nodes, key)
    shards = partition.shard_of(pairs[:, 0]).astype(np.int64)
    once = np.unique(np.stack([shards, pairs[:, 1]]), axis=1)
    return np.bincount(once[0], minlength=partition.num_shards)


def _halo_edges_named(graph: Graph, partition: Partition, edges: Ids, key: int) -> Bools:
    """Tell of each edge ``[m, 2]`` whether it is a halo edge of the shard of each of its ends."""
    ends = np.unique(edges)
    pairs = halo_edges(graph, partition, ends[partition.contains(ends)], key)
    known = set(map(tuple, pairs.tolist()))
    named = [[(u, v) in known, (v, u) in known] for u, v in edges.tolist()]
    return np.array(named, dtype=bool).reshape(-1, 2)
