"""Springs: neighbours attract each other, all nodes repel each other, until they come to rest.

Attraction grows with the distance, repulsion falls with it and grows with the degrees of both
nodes, which pushes hubs, and the communities around them, apart. Repulsion is that of masses on a
grid, convolved with what one of them does to all others, so a step takes n log n instead of n^2.
The large form is found on a coarse graph first, the nodes of which stand for several each.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import fft
from scipy.sparse import csr_array, diags_array
from scipy.sparse.csgraph import connected_components

from grapheraser.arrays import Floats, Ints
from grapheraser.seeding import keyed_hash

Places: TypeAlias = Floats

# A graph of so many nodes starts from scattered places.
_SMALLEST = 40
# A step to a coarser graph that leaves more than this share of the nodes is not worth it.
_LEFT = 0.8
# Steps on the coarsest graph and on every finer one; how much farther a step may lead than the
# nodes lie apart, and what is left of that after each.
_FIRST, _LATER = (300, 2.0, 0.985), (60, 2.0, 0.93)
_MIN_WIDTH, _MAX_WIDTH = 64, 512  # cells of the grid on each side


def settle(edges: csr_array, ids: Ints, key: int) -> Places:
    """Places ``[n, 2]`` of the nodes of a connected graph.

    ``edges`` ``[n, n]`` has both directions of every edge, and none from a node to itself. Ids and
    key decide who looks for company where several are as near.
    """
    masses: Floats = np.ones(len(ids))
    degrees: Any = edges.sum(axis=1)
    finer = []
    while len(masses) > _SMALLEST:
        joined = _joined(edges, masses, key)
        if joined.shape[1] > _LEFT * len(masses):
            break
        finer.append((edges, masses, degrees, joined))
        edges = without_loops(csr_array(joined.T @ edges @ joined))
        masses, degrees = joined.T @ masses, joined.T @ degrees
    start = _scattered(len(masses), key) * math.sqrt(len(ids))
    places = _relaxed(edges, masses, degrees, start, _FIRST)
    for edges, masses, degrees, joined in reversed(finer):
        near = _scattered(len(masses), key) * math.sqrt(masses.mean())
        places = _relaxed(edges, masses, degrees, joined @ places + near, _LATER)
    return places


def without_loops(edges: csr_array) -> csr_array:
    """Return the edges without those from a node to itself."""
    found = csr_array(edges - diags_array(edges.diagonal()))
    found.eliminate_zeros()
    return found


def _joined(edges: csr_array, masses: Floats, key: int) -> csr_array:
    """Return which nodes become one ``[n, groups]``.

    Pairs do that have most edges to each other for their size; the first that likes one of a pair
    best joins them.
    """
    n, degrees = len(masses), np.diff(edges.indptr)
    rows, everyone = np.repeat(np.arange(n), degrees), np.arange(n)
    # Of equals the same are preferred at both ends: an edge has one hash.
    numbers = np.minimum(rows, edges.indices) * n + np.maximum(rows, edges.indices)
    scores = edges.data / (masses * degrees)[edges.indices] * (1 + 1e-3 * _uniform(numbers, key))
    best = np.maximum.reduceat(scores, edges.indptr[:-1])[rows]
    chosen = np.empty(n, dtype=np.int64)
    chosen[rows[scores == best]] = edges.indices[scores == best]
    is_paired = chosen[chosen] == everyone
    _, firsts = np.unique(np.where(is_paired, n + everyone, chosen), return_index=True)
    joins = everyone.copy()
    joins[firsts] = np.where(is_paired[chosen], chosen, everyone)[firsts]
    ones = np.ones(n)
    pairs = csr_array((ones, (everyone, joins)), shape=(n, n))
    count, groups = connected_components(pairs, directed=False)
    return csr_array((ones, (everyone, groups)), shape=(n, count))


def _relaxed(
    edges: csr_array,
    masses: Floats,
    degrees: Floats,
    places: Places,
    steps: tuple[int, float, float],
) -> Places:
    """Move every node by the force on it, again and again, less and less far."""
    count, far, cooling = steps
    farthest, push = far * math.sqrt(masses.mean()), masses + degrees
    held = edges.sum(axis=1)[:, None]
    for _ in range(count):
        forces = repulsion(places, push) + edges @ places - held * places
        # A node that is held by many springs must not swing beyond where it belongs.
        forces /= push[:, None] + held
        lengths = np.linalg.norm(forces, axis=1, keepdims=True)
        places = places + forces * np.minimum(1.0, farthest / np.maximum(lengths, 1e-12))
        farthest *= cooling
    return places


def repulsion(places: Places, masses: Floats) -> Floats:
    """Return the repulsion of all others on every node ``[n, 2]``, but for those in its cell.

    Two nodes at a distance d repel each other with the product of their masses, over d.
    """
    width = 2 ** math.ceil(math.log2(2 * math.sqrt(len(masses))))
    width = min(_MAX_WIDTH, max(_MIN_WIDTH, width))
    cell = (np.ptp(places, axis=0).max() + 1e-12) / (width - 2)
    at = (places - places.min(axis=0)) / cell
    corner = at.astype(np.int64)
    # Each node is shared out to the four corners around it, and felt there.
    part = np.stack([1 - (at - corner), at - corner])
    shares = (part[:, None, :, 0] * part[None, :, :, 1]).reshape(4, -1)
    cells = corner @ [width, 1] + np.array([0, 1, width, width + 1])[:, None]
    grid = np.bincount(cells.ravel(), (shares * masses).ravel(), width**2)
    waves = fft.rfft2(grid.reshape(width, width), (2 * width, 2 * width))
    fields = (fft.irfft2(waves * one)[:width, :width].ravel() for one in _of_one(width))
    felt = np.stack([(shares * field[cells]).sum(axis=0) for field in fields], axis=1)
    return felt * masses[:, None] / cell


@cache
def _of_one(width: int) -> tuple[NDArray[np.complex128], NDArray[np.complex128]]:
    """Return the push of one mass on all cells, in both directions, as waves."""
    away = fft.fftfreq(2 * width, 1 / (2 * width))
    squares = away[:, None] ** 2 + away**2
    squares[0, 0] = 1.0
    push = away[:, None] / squares
    return fft.rfft2(push), fft.rfft2(push.T)


def _scattered(count: int, key: int) -> Places:
    """Places in the unit square around 0."""
    return _uniform(np.arange(2 * count), key).reshape(count, 2) - 0.5


def _uniform(numbers: Ints, key: int) -> Floats:
    """Return a number in [0, 1) for each of these."""
    return (keyed_hash(numbers, key) >> np.uint64(11)).astype(np.float64) / 2.0**53
