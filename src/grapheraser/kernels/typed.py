"""Steps along a relation: the neighbours of some type that it leads to, a few of many.

Ids begin with the number of a type (see `graph.types`), so the neighbours of one type lie side by
side. Those with the smallest keyed hashes are chosen, as in `neighbourhoods`: a choice follows from
ids alone.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from grapheraser.kernels.compiled import compiled
from grapheraser.kernels.hashing import paired
from grapheraser.kernels.neighbourhoods import ANY, admit, is_kind, put_in_order
from grapheraser.kernels.paged import (
    NOWHERE,
    Table,
    degree_at,
    edge_value,
    first_edge,
    locate,
    located,
    neighbour,
    node_at,
    prefetch_around,
    prefetch_neighbours,
)
from grapheraser.kernels.sets import put, room_for_set

PER_COLUMN = 24  # bits of relations that a float32 holds exactly


class Step(NamedTuple):
    """A step from nodes of one type to nodes of another."""

    # source, target: numbers of the types.
    source: int
    target: int
    # up, down: bits that say so of a neighbour with a higher id, and with a lower one; -1 where
    # there is no other relation between the types, so that nothing has to say so.
    up: int
    down: int
    shift: int  # bits of an id below the type
    kind: int  # which neighbours may be chosen; see `neighbourhoods`
    most: int  # how many
    key: np.uint64  # decides which


@compiled(inline=True)
def _first_of(first: int, degree: int, kind: int, shift: int) -> int:
    """Return which neighbour is the first of this type, or of one that comes after."""
    low, high = 0, degree
    while low < high:
        middle = (low + high) // 2
        if neighbour(first, middle) >> shift < kind:
            low = middle + 1
        else:
            high = middle
    return low


@compiled(inline=True)
def _joined(table: Table, place: int, e: int, bit: int) -> bool:
    if bit < 0:
        return True
    held = np.int64(edge_value(table, place, e, bit // PER_COLUMN))
    return (held >> (bit % PER_COLUMN)) & 1 != 0


@compiled
def chosen_ids(
    table: Table,
    place: int,
    step: Step,
    hashes: NDArray[np.uint64],
    chosen: NDArray[np.int64],
) -> int:
    """Write the ids of the chosen neighbours in their order; returns how many there are."""
    node, count = node_at(table, place), 0
    own = paired(step.key, np.uint64(node))
    first, degree = first_edge(table, place), degree_at(table, place)
    start = _first_of(first, degree, step.target, step.shift)
    end = _first_of(first, degree, step.target + 1, step.shift)
    # So few that all may be chosen need no hashes, and are in order already.
    few = end - start <= step.most
    for e in range(start, end):
        other = neighbour(first, e)
        if _joined(table, place, e, step.up if other > node else step.down):
            if few:
                if step.kind == ANY or is_kind(table, locate(table, other), step.kind):
                    chosen[count] = other
                    count += 1
                continue
            value = paired(own, np.uint64(other))
            near = count < step.most or value < hashes[step.most - 1]
            if near and (step.kind == ANY or is_kind(table, locate(table, other), step.kind)):
                count = admit(value, other, hashes, chosen, count)
    if not few:
        put_in_order(chosen, count)
    return count


@compiled
def step_from(
    table: Table, places: NDArray[np.int64], step: Step
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return pointers and the places of the chosen neighbours of the nodes at these places."""
    hashes, chosen = np.empty(step.most, dtype=np.uint64), np.empty(step.most, dtype=np.int64)
    indptr = np.zeros(len(places) + 1, dtype=np.int64)
    out, end = np.empty(max(16, 4 * len(places)), dtype=np.int64), 0
    for r in range(len(places)):
        if step.kind == ANY:
            prefetch_neighbours(table, places, r)
        else:
            prefetch_around(table, places, r)
        count = chosen_ids(table, places[r], step, hashes, chosen)
        if end + count > len(out):
            longer = np.empty(2 * len(out) + count, dtype=np.int64)
            longer[:end] = out[:end]
            out = longer
        out[end : end + count] = chosen[:count]
        end += count
        indptr[r + 1] = end
    return indptr, located(table, out[:end])


@compiled
def choose_otherwise(
    before: Table, after: Table, nodes: NDArray[np.int64], step: Step
) -> NDArray[np.bool_]:
    """Mark the nodes (ids) that are new, or choose other neighbours than before."""
    out = np.zeros(len(nodes), dtype=np.bool_)
    hashes, old = np.empty(step.most, dtype=np.uint64), np.empty(step.most, dtype=np.int64)
    new = np.empty(step.most, dtype=np.int64)
    for i in range(len(nodes)):
        was, now = locate(before, nodes[i]), locate(after, nodes[i])
        if NOWHERE in (was, now):
            out[i] = now != NOWHERE
            continue
        one = chosen_ids(before, was, step, hashes, old)
        two = chosen_ids(after, now, step, hashes, new)
        out[i] = one != two
        for j in range(min(one, two)):
            out[i] |= old[j] != new[j]
    return out


@compiled
def sources_at(table: Table, places: NDArray[np.int64], step: Step, most: int) -> NDArray[np.int64]:
    """Count the nodes that a step leads from to each of the nodes at these places.

    Up to most, rounded down to a power of two.
    """
    out, whole = np.zeros(len(places), dtype=np.int64), NOWHERE not in places
    for i in range(len(places)):
        if places[i] == NOWHERE:
            continue
        if whole:
            prefetch_neighbours(table, places, i)
        node = node_at(table, places[i])
        first, degree = first_edge(table, places[i]), degree_at(table, places[i])
        start = _first_of(first, degree, step.source, step.shift)
        if step.up < 0:
            end = _first_of(first, degree, step.source + 1, step.shift)
            out[i], degree = min(end - start, most), start
        for e in range(start, degree):
            other = neighbour(first, e)
            if out[i] == most or other >> step.shift != step.source:
                break
            # Seen from the other node.
            out[i] += _joined(table, places[i], e, step.up if node > other else step.down)
        power = 1
        while 2 * power <= out[i]:
            power *= 2
        out[i] = min(out[i], power)
    return out


@compiled
def next_to(table: Table, nodes: NDArray[np.int64], step: Step) -> NDArray[np.int64]:
    """Return the ids of nodes that a step leads from to one of these, each once."""
    most = 1
    for node in nodes:
        most += degree_at(table, locate(table, node))
    slots, found = room_for_set(most)
    count = 0
    for node in nodes:
        place = locate(table, node)
        first, degree = first_edge(table, place), degree_at(table, place)
        for e in range(_first_of(first, degree, step.source, step.shift), degree):
            other = neighbour(first, e)
            if other >> step.shift != step.source:
                break
            # Seen from the other node.
            if _joined(table, place, e, step.up if node > other else step.down):
                count = max(count, put(slots, found, count, other) + 1)
    return found[:count].copy()


@compiled
def choosing(
    table: Table, sources: NDArray[np.int64], nodes: NDArray[np.int64], step: Step
) -> NDArray[np.bool_]:
    """Mark the sources (ids) that choose one of these (sorted ids)."""
    out = np.zeros(len(sources), dtype=np.bool_)
    hashes, chosen = np.empty(step.most, dtype=np.uint64), np.empty(step.most, dtype=np.int64)
    for i in range(len(sources)):
        count = chosen_ids(table, locate(table, sources[i]), step, hashes, chosen)
        for j in range(count):
            at = np.searchsorted(nodes, chosen[j])
            if at < len(nodes) and nodes[at] == chosen[j]:
                out[i] = True
                break
    return out
