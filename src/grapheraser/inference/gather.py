"""The neighbourhood of some nodes, gathered from the graph once: all that a prediction reads of it.

Predictions work on these small arrays alone. Nothing here is as long as the graph. A node's
neighbours stay in ascending order of their ids, whatever numbers they get, since sums over them run
in this order.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from grapheraser.arrays import Floats32, Ints, Ints32
from grapheraser.graph import Graph
from grapheraser.kernels.compiled import compiled
from grapheraser.kernels.hashing import paired
from grapheraser.kernels.neighbourhoods import admit, places_for, put_in_order
from grapheraser.kernels.paged import (
    Table,
    degree_at,
    entry_of,
    feature_rows,
    first_edge,
    locate,
    neighbour,
    node_at,
    weight_at,
)
from grapheraser.kernels.sets import put, room_for_set

Pointers = Ints
Numbers = Ints32
Matrix = Floats32

NO_FEATURES, OWN_FEATURES, ALL_FEATURES = 0, 1, 2


class Bound(NamedTuple):
    """A limit on the neighbours of a node that count: those with the smallest keyed hashes."""

    most: int  # how many
    key: int  # of the hashes


WHOLE = Bound(2**62, 0)
_UNWEIGHTED: Matrix = np.zeros(0, dtype=np.float32)


class Gathered(NamedTuple):
    """Nodes and their surroundings, numbered in rings: first the nodes, then their neighbours."""

    nodes: Ints  # int64 ``[n]``, the node id of each number
    wanted: int  # how many of them were asked for; these come first, in the order asked for
    # indptr, indices: CSR over numbers; the neighbours that count, of all but the last ring.
    indptr: Pointers
    indices: Numbers
    # Float32 ``[n]``, how many neighbours count, also of the last ring; where edges have weights or
    # directions, what the weights of those that come in sum up to.
    degree: Matrix
    # Float32, the weight with which each entry of ``indices`` comes in; empty where edges have
    # neither weights nor directions.
    weights: Matrix
    # x_indptr, x_indices, x_data: CSR features, in the columns of the graph; of no number, of those
    # asked for or of all.
    x_indptr: Pointers
    x_indices: Numbers
    x_data: Matrix
    num_features: int  # columns of the graph


def gather_field(
    graph: Graph,
    positions: Ints,
    bound: Bound = WHOLE,
    *,
    hops: int = 2,
    features: int = ALL_FEATURES,
) -> Gathered:
    """Gather the neighbourhood of some nodes.

    ``positions`` are rows in any order, repeats allowed; at most ``bound`` neighbours of a node
    count; ``features`` is `NO_FEATURES`, `OWN_FEATURES` or `ALL_FEATURES`.
    """
    wanted = graph.places_at(np.asarray(positions, dtype=np.int64))
    most, key = min(bound.most, graph.num_nodes), np.uint64(bound.key)
    table = graph.table
    nodes, places, indptr, indices, degree = _rings(table, wanted, graph.num_nodes, most, key, hops)
    weights = _UNWEIGHTED
    if table.weighted or table.directed:
        edges = indptr, indices, graph.num_nodes, most, key
        weights, degree = _weighed(table, nodes, places, *edges)
    read = places[: (0, len(wanted), len(places))[features]]
    x_indptr, x_indices, x_data = feature_rows(table, read)
    csr, x = (indptr, indices, degree, weights), (x_indptr, x_indices, x_data)
    return Gathered(nodes, len(wanted), *csr, *x, graph.num_features)


@compiled
def _rings(
    table: Table, wanted: Ints, num_nodes: int, most: int, key: np.uint64, hops: int
) -> tuple[Ints, Ints, Pointers, Numbers, Matrix]:
    hashes, chosen = places_for(most if most < num_nodes else 1)
    count, done = len(wanted), 0
    nodes, places = np.empty(count, dtype=np.int64), wanted.copy()
    for r in range(count):
        nodes[r] = node_at(table, wanted[r])
    pointers, numbers = np.zeros(1, dtype=np.int64), np.empty(0, dtype=np.int32)
    for _ in range(hops):
        last = count
        pointers = _longer(pointers, last + 1)
        for r in range(done, last):
            pointers[r + 1] = pointers[r] + min(degree_at(table, places[r]), most)
        numbers = _longer(numbers, pointers[last])
        room = last + pointers[last] - pointers[done]
        nodes, places = _longer(nodes, room), _longer(places, room)
        slots, _ = room_for_set(min(room, num_nodes))
        for r in range(count):
            put(slots, nodes, r, nodes[r])
        for r in range(done, last):
            first, degree = first_edge(table, places[r]), degree_at(table, places[r])
            few = degree <= most
            if not few:
                _choose(first, degree, nodes[r], key, hashes, chosen)
            for e in range(pointers[r], pointers[r + 1]):
                i = e - pointers[r]
                other = neighbour(first, i) if few else chosen[i]
                number = put(slots, nodes, count, other)
                if number == count:
                    places[count] = locate(table, other)
                    count += 1
                numbers[e] = number
        done = last
    degrees = np.empty(count, dtype=np.float32)
    for r in range(count):
        degrees[r] = min(degree_at(table, places[r]), most)
    return nodes[:count].copy(), places[:count].copy(), pointers, numbers, degrees


@compiled
def _weighed(
    table: Table,
    nodes: Ints,
    places: Ints,
    indptr: Pointers,
    indices: Numbers,
    num_nodes: int,
    most: int,
    key: np.uint64,
) -> tuple[Matrix, Matrix]:
    """Return the weights of the entries of `_rings`, and their sum for every node.

    The sum is taken in double precision over neighbours in ascending order, for the last ring too.
    """
    hashes, chosen = places_for(most if most < num_nodes else 1)
    weights, sums = np.empty(indptr[-1], dtype=np.float32), np.empty(len(nodes), dtype=np.float32)
    for r in range(len(nodes)):
        total, degree = 0.0, degree_at(table, places[r])
        if r + 1 < len(indptr):
            for e in range(indptr[r], indptr[r + 1]):
                entry = entry_of(table, places[r], nodes[indices[e]])
                weights[e] = weight_at(table, places[r], entry)
                total += weights[e]
        elif degree <= most:
            for entry in range(degree):
                total += weight_at(table, places[r], entry)
        else:
            _choose(first_edge(table, places[r]), degree, nodes[r], key, hashes, chosen)
            for other in chosen[:most]:
                total += weight_at(table, places[r], entry_of(table, places[r], other))
        sums[r] = total
    return weights, sums


@compiled
def _longer(array, length):  # type: ignore[no-untyped-def]
    """Return a copy with room for more."""
    out = np.empty(max(length, len(array)), dtype=array.dtype)
    for i in range(len(array)):
        out[i] = array[i]
    return out


@compiled
def _choose(
    first: int, degree: int, node: int, key: np.uint64, hashes: NDArray[np.uint64], chosen: Ints
) -> None:
    """Write the ids of the neighbours that count, ascending."""
    own = paired(key, np.uint64(node))
    count = 0
    for i in range(degree):
        other = neighbour(first, i)
        count = admit(paired(own, np.uint64(other)), other, hashes, chosen, count)
    put_in_order(chosen, count)


class Part(NamedTuple):
    """Some of the nodes that were asked for, with their own surroundings."""

    numbers: Numbers  # int32, of the gathered nodes, in rings as there; the asked for come first
    wanted: int  # how many were asked for
    # indptr, indices, degree, weights: as there, over the places in ``numbers``.
    indptr: Pointers
    indices: Numbers
    degree: Matrix
    weights: Matrix


def part_of(gathered: Gathered, wanted: Numbers | None, room: Numbers, hops: int) -> Part:
    """Return some of the nodes that were asked for, with what is around them.

    ``wanted`` are numbers of gathered nodes without repeats (None: all); ``room`` is int32, one per
    gathered number, all -1, and left so.
    """
    edges = gathered.indptr, gathered.indices, gathered.degree, gathered.weights
    if wanted is None:
        return Part(np.arange(len(gathered.nodes), dtype=np.int32), gathered.wanted, *edges)
    numbers, *found = _part(*edges, wanted, room, hops)
    return Part(numbers, len(wanted), *found)


@compiled
def _part(
    indptr: Pointers,
    indices: Numbers,
    degree: Matrix,
    weights: Matrix,
    wanted: Numbers,
    room: Numbers,
    hops: int,
) -> tuple[Numbers, Pointers, Numbers, Matrix, Matrix]:
    numbers, count, done = wanted, len(wanted), 0
    pointers, places = np.zeros(1, dtype=np.int64), np.empty(0, dtype=np.int32)
    for r in range(count):
        room[wanted[r]] = r
    for _ in range(hops):
        last = count
        pointers = _longer(pointers, last + 1)
        for r in range(done, last):
            pointers[r + 1] = pointers[r] + indptr[numbers[r] + 1] - indptr[numbers[r]]
        places = _longer(places, pointers[last])
        numbers = _longer(numbers, 1 + last + min(len(room), pointers[last] - pointers[done]))
        for r in range(done, last):
            start = indptr[numbers[r]]
            for e in range(pointers[r], pointers[r + 1]):
                other = indices[start + e - pointers[r]]
                # Nobody can foresee which ones are new, and a wrong guess costs more than this.
                at, new = room[other], room[other] < 0
                numbers[count] = other
                at = count if new else at
                room[other] = at
                places[e] = at
                count += new
        done = last
    around = np.empty(count, dtype=np.float32)
    for r in range(count):
        around[r] = degree[numbers[r]]
        room[numbers[r]] = -1
    own = np.empty(len(places) if len(weights) else 0, dtype=np.float32)
    for r in range(done if len(weights) else 0):
        first, start = pointers[r], indptr[numbers[r]]
        for e in range(first, pointers[r + 1]):
            own[e] = weights[start + e - first]
    return numbers[:count].copy(), pointers, places, around, own
