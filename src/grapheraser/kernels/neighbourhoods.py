"""A few neighbours of each node, where all would be too many.

Those with the smallest keyed hashes are chosen. The choice follows from ids alone: deleting a
neighbour that was not chosen changes nothing, deleting one that was lets in the next, and a fresh
fit on the remaining graph chooses the same.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from grapheraser.arrays import AnyArray, Ints
from grapheraser.kernels.compiled import compiled
from grapheraser.kernels.hashing import paired
from grapheraser.kernels.paged import (
    COUNT,
    NOWHERE,
    ROOM,
    Table,
    copy_features,
    degree_at,
    entry_of,
    first_edge,
    label_at,
    locate,
    neighbour,
    node_at,
    role_at,
    size_at,
    weight_between,
)

# Which neighbours may be chosen: any, training nodes, those of them with a label, all but training
# nodes, training and context nodes.
ANY, TRAINED, LABELLED, OTHERS, UNMASKED = range(5)
_CONTEXT, _TRAIN, _UNLABELLED = 0, 1, -1  # as in `graph.roles`


@compiled
def places_for(count: int) -> tuple[NDArray[np.uint64], Ints]:
    """Room for the hashes and the places of ``count`` neighbours."""
    return np.empty(count, dtype=np.uint64), np.empty(count, dtype=np.int64)


@compiled(inline=True)
def admit(
    value: np.uint64, item: int, hashes: NDArray[np.uint64], chosen: AnyArray, count: int
) -> int:
    """Let an item in among the smallest hashes if it is one of them; returns how many there are."""
    most = len(chosen)
    if count == most and value >= hashes[most - 1]:
        return count
    at = min(count, most - 1)
    while at > 0 and hashes[at - 1] > value:
        hashes[at], chosen[at] = hashes[at - 1], chosen[at - 1]
        at -= 1
    hashes[at], chosen[at] = value, item
    return min(count + 1, most)


@compiled(inline=True)
def put_in_order(chosen: AnyArray, count: int) -> None:
    """Sort the first ``count`` items, in place."""
    for i in range(1, count):
        item, at = chosen[i], i
        while at > 0 and chosen[at - 1] > item:
            chosen[at] = chosen[at - 1]
            at -= 1
        chosen[at] = item


def smallest_of_each(owner: Ints, hashes: NDArray[np.uint64], most: int) -> Ints:
    """The places of the smallest hashes of each owner, at most so many; owners ascend."""
    order, first = np.lexsort((hashes, owner)), np.searchsorted(owner, owner)
    return np.sort(order[np.arange(len(owner)) - first < most])


@compiled(inline=True)
def is_kind(table: Table, place: int, kind: int) -> bool:
    """Return whether the node at a place is of a kind."""
    if kind == ANY:
        return True
    role = role_at(table, place)
    if role != _TRAIN:
        return kind == OTHERS or (kind == UNMASKED and role == _CONTEXT)
    return kind in (TRAINED, UNMASKED) or (label_at(table, place) != _UNLABELLED) == (
        kind == LABELLED
    )


@compiled
def places_of(table: Table, kind: int) -> Ints:
    """The places of all nodes of a kind, ascending."""
    total = count = 0
    for page in range(len(table.pages)):
        total += table.pages[page, COUNT]
    out = np.empty(total, dtype=np.int64)
    for page in range(len(table.pages)):
        for place in range(page * ROOM, page * ROOM + table.pages[page, COUNT]):
            if is_kind(table, place, kind):
                out[count] = place
                count += 1
    return out[:count].copy()


@compiled
def places_among(table: Table, nodes: Ints, kind: int) -> Ints:
    """The places of those of the ids that are there and of a kind."""
    out = np.empty(len(nodes), dtype=np.int64)
    count = 0
    for node in nodes:
        place = locate(table, node)
        if place != NOWHERE and is_kind(table, place, kind):
            out[count] = place
            count += 1
    return out[:count].copy()


@compiled
def chosen_around(
    table: Table, place: int, kind: int, key: np.uint64, hashes: NDArray[np.uint64], chosen: Ints
) -> int:
    """Write the chosen among the neighbours of a kind, by place; returns how many there are."""
    return chosen_but(table, place, kind, key, -1, hashes, chosen)


@compiled
def chosen_but(
    table: Table,
    place: int,
    kind: int,
    key: np.uint64,
    but: int,
    hashes: NDArray[np.uint64],
    chosen: Ints,
) -> int:
    """As `chosen_around`, as if the neighbour ``but`` (an id) were none; -1 for nobody."""
    most, count = len(chosen), 0
    first, degree = first_edge(table, place), degree_at(table, place)
    if 4 * degree <= 5 * most:  # there may be nothing to choose
        for e in range(degree):
            node = neighbour(first, e)
            other = locate(table, node)
            if node != but and is_kind(table, other, kind):
                if count == most:
                    break
                chosen[count] = other
                count += 1
        else:
            return count
        count = 0
    own = paired(key, np.uint64(node_at(table, place)))
    for e in range(degree):
        node = neighbour(first, e)
        value = paired(own, np.uint64(node))
        if node == but or (count == most and value >= hashes[most - 1]):
            continue
        if kind == ANY or is_kind(table, locate(table, node), kind):
            count = admit(value, node, hashes, chosen, count)
    # By id, as where there is nothing to choose: whoever adds up the chosen ones rounds alike.
    put_in_order(chosen, count)
    for i in range(count):
        chosen[i] = locate(table, chosen[i])
    return count


@compiled
def is_chosen(table: Table, place: int, kind: int, key: np.uint64, most: int, node: int) -> bool:
    """Return whether `chosen_around` chooses a neighbour, where ``most`` are chosen."""
    if kind != ANY and not is_kind(table, locate(table, node), kind):
        return False
    first, degree = first_edge(table, place), degree_at(table, place)
    if degree <= most:
        return True
    own = paired(key, np.uint64(node_at(table, place)))
    value, smaller = paired(own, np.uint64(node)), 0
    for e in range(degree):
        other = neighbour(first, e)
        if paired(own, np.uint64(other)) < value and (
            kind == ANY or is_kind(table, locate(table, other), kind)
        ):
            smaller += 1
            if smaller == most:
                return False
    return True


@compiled
def chosen_alike(
    before: Table,
    was: int,
    after: Table,
    place: int,
    kind: int,
    key: np.uint64,
    room: tuple[NDArray[np.uint64], Ints, Ints],
) -> int:
    """Count the neighbours that are chosen; -1 where they are not those that were chosen before.

    Those have the same ids, and where edges have weights, the same weights. ``was`` and ``place``
    are one node's places in the two graphs. ``room`` takes hashes and places of as many neighbours
    as are chosen, and their places before; the places in the graph after are left in it.
    """
    hashes, chosen, old = room
    count = chosen_around(after, place, kind, key, hashes, chosen)
    if chosen_around(before, was, kind, key, hashes, old) != count:
        return -1
    for i in range(count):
        node = node_at(after, chosen[i])
        if node_at(before, old[i]) != node:
            return -1
        if after.weighted:
            entry, former = entry_of(after, place, node), entry_of(before, was, node)
            if weight_between(after, place, entry) != weight_between(before, was, former):
                return -1
    return count


@compiled
def features_differ(before: Table, was: int, after: Table, place: int) -> bool:
    """Return whether the features at a place of a graph differ from those at a place of another."""
    most = max(size_at(before, was), size_at(after, place))
    columns, values = np.empty(2 * most, dtype=np.int32), np.empty(2 * most, dtype=np.float32)
    count = copy_features(before, was, columns, values, 0)
    differs = copy_features(after, place, columns, values, most) - most != count
    for e in range(count):
        differs |= columns[e] != columns[most + e] or values[e] != values[most + e]
    return differs
