"""What is counted between two nodes: their common neighbours, and paths of three edges.

A pair is always judged without the edge between its two nodes, whether there is one or not. So what
is counted of a pair is the same before and after that edge is forgotten.

Hubs are thinned. Of common neighbours, at most `MOST_COMMON` of the node with fewer neighbours are
looked for among the other's; of the paths of three edges, those through at most `MOST_AROUND`
neighbours of each node. The numbers are scaled up by the share that was left out.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from grapheraser.kernels.compiled import compiled
from grapheraser.kernels.elementary import logarithm
from grapheraser.kernels.paged import degree_at, locate, node_at
from grapheraser.links.adjacency import common, thinned

MOST_COMMON, MOST_AROUND = 256, 64


@compiled
def room_for_counts() -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Room for the neighbours of both nodes, and for those that are found."""
    return (
        np.empty(MOST_COMMON, dtype=np.int64),
        np.empty(MOST_AROUND, dtype=np.int64),
        np.empty(MOST_COMMON, dtype=np.int64),
    )


@compiled
def count_common(table, u, v, edge, key, out, room, read):  # type: ignore[no-untyped-def]
    """Common neighbours: how many, and the sums of 1 / log degree and of 1 / degree.

    Args:
        table: the graph.
        u: place of one node.
        v: place of the other.
        edge: whether there is an edge between them.
        key: thins hubs.
        out: the three numbers.
        room: see `room_for_counts`.
        read: where to write the ids of the nodes whose degree counts; returns how many.
    """
    few, many = u, v
    if degree_at(table, u) > degree_at(table, v):
        few, many = v, u
    near, _, found = room
    but = node_at(table, many) if edge else -1
    count = thinned(table, few, key, but, near)
    hits = common(table, many, near, count, found)
    adamic = allocation = 0.0
    for i in range(hits):
        node = near[found[i]]
        degree = degree_at(table, locate(table, node))
        adamic += 1.0 / logarithm(float(degree))
        allocation += 1.0 / degree
        read[i] = node
    degree = degree_at(table, few) - edge
    scale = degree / count if count else 1.0
    out[0], out[1], out[2] = hits * scale, adamic * scale, allocation * scale
    return hits


@compiled
def count_paths(table, u, v, edge, key, room, read):  # type: ignore[no-untyped-def]
    """The sum over paths u - a - b - v of 1 / sqrt(degree of a * degree of b).

    Arguments as for `count_common`; ``read`` has the neighbours that count. Returns the sum and how
    many were read.
    """
    near, around, found = room
    one = thinned(table, u, key, node_at(table, v) if edge else -1, near[:MOST_AROUND])
    two = thinned(table, v, key, node_at(table, u) if edge else -1, around)
    weights = np.empty(two)
    for j in range(two):
        read[one + j] = around[j]
        weights[j] = 1.0 / math.sqrt(float(degree_at(table, locate(table, around[j]))))
    total = 0.0
    for i in range(one):
        read[i] = near[i]
        place = locate(table, near[i])
        part = 0.0
        for h in range(common(table, place, around, two, found)):
            part += weights[found[h]]
        total += part / math.sqrt(float(degree_at(table, place)))
    if one and two:
        total *= (degree_at(table, u) - edge) / one
        total *= (degree_at(table, v) - edge) / two
    return total, one + two
