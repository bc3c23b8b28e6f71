"""A graph made coarser step by step, so that its large form is found on few nodes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from grapheraser.kernels.compiled import compiled

# Nodes that become one at the most, in a step from one level to the next.
_JOINED = 4
# A step that leaves more than this share of the nodes is not worth it.
_LEFT = 0.8


class Level(NamedTuple):
    """A graph, the nodes of which stand for so many each.

    Attributes:
        indptr, indices: its rows, both directions of every edge.
        weights: how many edges each stands for.
        masses: how many nodes each stands for.
        degrees: of those nodes, added up.
        parents: the node of the next level that each becomes; empty on the last.
    """

    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]
    weights: NDArray[np.float64]
    masses: NDArray[np.float64]
    degrees: NDArray[np.float64]
    parents: NDArray[np.int32]


def levels(
    indptr: NDArray[np.int64],
    indices: NDArray[np.int32],
    order: NDArray[np.int64],
    smallest: int,
) -> list[Level]:
    """A connected graph and coarser ones, the finest first.

    Args:
        indptr: where each node's row begins.
        indices: its rows: both directions of every edge, none from a node to itself.
        order: in which nodes look for somebody to join.
        smallest: a graph of so many nodes is not made coarser.
    """
    weights: NDArray[np.float64] = np.ones(len(indices))
    masses: NDArray[np.float64] = np.ones(len(indptr) - 1)
    degrees: NDArray[np.float64] = np.diff(indptr).astype(np.float64)
    found = []
    while True:
        n = len(masses)
        parents, count = _joined(indptr, indices, weights, masses, order)
        last = n <= smallest or count > _LEFT * n
        parents = parents[:0] if last else parents
        found.append(Level(indptr, indices, weights, masses, degrees, parents))
        if last:
            return found
        indptr, indices, weights = _contracted(indptr, indices, weights, parents, count)
        masses, degrees = (_added(sums, parents, count) for sums in (masses, degrees))
        order = np.argsort(masses, kind="stable")


def _added(sums: NDArray[np.float64], groups: NDArray[np.int32], count: int) -> NDArray[np.float64]:
    """What the nodes of each group have together."""
    total = np.zeros(count)
    np.add.at(total, groups, sums)
    return total


@compiled
def _joined(indptr, indices, weights, masses, order):  # type: ignore[no-untyped-def]
    """The group of every node: that of the neighbour with most edges to it for its size."""
    n = len(masses)
    groups = np.full(n, -1, dtype=np.int32)
    sizes, total = np.zeros(n, dtype=np.int32), np.zeros(n)
    count = 0
    for u in order:
        if groups[u] >= 0:
            continue
        best, score = -1, 0.0
        for e in range(indptr[u], indptr[u + 1]):
            v = indices[e]
            group = groups[v]
            if group >= 0 and sizes[group] >= _JOINED:
                continue
            mass = masses[v] if group < 0 else total[group]
            found = weights[e] / (mass * (indptr[v + 1] - indptr[v]))
            if found > score:
                best, score = v, found
        if best >= 0 and groups[best] >= 0:
            group = groups[best]
        else:
            group = count
            count += 1
            if best >= 0:
                groups[best] = group
                sizes[group] += 1
                total[group] += masses[best]
        groups[u] = group
        sizes[group] += 1
        total[group] += masses[u]
    return groups, count


@compiled
def _contracted(indptr, indices, weights, groups, count):  # type: ignore[no-untyped-def]
    """The rows of the graph of groups; edges within one are gone, others are added up."""
    n = len(groups)
    starts = np.zeros(count + 1, dtype=np.int64)
    for u in range(n):
        starts[groups[u] + 1] += 1
    for g in range(count):
        starts[g + 1] += starts[g]
    members, at = np.empty(n, dtype=np.int32), starts[:-1].copy()
    for u in range(n):
        members[at[groups[u]]] = u
        at[groups[u]] += 1
    rows = np.zeros(count + 1, dtype=np.int64)
    columns, sums = np.empty(len(indices), dtype=np.int32), np.empty(len(indices))
    seen, filled = np.full(count, -1, dtype=np.int64), 0
    for g in range(count):
        first = filled
        for i in range(starts[g], starts[g + 1]):
            for e in range(indptr[members[i]], indptr[members[i] + 1]):
                other = groups[indices[e]]
                if other == g:
                    continue
                if seen[other] < first:
                    seen[other] = filled
                    columns[filled], sums[filled] = other, 0.0
                    filled += 1
                sums[seen[other]] += weights[e]
        rows[g + 1] = filled
    return rows, columns[:filled].copy(), sums[:filled].copy()
