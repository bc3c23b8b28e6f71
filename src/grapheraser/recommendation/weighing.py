"""Numbers that scores are made with: powers of degrees, strengths and ages of interactions.

Sums run along ids, in their order, on one thread, and powers and logarithms are our own, so the
same graph gives the same bits everywhere. Where there are very many users, those with the smallest
hashes count as neighbours (see `Neighbours`); and degrees of items are rounded where a power is
taken of them, so that hardly any sum changes when a user goes who is nobody's neighbour.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from grapheraser.kernels.compiled import compiled
from grapheraser.kernels.elementary import exponential, logarithm
from grapheraser.kernels.hashing import paired
from grapheraser.kernels.paged import (
    Table,
    degree_at,
    edge_value,
    first_edge,
    label_at,
    locate,
    neighbour,
)
from grapheraser.kernels.sets import rank_of
from grapheraser.seeding import derive

Ids = NDArray[np.int64]
Vector = NDArray[np.float64]

# Powers of degrees up to here are looked up.
_KNOWN = 4096
_ALL = np.uint64(2**64 - 1)
# The part that an interaction of this moment has in a sum of recent ones.
_WHOLE = 2**20
# Bits that a rounded degree keeps: powers are off by one part in 16 of the degree at the most.
_KEPT = 4
_LOG_2 = 0.6931471805599453


class Weighing(NamedTuple):
    """Numbers that scores are made with, as compiled code takes them.

    Attributes:
        item_powers: ``[_KNOWN]``, powers of the degrees of items.
        user_powers: ``[blocks, _KNOWN]``, powers of the degrees of users.
        exponents: ``[1 + blocks]``, of both, for larger degrees.
        steps: int64 ``[blocks]``, of conjugate gradients.
        scale: the weight of an interaction of strength 1; 0: interactions have no weights.
        damping: e.
        ridge: l, as a multiple of what a user has in common with themselves.
        half_life: after which an interaction counts half as recent; 0: they have no times.
    """

    item_powers: Vector
    user_powers: NDArray[np.float64]
    exponents: Vector
    steps: Ids
    scale: float
    damping: float
    ridge: float
    half_life: float


@lru_cache(maxsize=16)
def weighing_of(
    item_power: float,
    blocks: tuple[tuple[float, int], ...],
    damping: float,
    ridge: float,
    scale: float | None = None,
    half_life: float | None = None,
) -> Weighing:
    """Return the numbers that blocks make scores with; None: no weights, or no times.

    Args:
        item_power: c.
        blocks: b and the number of steps of each.
        damping: e.
        ridge: l, as a multiple.
        scale: see `Weighing`.
        half_life: likewise.
    """
    exponents = np.array([item_power, *(power for power, _ in blocks)])
    powers, steps = _powers(exponents), np.array([steps for _, steps in blocks], dtype=np.int64)
    known = powers[0].copy(), powers[1:].copy(), exponents, steps
    return Weighing(*known, float(scale or 0.0), damping, ridge, float(half_life or 0.0))


@compiled
def _powers(exponents: Vector) -> NDArray[np.float64]:
    out = np.empty((len(exponents), _KNOWN))
    for m in range(len(exponents)):
        for d in range(_KNOWN):
            out[m, d] = exponential(-exponents[m] * logarithm(np.float64(max(d, 1))))
    return out


@compiled(inline=True)
def power_of(known: Vector, exponent: float, degree: int) -> float:
    """Return a degree to minus an exponent."""
    if degree < _KNOWN:
        return known[degree]
    return exponential(-exponent * logarithm(np.float64(degree)))


class Neighbours(NamedTuple):
    """Which users count as neighbours: all, or those with a hash of at most ``top``."""

    key: np.uint64
    top: np.uint64

    @classmethod
    def among(cls, users: int, most: int, seed: int) -> Neighbours:
        """Choose at most about ``most`` of so many users: all, or one of 2, of 4, of 8, ..."""
        halvings = 0
        while users > most << halvings:
            halvings += 1
        return cls(
            np.uint64(derive(seed, "recommendation", "neighbours")), _ALL >> np.uint64(halvings)
        )


@compiled(inline=True)
def is_near(near: Neighbours, node: int) -> bool:
    """Return whether a user counts as a neighbour."""
    return near.top == _ALL or paired(near.key, np.uint64(node)) <= near.top


@compiled
def item_degree(table: Table, place: int, near: Neighbours) -> int:
    """Return the number of users of the item at a place, rounded down where users are many."""
    degree, spare = degree_at(table, place), 0
    if near.top != _ALL:
        while degree >> (spare + _KEPT):
            spare += 1
    return (degree >> spare) << spare


@compiled(inline=True)
def item_power_at(table: Table, place: int, weighing: Weighing, near: Neighbours) -> float:
    """Return what the item at a place counts for being unpopular."""
    degree = item_degree(table, place, near)
    return power_of(weighing.item_powers, weighing.exponents[0], degree)


@compiled(inline=True)
def strength(table: Table, place: int, entry: int, scale: float) -> float:
    """Return the strength of the interaction that an entry is."""
    if scale == 0.0:
        return 1.0
    return np.float64(edge_value(table, place, entry, 0)) / scale


@compiled
def profile_of(
    table: Table, place: int, but: int, scale: float
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the items of the user at a place, but for one (an id, or -1), and how strong each."""
    degree, first, count = degree_at(table, place), first_edge(table, place), 0
    items, strengths = np.empty(degree, dtype=np.int64), np.empty(degree)
    for e in range(degree):
        item = neighbour(first, e)
        if item != but:
            items[count], strengths[count] = item, strength(table, place, e, scale)
            count += 1
    return items[:count].copy(), strengths[:count].copy()


@compiled
def side_degrees(table, ids, side):  # type: ignore[no-untyped-def]
    """Return the ids that are on one side, and how many interactions each has."""
    found, degrees = np.empty(len(ids), dtype=np.int64), np.empty(len(ids), dtype=np.int64)
    count = 0
    for node in ids:
        place = locate(table, node)
        if label_at(table, place) == side:
            found[count], degrees[count] = node, degree_at(table, place)
            count += 1
    return found[:count].copy(), degrees[:count].copy()


class Recency(NamedTuple):
    """Popularity as seen from a moment: sums over interactions, half as much after a half-life.

    Parts are whole numbers, so sums are the same in whatever order interactions come and go.

    Attributes:
        items: sorted ids of all items; none where interactions have no times.
        sums: of the parts of each one's interactions.
    """

    items: Ids
    sums: Ids


NO_TIMES = Recency(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64))


@compiled(inline=True)
def age_of(table: Table, place: int, entry: int, weighing: Weighing) -> float:
    """Return how long before the moment an interaction was."""
    return np.float64(edge_value(table, place, entry, 0 if weighing.scale == 0.0 else 1))


@compiled
def recent_part(age: float, half_life: float) -> np.int64:
    """Return the part of an interaction in sums of recent ones: a whole number."""
    return np.int64(_WHOLE * exponential(-_LOG_2 * min(max(age, 0.0) / half_life, 64.0)))


@compiled
def recent_sums(table: Table, items: Ids, weighing: Weighing) -> Ids:
    """Return the sum of the parts of each item's interactions."""
    sums = np.zeros(len(items), dtype=np.int64)
    for n in range(len(items)):
        place = locate(table, items[n])
        for e in range(degree_at(table, place)):
            sums[n] += recent_part(age_of(table, place, e, weighing), weighing.half_life)
    return sums


@compiled(inline=True)
def recent(recency: Recency, item: int, without: int) -> float:
    """Return the logarithm of one more than an item's popularity of late."""
    sum_ = recency.sums[rank_of(item, recency.items)] - without
    return logarithm(1.0 + sum_ / _WHOLE)
