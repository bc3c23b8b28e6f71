"""Whose row a change may have moved, where rows are made in two steps.

The row of a node is made of its neighbours that count, and each of those of its own neighbours that
count. One that doesn't count has no part in the row: a node that goes leaves most rows around it as
they are.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from grapheraser.aggregation.base import Change
from grapheraser.aggregation.members.base import Ids
from grapheraser.graph import Graph
from grapheraser.kernels.compiled import compiled
from grapheraser.kernels.neighbourhoods import (
    chosen_alike,
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
    role_at,
)
from grapheraser.kernels.sets import find, put, rank_of, room_for_set


class Reach(NamedTuple):
    """Which neighbours count in a step.

    Attributes:
        kind: see `kernels.neighbourhoods`.
        most: how many.
    """

    kind: int
    most: int


class Walk(NamedTuple):
    """How a row is made.

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
    """What a change moved.

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
    nodes, moved = _stale(*tables, change.touched, walk, everyone, some)
    nodes.sort()
    moved.sort()
    return Stale(nodes, moved)


@compiled
def _stale(before, after, touched, walk, everyone, among):  # type: ignore[no-untyped-def]
    near, slots, rewritten = _near(before, after, touched, walk.features)
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
def _near(before, after, touched, features):  # type: ignore[no-untyped-def]
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
