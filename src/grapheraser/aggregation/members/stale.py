"""Whose row a change may have moved, where rows are made in two steps over a bounded number of
neighbours.

The row of a node is made of what its neighbours that count are, and each of those of its own
neighbours that count. A neighbour that doesn't count has no part in it: a node that goes leaves
most rows around it as they are.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from grapheraser.aggregation.base import Change
from grapheraser.aggregation.members.base import Ids, around, relabelled
from grapheraser.graph import Graph
from grapheraser.kernels.compiled import compiled
from grapheraser.kernels.neighbourhoods import chosen_around, places_for
from grapheraser.kernels.paged import NOWHERE, copy_features, locate, node_at, size_at


class Reach(NamedTuple):
    """Which neighbours count in a step.

    Attributes:
        kind: see `kernels.neighbourhoods`.
        most: how many.
    """

    kind: int
    most: int


class Walk(NamedTuple):
    """The two steps of a row, from the node out."""

    first: Reach
    second: Reach
    key: np.uint64


def stale_nodes(
    change: Change, graph: Graph, walk: Walk, rewritten: Ids, among: Ids | None = None
) -> Ids:
    """Sorted ids of the nodes left whose row may not be what it was.

    Args:
        change: what happened.
        graph: after it.
        walk: how rows are made.
        rewritten: sorted ids of the nodes left that mean something else to a row than before.
        among: look at these nodes alone.
    """
    before, touched = change.before.graph, change.touched
    others = np.union1d(rewritten, relabelled(before, graph, touched))
    near = np.union1d(touched, around(graph, others)) if len(others) else touched
    moved = near[_moved(before.table, graph.table, near, *walk.second, walk.key, rewritten)]
    far = np.setdiff1d(graph.around(moved), near, assume_unique=True)
    if among is not None:
        near = np.intersect1d(near, among, assume_unique=True)
        far = np.intersect1d(far, among, assume_unique=True)
    return np.union1d(near, far[_sees(graph.table, far, *walk.first, walk.key, moved)])


def rewritten_features(before: Graph, graph: Graph, nodes: Ids) -> Ids:
    """Those of the nodes, all in the graph, that have other features than before, or are new."""
    differs: NDArray[np.bool_] = _features_differ(before.table, graph.table, nodes)
    return nodes[differs]


@compiled
def _holds(nodes, node):  # type: ignore[no-untyped-def]
    at = np.searchsorted(nodes, node)
    return at < len(nodes) and nodes[at] == node


@compiled
def _moved(before, after, nodes, kind, most, key, rewritten):  # type: ignore[no-untyped-def]
    """Whether a node is new or rewritten, or other neighbours count, or any that is rewritten."""
    out = np.zeros(len(nodes), dtype=np.bool_)
    hashes, old = places_for(most)
    hashes, new = places_for(most)
    for i in range(len(nodes)):
        place, was = locate(after, nodes[i]), locate(before, nodes[i])
        if was == NOWHERE or _holds(rewritten, nodes[i]):
            out[i] = True
            continue
        count = chosen_around(after, place, kind, key, hashes, new)
        out[i] = chosen_around(before, was, kind, key, hashes, old) != count
        for j in range(count):
            if out[i]:
                break
            node = node_at(after, new[j])
            out[i] = node_at(before, old[j]) != node or _holds(rewritten, node)
    return out


@compiled
def _sees(table, nodes, kind, most, key, moved):  # type: ignore[no-untyped-def]
    """Whether any neighbour that counts has moved."""
    out = np.zeros(len(nodes), dtype=np.bool_)
    hashes, chosen = places_for(most)
    for i in range(len(nodes)):
        place = locate(table, nodes[i])
        for j in range(chosen_around(table, place, kind, key, hashes, chosen)):
            out[i] |= _holds(moved, node_at(table, chosen[j]))
    return out


@compiled
def _features_differ(before, after, nodes):  # type: ignore[no-untyped-def]
    out = np.zeros(len(nodes), dtype=np.bool_)
    for i in range(len(nodes)):
        was, place = locate(before, nodes[i]), locate(after, nodes[i])
        if was == NOWHERE:
            out[i] = True
            continue
        most = max(size_at(before, was), size_at(after, place))
        columns, values = np.empty(2 * most, dtype=np.int32), np.empty(2 * most, dtype=np.float32)
        count = copy_features(before, was, columns, values, 0)
        out[i] = copy_features(after, place, columns, values, most) - most != count
        for e in range(count):
            out[i] |= columns[e] != columns[most + e] or values[e] != values[most + e]
    return out
