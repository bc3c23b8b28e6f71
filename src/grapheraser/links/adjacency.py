"""Looking for nodes among the neighbours of another, and what edges count, in compiled code."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from grapheraser.kernels.compiled import compiled
from grapheraser.kernels.hashing import paired
from grapheraser.kernels.paged import (
    INCOMING,
    NOWHERE,
    OUTGOING,
    Table,
    degree_at,
    edge_value,
    entry_of,
    first_edge,
    neighbour,
    node_at,
    rank_from,
    weight_between,
)

# Rows of at most so many neighbours are walked along; in longer ones, each node is looked for.
_SHORT = 64


@compiled
def adjacent(table: Table, place: int, other: int) -> bool:
    """Tell whether the node at a place has the node ``other`` (an id) for a neighbour."""
    return entry_of(table, place, other) != NOWHERE


@compiled
def ways(table: Table, place: int, other: int) -> int:
    """Return the directions of edges to ``other`` (an id): `INCOMING`, `OUTGOING`, both, or 0.

    Where edges have no directions, both.
    """
    entry = entry_of(table, place, other)
    if entry == NOWHERE:
        return 0
    return int(edge_value(table, place, entry, 0)) if table.directed else INCOMING | OUTGOING


@compiled
def linked(table: Table, place: int, other: int) -> bool:
    """Tell whether there is an edge from the node at a place to the node ``other`` (an id)."""
    return ways(table, place, other) & OUTGOING != 0


@compiled
def thinned(table: Table, place: int, key: np.uint64, but: int, chosen: NDArray[np.int64]) -> int:
    """Write about so many neighbours of a node as there is room for, by id; returns how many.

    Where there are more, those with a keyed hash below a bound that follows from their number. The
    neighbour ``but`` doesn't count; -1 for none.
    """
    first, rows = first_edge(table, place), degree_at(table, place)
    degree = rows - (but >= 0)
    most, count = len(chosen), 0
    if degree <= most:
        for e in range(rows):
            node = neighbour(first, e)
            if node != but:
                chosen[count] = node
                count += 1
        return count
    own = paired(key, np.uint64(node_at(table, place)))
    # Three quarters of the room, so that hardly any that is below the bound finds none left.
    bound = np.uint64(0.75 * most / degree * 2.0**64)
    for e in range(rows):
        node = neighbour(first, e)
        if node != but and count < most and paired(own, np.uint64(node)) < bound:
            chosen[count] = node
            count += 1
    return count


@compiled
def counted(table: Table, place: int, node: int) -> float:
    """Return what the edge to a neighbour (an id) counts: the root of its weight, 1 without one."""
    if not table.weighted:
        return 1.0
    return math.sqrt(float(weight_between(table, place, entry_of(table, place, node))))


@compiled
def counted_degree(table: Table, place: int, but: int) -> float:
    """Sum what all edges of a node count, but for that to the neighbour ``but``; -1 for none."""
    rows = degree_at(table, place)
    if not table.weighted:
        return float(rows - (but >= 0))
    first, total = first_edge(table, place), 0.0
    for e in range(rows):
        if neighbour(first, e) != but:
            total += math.sqrt(float(weight_between(table, place, e)))
    return total


@compiled
def common(
    table: Table, place: int, nodes: NDArray[np.int64], count: int, found: NDArray[np.int64]
) -> int:
    """Write which of the first ``count`` nodes (ascending ids) are neighbours of one; how many."""
    first, degree = first_edge(table, place), degree_at(table, place)
    hits, e = 0, 0
    for i in range(count):
        if degree <= _SHORT:
            while e < degree and neighbour(first, e) < nodes[i]:
                e += 1
        else:
            e = rank_from(first, e, degree, nodes[i])
        if e == degree:
            break
        if neighbour(first, e) == nodes[i]:
            found[hits] = i
            hits += 1
    return hits
