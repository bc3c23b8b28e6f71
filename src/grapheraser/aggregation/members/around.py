"""Labels around a node: those of its neighbours, and of the nodes two steps away, by class.

Of each node at most `NEAR` labelled neighbours count at one step, and at most `FAR` neighbours in
each of two steps: those with the smallest keyed hashes (see `kernels.neighbourhoods`). A node's own
label never counts for itself.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from grapheraser.aggregation.members.base import Ids, Places
from grapheraser.aggregation.members.walks import Reach, Ring, ring_around, rings_and_steps
from grapheraser.graph import Graph
from grapheraser.graph.csr import slices_of
from grapheraser.kernels.compiled import compiled
from grapheraser.kernels.hashing import paired
from grapheraser.kernels.neighbourhoods import (
    ANY,
    LABELLED,
    OTHERS,
    admit,
    chosen_around,
    is_kind,
    places_for,
)
from grapheraser.kernels.paged import (
    degree_at,
    first_edge,
    label_at,
    locate,
    neighbour,
    node_at,
    prefetch_around,
)
from grapheraser.seeding import derive

NEAR, FAR = 64, 16
# The step from a node, over any neighbour, and the step from there. One of those at which the
# second ends may be the node itself.
MIDDLE, END = Reach(ANY, FAR), Reach(LABELLED, FAR + 1)
# Neighbours without a label that count, by what is around them.
GUESSED = 16
Counts = NDArray[np.int64]
_LARGEST = np.uint64(2**64 - 1)


@lru_cache(maxsize=8)
def key_of(seed: int) -> np.uint64:
    """Return the key that decides which neighbours count."""
    return np.uint64(derive(seed, "labels around"))


def one_hop(graph: Graph, places: Places, seed: int) -> Counts:
    """Labels of each node's neighbours ``[len(places), num_classes]``."""
    counts: Counts = _one(graph.table, places, graph.num_classes, key_of(seed))
    return counts


def two_hops(graph: Graph, places: Places, seed: int) -> Counts:
    """Labels at the ends of walks of two steps that don't lead back, over any node."""
    near = ring_around(graph, places, MIDDLE, key_of(seed))
    return _two_hops(graph, places, near, _steps(graph, near.places, seed))


def two_hops_twice(
    before: tuple[Graph, Places], after: tuple[Graph, Places], moved: Ids, seed: int
) -> tuple[Counts, Counts]:
    """`two_hops` of places in a graph before a change and of places in the one after.

    Args:
        before: the graph, and places in it.
        after: likewise.
        moved: sorted ids of the nodes around which other labels count than before.
        seed: of the run.
    """
    was, now, steps = rings_and_steps(
        before,
        after,
        moved,
        MIDDLE,
        key_of(seed),
        lambda graph, places: _steps(graph, places, seed),
    )
    return _two_hops(*before, was, steps), _two_hops(*after, now, steps)


def _steps(graph: Graph, places: Places, seed: int) -> Counts:
    """Labels around nodes by class, and what tells whether a neighbour is among those counted."""
    steps: Counts = _label_steps(graph.table, places, graph.num_classes, END.most, key_of(seed))
    return steps


def _two_hops(graph: Graph, places: Places, near: Ring, steps: Counts) -> Counts:
    counts: Counts = _two(graph.table, places, near.indptr, near.entries, steps)
    return counts


class Around(NamedTuple):
    """The labels around some nodes, node after node.

    Attributes:
        pointers: int64 ``[m + 1]``, where each node's part of ``near`` begins and ends.
        near: int32, classes of its labelled neighbours that count, in the order of their ids.
        every: int64 ``[m, num_classes]``, all of its labelled neighbours by class.
        others: int64 ``[m + 1]``, likewise of the next two.
        guessed: int64, ids of its neighbours without a label that count.
        beyond: int32 ``[., num_classes]``, labels around each of those but for the node's own.
    """

    pointers: NDArray[np.int64]
    near: NDArray[np.int32]
    every: Counts
    others: NDArray[np.int64]
    guessed: NDArray[np.int64]
    beyond: NDArray[np.int32]

    @classmethod
    def of(cls, graph: Graph, places: Places, seed: int) -> Around:
        """Look around the nodes at these places."""
        return cls(*_around(graph.table, places, graph.num_classes, key_of(seed)))

    def replaced(self, rows: NDArray[np.int64], fresh: Around) -> Around:
        """Some rows of this one, with fresh ones, in their order, where ``rows`` is -1."""
        new = rows < 0
        at = np.where(new, len(self.every) + np.cumsum(new) - 1, rows)
        pointers = np.append(self.pointers, self.pointers[-1] + fresh.pointers[1:])
        others = np.append(self.others, self.others[-1] + fresh.others[1:])
        entries, guesses = slices_of(pointers, at), slices_of(others, at)
        return Around(
            _pointers(pointers, at),
            np.append(self.near, fresh.near)[entries],
            np.concatenate([self.every, fresh.every])[at],
            _pointers(others, at),
            np.append(self.guessed, fresh.guessed)[guesses],
            np.concatenate([self.beyond, fresh.beyond])[guesses],
        )


def _pointers(pointers: NDArray[np.int64], rows: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.append(0, np.cumsum(pointers[rows + 1] - pointers[rows]))


@compiled
def _one(table, places, num_classes, key):  # type: ignore[no-untyped-def]
    out = np.zeros((len(places), num_classes), dtype=np.int64)
    hashes, labels = places_for(NEAR)
    for r in range(len(places)):
        prefetch_around(table, places, r)
        own = paired(key, np.uint64(node_at(table, places[r])))
        _count(table, places[r], own, hashes, labels, out[r])
    return out


@compiled
def _label_steps(table, places, num_classes, most, key):  # type: ignore[no-untyped-def]
    """Counts by class; the key of the node's hashes; the largest hash that is counted."""
    out = np.zeros((len(places), num_classes + 2), dtype=np.int64)
    hashes, labels = places_for(most)
    for r in range(len(places)):
        prefetch_around(table, places, r)
        own = paired(key, np.uint64(node_at(table, places[r])))
        count = _count(table, places[r], own, hashes, labels, out[r])
        out[r, num_classes] = np.int64(own)
        out[r, num_classes + 1] = np.int64(hashes[most - 1] if count == most else _LARGEST)
    return out


@compiled
def _count(table, place, own, hashes, labels, out):  # type: ignore[no-untyped-def]
    """Count the labels around a node that count; returns how many there are.

    These are the labels of the neighbours that `chosen_around` gives. They are counted here
    without asking who they are; their hashes are left in order.
    """
    most, count = len(hashes), 0
    first = first_edge(table, place)
    for e in range(degree_at(table, place)):
        node = neighbour(first, e)
        value = paired(own, np.uint64(node))
        if count < most or value < hashes[most - 1]:
            other = locate(table, node)
            if is_kind(table, other, LABELLED):
                count = admit(value, label_at(table, other), hashes, labels, count)
    for i in range(count):
        out[labels[i]] += 1
    return count


@compiled
def _two(table, places, indptr, entries, steps):  # type: ignore[no-untyped-def]
    """Sum the steps around each node, without the walks that lead back to it.

    A step counted this node's label if the node's hash was among those let in there: at most the
    largest of them. So one subtraction undoes it, and steps can be shared by all rows around them.
    """
    num_classes = steps.shape[1] - 2
    out = np.zeros((len(places), num_classes), dtype=np.int64)
    for r in range(len(places)):
        row, node, label = out[r], np.uint64(node_at(table, places[r])), np.int64(-1)
        if is_kind(table, places[r], LABELLED):
            label = label_at(table, places[r])
        for e in range(indptr[r] + 1, indptr[r + 1]):
            step = steps[entries[e]]
            for k in range(num_classes):
                row[k] += step[k]
            own, largest = np.uint64(step[num_classes]), np.uint64(step[num_classes + 1])
            if label >= 0 and paired(own, node) <= largest:
                row[label] -= 1
    return out


@compiled
def _around(table, places, num_classes, key):  # type: ignore[no-untyped-def]
    m, most, guesses = len(places), 0, 0
    for place in places:
        degree = degree_at(table, place)
        most += min(degree, NEAR)
        guesses += min(degree, GUESSED)
    pointers, others = np.zeros(m + 1, dtype=np.int64), np.zeros(m + 1, dtype=np.int64)
    near, guessed = np.empty(most, dtype=np.int32), np.empty(guesses, dtype=np.int64)
    every = np.zeros((m, num_classes), dtype=np.int64)
    beyond = np.zeros((guesses, num_classes), dtype=np.int32)
    hashes, chosen = places_for(NEAR)
    other_hashes, unknown = places_for(GUESSED)
    far_hashes, far = places_for(FAR)
    end, last = 0, 0
    for r in range(m):
        place = places[r]
        for i in range(chosen_around(table, place, LABELLED, key, hashes, chosen)):
            near[end] = label_at(table, chosen[i])
            end += 1
        pointers[r + 1] = end
        first = first_edge(table, place)
        for e in range(degree_at(table, place)):
            other = locate(table, neighbour(first, e))
            if is_kind(table, other, LABELLED):
                every[r, label_at(table, other)] += 1
        for i in range(chosen_around(table, place, OTHERS, key, other_hashes, unknown)):
            guessed[last] = node_at(table, unknown[i])
            for j in range(chosen_around(table, unknown[i], LABELLED, key, far_hashes, far)):
                if far[j] != place:
                    beyond[last, label_at(table, far[j])] += 1
            last += 1
        others[r + 1] = last
    return pointers, near[:end].copy(), every, others, guessed[:last].copy(), beyond[:last].copy()
