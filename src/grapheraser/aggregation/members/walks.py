"""Rows made in two steps: what they are made of, and which of them a change may have moved.

The row of a node is made of its neighbours that count, and each of those of its own neighbours that
count. A `Ring` holds the nodes within one step, each once: their own steps are worked out once per
node, however many rows they are part of, and once for the graphs before and after a change where
they are the same in both. A node that doesn't count has no part in a row, so one that goes leaves
most rows around it as they are: `stale_nodes` finds the others.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from grapheraser.aggregation.base import Change
from grapheraser.aggregation.members.base import Ids, Places
from grapheraser.graph import Graph
from grapheraser.kernels.compiled import compiled
from grapheraser.kernels.neighbourhoods import (
    chosen_alike,
    chosen_around,
    features_differ,
    is_chosen,
    places_for,
)
from grapheraser.kernels.paged import (
    NOWHERE,
    degree_at,
    first_edge,
    label_at,
    locate,
    neighbour,
    node_at,
    nodes_at,
    prefetch_neighbours,
    role_at,
    targets_differ,
)
from grapheraser.kernels.sets import find, put, rank_of, room_for_set


class Reach(NamedTuple):
    """The neighbours that count in a step.

    Attributes:
        kind: see `kernels.neighbourhoods`.
        most: how many.
    """

    kind: int
    most: int


class Walk(NamedTuple):
    """The two steps that a row is made in.

    Attributes:
        first: the step from the node.
        second: the step from there.
        key: decides which neighbours count.
        features: whether features have a part in it.
    """

    first: Reach
    second: Reach
    key: np.uint64
    features: bool


class Stale(NamedTuple):
    """The nodes that a change moved.

    Attributes:
        nodes: sorted ids of the nodes left whose row may not be what it was.
        moved: sorted ids of the nodes left whose second step may not be what it was.
    """

    nodes: Ids
    moved: Ids


def stale_nodes(change: Change, graph: Graph, walk: Walk, among: Ids | None = None) -> Stale:
    """Walk out from a change to the rows that it may have moved.

    Args:
        change: what happened.
        graph: after it.
        walk: how rows are made.
        among: sorted ids; no other rows are asked for.
    """
    tables = change.before.graph.table, graph.table
    everyone = among is None
    some = np.zeros(0, dtype=np.int64) if among is None else among
    row_bytes = graph.label_kind.row_bytes
    nodes, moved = _stale(*tables, change.touched, walk, everyone, some, row_bytes)
    nodes.sort()
    moved.sort()
    return Stale(nodes, moved)


def near_nodes(change: Change, graph: Graph) -> Ids:
    """Find the nodes whose row of one step may not be what it was.

    Returns: sorted ids of the touched nodes, and of those next to a label, a role or features that
    are new.
    """
    tables = change.before.graph.table, graph.table
    nodes: Ids = _near(*tables, change.touched, True, graph.label_kind.row_bytes)[0]
    return np.sort(nodes)


@compiled
def _stale(before, after, touched, walk, everyone, among, row_bytes):  # type: ignore[no-untyped-def]
    near, slots, rewritten = _near(before, after, touched, walk.features, row_bytes)
    hashes, new = places_for(walk.second.most)
    room = hashes, new, np.empty_like(new)
    moved = np.empty(len(near), dtype=np.int64)
    count, most = 0, len(near)
    for i in range(len(near)):
        place, was = locate(after, near[i]), locate(before, near[i])
        differs = was == NOWHERE or (i < len(touched) and rewritten[i])
        if not differs:
            chosen = chosen_alike(before, was, after, place, walk.second.kind, walk.key, room)
            differs = chosen < 0
            for j in range(chosen):
                rank = find(slots, near, node_at(after, new[j]))
                differs |= 0 <= rank < len(touched) and rewritten[rank]
        if differs:
            moved[count] = near[i]
            count += 1
            most += degree_at(after, place)
    moved = moved[:count].copy()
    return _seeing(after, near, moved, walk.first, walk.key, most, everyone, among), moved


@compiled
def _near(before, after, touched, features, row_bytes):  # type: ignore[no-untyped-def]
    """The touched nodes first, then the neighbours of those that mean something else than before.

    Returns: their ids; their slots; of each touched node, whether it means something else.
    """
    most = len(touched)
    rewritten, other = np.zeros(most, dtype=np.bool_), np.zeros(most, dtype=np.bool_)
    for i in range(len(touched)):
        place, was = locate(after, touched[i]), locate(before, touched[i])
        relabelled = was != NOWHERE and (
            label_at(before, was) != label_at(after, place)
            or role_at(before, was) != role_at(after, place)
            or targets_differ(before, was, after, place, row_bytes)
        )
        if features:
            rewritten[i] = was == NOWHERE or features_differ(before, was, after, place)
        else:
            rewritten[i] = relabelled
        other[i] = rewritten[i] or relabelled
        if other[i]:
            most += degree_at(after, place)
    slots, nodes = room_for_set(most)
    count = 0
    for node in touched:
        count = max(count, put(slots, nodes, count, node) + 1)
    for i in range(len(touched)):
        if other[i]:
            place = locate(after, touched[i])
            first = first_edge(after, place)
            for e in range(degree_at(after, place)):
                count = max(count, put(slots, nodes, count, neighbour(first, e)) + 1)
    return nodes[:count].copy(), slots, rewritten


@compiled
def _seeing(table, near, moved, step, key, most, everyone, among):  # type: ignore[no-untyped-def]
    """The near nodes, and those next to a moved one in whose first step it counts, if asked for."""
    slots, found = room_for_set(most)
    count = 0
    for node in near:
        if everyone or rank_of(node, among) >= 0:
            count = max(count, put(slots, found, count, node) + 1)
    for node in moved:
        place = locate(table, node)
        first = first_edge(table, place)
        for e in range(degree_at(table, place)):
            other = neighbour(first, e)
            if (everyone or rank_of(other, among) >= 0) and find(slots, found, other) < 0:
                its = locate(table, other)
                if is_chosen(table, its, step.kind, key, step.most, node):
                    count = put(slots, found, count, other) + 1
    return found[:count].copy()


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
