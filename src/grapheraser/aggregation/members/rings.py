"""The nodes that count within one step of others, each once: rows in two steps share them.

A row is made of the steps of a node's ring, and each of those of a ring again. Steps are worked out
once per node, however many rows they are part of, and once for the graphs before and after a change
where they are the same in both.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from grapheraser.aggregation.members.base import Ids, Places
from grapheraser.aggregation.members.stale import Reach
from grapheraser.graph import Graph
from grapheraser.kernels.compiled import compiled
from grapheraser.kernels.neighbourhoods import chosen_around, places_for
from grapheraser.kernels.paged import nodes_at, prefetch_neighbours
from grapheraser.kernels.sets import find, put, room_for_set

Steps = NDArray[Any]


class Ring(NamedTuple):
    """Some nodes and their neighbours that count.

    Attributes:
        places: int64, of all of them, each once.
        indptr: int64 ``[m + 1]``, where the entries of each node begin and end.
        entries: int32, rows of ``places``: the node itself, then its neighbours in order.
    """

    places: Places
    indptr: NDArray[np.int64]
    entries: NDArray[np.int32]


def ring_around(graph: Graph, places: Places, reach: Reach, key: np.uint64) -> Ring:
    """The ring of the nodes at these places."""
    return Ring(*_ring(graph.table, places, reach.kind, reach.most, key, graph.num_nodes))


def rings_and_steps(
    before: tuple[Graph, Places],
    after: tuple[Graph, Places],
    moved: Ids,
    reach: Reach,
    key: np.uint64,
    steps: Callable[[Graph, Places], Steps],
) -> tuple[Ring, Ring, Steps]:
    """The rings of places in a graph before a change and of places in the one after.

    Args:
        before: the graph, and places in it.
        after: likewise.
        moved: sorted ids of the nodes whose steps are not what they were.
        reach: which neighbours count.
        key: decides which.
        steps: of the nodes at some places of a graph, one row each.

    Returns: both rings, whose entries are rows of the steps; the steps.
    """
    was, now = ring_around(*before, reach, key), ring_around(*after, reach, key)
    (old, _), (new, _) = before, after
    source = _same(nodes_at(old.table, was.places), nodes_at(new.table, now.places), moved)
    alone = source < 0
    source[alone] = len(now.places) + np.arange(int(alone.sum()))
    found = np.concatenate([steps(new, now.places), steps(old, was.places[alone])])
    return was._replace(entries=source[was.entries]), now, found


@compiled
def _ring(
    table: Any, places: Places, kind: int, most: int, key: np.uint64, num_nodes: int
) -> tuple[Places, NDArray[np.int64], NDArray[np.int32]]:
    slots, found = room_for_set(min(num_nodes, len(places) * (most + 1)))
    hashes, chosen = places_for(most)
    rows = np.zeros(len(places) + 1, dtype=np.int64)
    entries = np.empty(len(places) * (most + 1), dtype=np.int32)
    count, end = 0, 0
    for r in range(len(places)):
        prefetch_neighbours(table, places, r)
        for e in range(-1, chosen_around(table, places[r], kind, key, hashes, chosen)):
            entries[end] = put(slots, found, count, places[r] if e < 0 else chosen[e])
            count = max(count, entries[end] + 1)
            end += 1
        rows[r + 1] = end
    return found[:count].copy(), rows, entries[:end].copy()


@compiled
def _same(
    old: NDArray[np.int64], new: NDArray[np.int64], moved: NDArray[np.int64]
) -> NDArray[np.int32]:
    """Where the old ids that have not moved are among the new ones; -1 for all others."""
    slots, nodes = room_for_set(len(new) + len(moved))
    count, out = 0, np.empty(len(old), dtype=np.int32)
    for node in new:
        count = max(count, put(slots, nodes, count, node) + 1)
    gone = np.zeros(len(new) + len(moved), dtype=np.bool_)
    for node in moved:
        rank = put(slots, nodes, count, node)
        count, gone[rank] = max(count, rank + 1), True
    for i in range(len(old)):
        rank = find(slots, nodes, old[i])
        out[i] = -1 if rank < 0 or gone[rank] else rank
    return out
