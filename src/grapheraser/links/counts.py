"""Counts between two nodes: their common neighbours, and paths of three edges.

A pair is always judged without the edge between its two nodes, whether there is one or not. So what
is counted of a pair is the same before and after that edge is forgotten.

Hubs are thinned. Of common neighbours, at most `MAX_COMMON` of the node with fewer neighbours are
looked for among the other's; of the paths of three edges, those through at most `MAX_AROUND`
neighbours of each node. The numbers are scaled up by the share that was left out.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from grapheraser.kernels.compiled import compiled
from grapheraser.kernels.elementary import logarithm
from grapheraser.kernels.paged import (
    INCOMING,
    OUTGOING,
    degree_at,
    edge_value,
    first_edge,
    locate,
    neighbour,
    node_at,
)
from grapheraser.links.adjacency import common, counted, linked, thinned, ways

MAX_COMMON, MAX_AROUND = 256, 64
# The numbers of a pair; for what follows from features see `rows`.
NUMBERS = (
    "common neighbours",
    "Adamic-Adar",
    "resource allocation",
    "paths of three edges",
    "smaller degree",
    "larger degree",
    "own features",
    "one step",
    "two steps",
    "own and one step",
)
# Those that a pair has besides in a directed graph; common neighbours are over their degrees.
DIRECTIONS = (
    "edge back",
    "between source and target",
    "between target and source",
    "targets of both",
    "sources of both",
    "edges out of the source",
    "edges into the source",
    "edges out of the target",
    "edges into the target",
)
REVERSE, THROUGH, BACK, TARGETS, SOURCES, OUT_OF_SOURCE, _, OUT_OF_TARGET, _ = range(
    len(NUMBERS), len(NUMBERS) + len(DIRECTIONS)
)


@compiled
def room_for_counts() -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Room for the neighbours of both nodes, and for those that are found."""
    return (
        np.empty(MAX_COMMON, dtype=np.int64),
        np.empty(MAX_AROUND, dtype=np.int64),
        np.empty(MAX_COMMON, dtype=np.int64),
    )


@compiled
def count_common(table, u, v, edge, key, out, room, read):  # type: ignore[no-untyped-def]
    """Common neighbours: how many, and the sums of 1 / log degree and of 1 / degree.

    Where edges have weights, each counts by the roots of the two. In a directed graph they are
    also counted by the ways of their edges.

    ``u`` and ``v`` are places of nodes, ``edge`` says whether they are linked, and ``key`` thins
    hubs. Of ``out``, all numbers of the pair, three are written, or seven; ``read`` takes the ids
    of the nodes whose degree counts. Returns how many these are.
    """
    few, many = u, v
    if degree_at(table, u) > degree_at(table, v):
        few, many = v, u
    near, _, found = room
    but = node_at(table, many) if edge else -1
    count = thinned(table, few, key, but, near)
    hits = common(table, many, near, count, found)
    number = adamic = allocation = 0.0
    for i in range(hits):
        node = near[found[i]]
        degree = degree_at(table, locate(table, node))
        value = counted(table, few, node) * counted(table, many, node)
        number += value
        adamic += value / logarithm(float(degree))
        allocation += value / degree
        if table.directed:
            _count_ways(table, u, v, node, value / degree, out)
        read[i] = node
    degree = degree_at(table, few) - edge
    scale = degree / count if count else 1.0
    out[0], out[1], out[2] = number * scale, adamic * scale, allocation * scale
    if table.directed:
        for way in range(THROUGH, SOURCES + 1):
            out[way] *= scale
    return hits


@compiled
def _count_ways(table, u, v, node, value, out) -> None:  # type: ignore[no-untyped-def]
    """Add a common neighbour to the numbers of the ways in which it has edges with both nodes."""
    one, other = ways(table, u, node), ways(table, v, node)
    if one & OUTGOING and other & INCOMING:
        out[THROUGH] += value
    if one & INCOMING and other & OUTGOING:
        out[BACK] += value
    if one & OUTGOING and other & OUTGOING:
        out[TARGETS] += value
    if one & INCOMING and other & INCOMING:
        out[SOURCES] += value


@compiled
def count_directions(table, u, v, out) -> None:  # type: ignore[no-untyped-def]
    """Count the edge back from v to u, and edges in and out of both but for their own."""
    out[REVERSE] = 1.0 if linked(table, v, node_at(table, u)) else 0.0
    for place, other, at in ((u, v, OUT_OF_SOURCE), (v, u, OUT_OF_TARGET)):
        first, but = first_edge(table, place), node_at(table, other)
        for e in range(degree_at(table, place)):
            if neighbour(first, e) == but:
                continue
            way = int(edge_value(table, place, e, 0))
            out[at] += 1.0 if way & OUTGOING else 0.0
            out[at + 1] += 1.0 if way & INCOMING else 0.0


@compiled
def count_paths(table, u, v, edge, key, room, read):  # type: ignore[no-untyped-def]
    """The sum over paths u - a - b - v of 1 / sqrt(degree of a * degree of b).

    Where edges have weights, each path counts by the roots of the three.

    Arguments as for `count_common`; ``read`` has the neighbours that count. Returns the sum and how
    many were read.
    """
    near, around, found = room
    one = thinned(table, u, key, node_at(table, v) if edge else -1, near[:MAX_AROUND])
    two = thinned(table, v, key, node_at(table, u) if edge else -1, around)
    weights = np.empty(two)
    for j in range(two):
        read[one + j] = around[j]
        degree = float(degree_at(table, locate(table, around[j])))
        weights[j] = counted(table, v, around[j]) / math.sqrt(degree)
    total = 0.0
    for i in range(one):
        read[i] = near[i]
        place = locate(table, near[i])
        part = 0.0
        for h in range(common(table, place, around, two, found)):
            part += weights[found[h]] * counted(table, place, around[found[h]])
        part *= counted(table, u, near[i])
        total += part / math.sqrt(float(degree_at(table, place)))
    if one and two:
        total *= (degree_at(table, u) - edge) / one
        total *= (degree_at(table, v) - edge) / two
    return total, one + two
