"""Labels around a node: those of its neighbours, and of the nodes two steps away, by class.

Of each node at most `NEAR` labelled neighbours count at one step, and at most `FAR` neighbours in
each of two steps: those with the smallest keyed hashes (see `kernels.neighbourhoods`). A node's own
label never counts for itself.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from grapheraser.aggregation.members.base import Positions, labelled
from grapheraser.graph import Graph
from grapheraser.kernels.compiled import compiled
from grapheraser.kernels.neighbourhoods import chosen_neighbours, room_for
from grapheraser.seeding import derive

NEAR, FAR = 64, 16
Counts = NDArray[np.int64]


def key_of(seed: int) -> np.uint64:
    """What decides which neighbours count."""
    return np.uint64(derive(seed, "labels around"))


def one_hop(graph: Graph, positions: Positions, seed: int) -> Counts:
    """Labels of each node's neighbours ``[len(positions), num_classes]``."""
    parts = (graph.indptr, graph.indices, graph.ids, graph.y, labelled(graph))
    return _one(*parts, positions, graph.num_classes, key_of(seed))


def two_hops(graph: Graph, positions: Positions, seed: int) -> Counts:
    """Labels at the ends of walks of two steps that don't lead back, over any node."""
    parts = (graph.indptr, graph.indices, graph.ids, graph.y, labelled(graph))
    return _two(*parts, positions, graph.num_classes, key_of(seed))


@compiled
def _one(indptr, indices, ids, y, known, rows, num_classes, key):  # type: ignore[no-untyped-def]
    out = np.zeros((len(rows), num_classes), dtype=np.int64)
    hashes, chosen = room_for(NEAR)
    for r in range(len(rows)):
        count = chosen_neighbours(indptr, indices, ids, rows[r], known, key, hashes, chosen)
        for i in range(count):
            out[r, y[chosen[i]]] += 1
    return out


@compiled
def _two(indptr, indices, ids, y, known, rows, num_classes, key):  # type: ignore[no-untyped-def]
    out = np.zeros((len(rows), num_classes), dtype=np.int64)
    every = np.ones(len(ids), dtype=np.bool_)
    hashes, middle = room_for(FAR)
    far_hashes, far = room_for(FAR + 1)  # one of them may be the node itself
    for r in range(len(rows)):
        near = chosen_neighbours(indptr, indices, ids, rows[r], every, key, hashes, middle)
        for i in range(near):
            count = chosen_neighbours(indptr, indices, ids, middle[i], known, key, far_hashes, far)
            for j in range(count):
                if far[j] != rows[r]:
                    out[r, y[far[j]]] += 1
    return out
