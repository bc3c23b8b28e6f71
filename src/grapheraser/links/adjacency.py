"""Looking for nodes among the neighbours of another, in compiled code."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from grapheraser.kernels.compiled import compiled
from grapheraser.kernels.hashing import paired
from grapheraser.kernels.neighbourhoods import admit, put_in_order
from grapheraser.kernels.paged import Table, degree_at, first_edge, locate, neighbour, node_at

# Rows of at most so many neighbours are walked along; in longer ones, each node is looked for.
_SHORT = 64


@compiled(inline=True)
def _rank(first: int, low: int, high: int, node: int) -> int:
    """Where a node is, or would be, among the neighbours from the one at ``low`` on."""
    while low < high:
        middle = (low + high) // 2
        if neighbour(first, middle) < node:
            low = middle + 1
        else:
            high = middle
    return low


@compiled
def adjacent(table: Table, place: int, other: int) -> bool:
    """Whether the node at a place has the node ``other`` (an id) for a neighbour."""
    first, degree = first_edge(table, place), degree_at(table, place)
    at = _rank(first, 0, degree, other)
    return at < degree and neighbour(first, at) == other


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
def nearest(
    table: Table,
    place: int,
    key: np.uint64,
    but: int,
    hashes: NDArray[np.uint64],
    chosen: NDArray[np.int64],
) -> int:
    """Write the neighbours with the smallest keyed hashes, by place; returns how many.

    As `kernels.neighbourhoods.chosen_around` does, without the neighbour ``but``; -1 for none.
    """
    first, rows = first_edge(table, place), degree_at(table, place)
    own, most, count = paired(key, np.uint64(node_at(table, place))), len(chosen), 0
    few = rows - (but >= 0) <= most
    for e in range(rows):
        node = neighbour(first, e)
        if node == but:
            continue
        if few:
            chosen[count] = locate(table, node)
            count += 1
            continue
        value = paired(own, np.uint64(node))
        if count < most or value < hashes[most - 1]:
            count = admit(value, node, hashes, chosen, count)
    if not few:
        put_in_order(chosen, count)
        for i in range(count):
            chosen[i] = locate(table, chosen[i])
    return count


@compiled
def common(
    table: Table,
    place: int,
    nodes: NDArray[np.int64],
    count: int,
    found: NDArray[np.int64],
) -> int:
    """Write which of the first ``count`` nodes (ascending ids) are neighbours of one; how many."""
    first, degree = first_edge(table, place), degree_at(table, place)
    hits, e = 0, 0
    for i in range(count):
        if degree <= _SHORT:
            while e < degree and neighbour(first, e) < nodes[i]:
                e += 1
        else:
            e = _rank(first, e, degree, nodes[i])
        if e == degree:
            break
        if neighbour(first, e) == nodes[i]:
            found[hits] = i
            hits += 1
    return hits
