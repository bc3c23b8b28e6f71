"""Scores of items for a user, counted along two steps of the graph whenever somebody asks.

A user's *neighbours* are the others who have an item in common with them. With r the strength of an
interaction (1 where there are no weights) and d a number of interactions, neighbour v of user u
counts, in a block with user power b and sharpness q,

    x_v = (d_v^-b  sum over common items j of  d_j^-c r_uj r_vj) ^ q

and the block's share of item i is the part of the neighbours who have it:

    s_i = sum over neighbours v of x_v r_vi / sum over neighbours v of x_v

A pool of blocks scores ``sum_m w_m log((s_i + FLOOR) / d_i^e) + p log(d_i)``: the damping e keeps
popular items from every list, as far as p doesn't correct it. Nothing of this is kept: a user
who is forgotten is in no sum any more. Sums run along ids, in their order, on one thread, and
powers and logarithms are our own, so the same graph gives the same bits everywhere. Where there are
very many users, those with the smallest hashes count as neighbours (see `Neighbours`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from grapheraser.kernels.compiled import compiled
from grapheraser.kernels.elementary import exponential, logarithm
from grapheraser.kernels.hashing import paired
from grapheraser.kernels.paged import (
    COUNT,
    NOWHERE,
    ROOM,
    Table,
    degree_at,
    edge_value,
    entry_of,
    first_edge,
    label_at,
    locate,
    neighbour,
    node_at,
)
from grapheraser.seeding import derive

Ids = NDArray[np.int64]
Vector = NDArray[np.float64]

# A share below this says nothing.
FLOOR = 1e-6
# Powers of degrees up to here are looked up.
_KNOWN = 4096
_ALL = np.uint64(2**64 - 1)


class Weighing(NamedTuple):
    """Numbers that scores are made with, as compiled code takes them.

    Attributes:
        item_powers: ``[_KNOWN]``, powers of the degrees of items.
        user_powers: ``[blocks, _KNOWN]``, powers of the degrees of users.
        exponents: ``[1 + blocks]``, of both, for larger degrees.
        sharpness: int64 ``[blocks]``.
        scale: the weight of an interaction of strength 1; 0: interactions have no weights.
        damping: e.
    """

    item_powers: Vector
    user_powers: NDArray[np.float64]
    exponents: Vector
    sharpness: Ids
    scale: float
    damping: float


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


@dataclass(frozen=True)
class Blocks:
    """Blocks of the pool.

    Attributes:
        item_power: c.
        blocks: b and q of each.
        damping: e.
        scale: the weight of an interaction of strength 1; None: interactions have no weights.
    """

    item_power: float
    blocks: tuple[tuple[float, int], ...]
    damping: float
    scale: float | None = None

    @property
    def weighing(self) -> Weighing:
        """The numbers that scores are made with."""
        return _weighing(self)


@lru_cache(maxsize=16)
def _weighing(rule: Blocks) -> Weighing:
    exponents = np.array([rule.item_power, *(power for power, _ in rule.blocks)])
    powers = _powers(exponents)
    sharpness = np.array([sharp for _, sharp in rule.blocks], dtype=np.int64)
    scale = 0.0 if rule.scale is None else float(rule.scale)
    known = (powers[0].copy(), powers[1:].copy())
    return Weighing(*known, exponents, sharpness, scale, rule.damping)


@compiled
def _powers(exponents: Vector) -> NDArray[np.float64]:
    out = np.empty((len(exponents), _KNOWN))
    for m in range(len(exponents)):
        for d in range(_KNOWN):
            out[m, d] = exponential(-exponents[m] * logarithm(np.float64(max(d, 1))))
    return out


@compiled(inline=True)
def _power(known: Vector, exponent: float, degree: int) -> float:
    if degree < _KNOWN:
        return known[degree]
    return exponential(-exponent * logarithm(np.float64(degree)))


@compiled(inline=True)
def _strength(table: Table, place: int, entry: int, scale: float) -> float:
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
            items[count], strengths[count] = item, _strength(table, place, e, scale)
            count += 1
    return items[:count].copy(), strengths[:count].copy()


@compiled
def _slots(table: Table) -> tuple[bool, int]:
    """Say whether ids are small enough to index by, or else places do; and how many slots it takes.

    Looking up a place takes longer than all else here, so it is left out where it can be.
    """
    pages = len(table.pages)
    places = pages * ROOM
    last = node_at(table, (pages - 1) * ROOM + table.pages[pages - 1, COUNT] - 1)
    if last < 4 * places:
        return True, last + 1
    return False, places


@compiled(inline=True)
def _slot(table: Table, node: int, small: bool) -> np.int64 | int:
    """Return the slot of a node."""
    return node if small else locate(table, node)


@compiled
def _meet(table, items, strengths, own, weighing, near, small, sums, met):  # type: ignore[no-untyped-def]
    """Add up what users but ``own`` have in common with some items; return how many users.

    ``sums`` are zeros by slot and get the sums, ``met`` gets the ids of the users.
    """
    count = 0
    for k in range(len(items)):
        place = locate(table, items[k])
        if place == NOWHERE:
            continue
        degree, first = degree_at(table, place), first_edge(table, place)
        power = _power(weighing.item_powers, weighing.exponents[0], degree) * strengths[k]
        for e in range(degree):
            node = neighbour(first, e)
            if node == own:
                continue
            if near.top != _ALL and paired(near.key, np.uint64(node)) > near.top:
                continue
            user = _slot(table, node, small)
            if sums[user] == 0.0:
                met[count] = node
                count += 1
            sums[user] += power * _strength(table, place, e, weighing.scale)
    return count


@compiled
def _sharpen(table, met, count, weighing, small, sums, x, totals):  # type: ignore[no-untyped-def]
    """Write what each neighbour counts in each block, and the totals of blocks; clears the sums."""
    blocks = len(weighing.sharpness)
    for m in range(blocks):
        totals[m] = 0.0
    for n in range(count):
        user = _slot(table, met[n], small)
        degree = degree_at(table, locate(table, met[n]))
        for m in range(blocks):
            one = sums[user] * _power(weighing.user_powers[m], weighing.exponents[1 + m], degree)
            value = one
            for _ in range(weighing.sharpness[m] - 1):
                value *= one
            x[user, m] = value
            totals[m] += value
        sums[user] = 0.0


@compiled
def _spread(table, met, count, weighing, small, x, shares, reached):  # type: ignore[no-untyped-def]
    """Add up the neighbours who have each item; return how many items are reached."""
    blocks, found = len(weighing.sharpness), 0
    for n in range(count):
        user, place = _slot(table, met[n], small), locate(table, met[n])
        degree, first = degree_at(table, place), first_edge(table, place)
        for e in range(degree):
            node = neighbour(first, e)
            item = _slot(table, node, small)
            if shares[item, 0] == 0.0:
                reached[found] = node
                found += 1
            strength = _strength(table, place, e, weighing.scale)
            for m in range(blocks):
                shares[item, m] += x[user, m] * strength
    return found


@compiled(inline=True)
def _pooled(shares, item, totals, degree, weights, damping):  # type: ignore[no-untyped-def]
    """Return the pool's score of an item with such shares and such a degree."""
    blocks, popularity = len(totals), logarithm(np.float64(max(degree, 1)))
    score = weights[blocks] * popularity
    for m in range(blocks):
        if weights[m] != 0.0:
            share = logarithm(shares[item, m] / totals[m] + FLOOR)
            score += weights[m] * (share - damping * popularity)
    return score


@compiled
def ranked(table, profiles, strengths, ends, own, weighing, near, weights, top, fresh):  # type: ignore[no-untyped-def]
    """Return the best items of some users ``[n, top]`` and their scores; -1 where there are fewer.

    Args:
        table: the graph.
        profiles: ids of the items of all users, one user after the other.
        strengths: of the interactions with them.
        ends: where the items of each user begin ``[n + 1]``.
        own: the id of each user, or -1.
        weighing: see there.
        near: see there.
        weights: of the blocks, and of the logarithm of an item's degree.
        top: how many items.
        fresh: whether the items of a user are left out.
    """
    blocks, (small, slots) = len(weighing.sharpness), _slots(table)
    sums, met = np.zeros(slots), np.empty(slots, dtype=np.int64)
    x, totals = np.empty((slots, blocks)), np.empty(blocks)
    shares, reached = np.zeros((slots, blocks)), np.empty(slots, dtype=np.int64)
    best = np.full((len(own), top), -1, dtype=np.int64)
    scores = np.zeros((len(own), top))
    for n in range(len(own)):
        items = profiles[ends[n] : ends[n + 1]]
        given = strengths[ends[n] : ends[n + 1]]
        count = _meet(table, items, given, own[n], weighing, near, small, sums, met)
        _sharpen(table, met, count, weighing, small, sums, x, totals)
        found = _spread(table, met, count, weighing, small, x, shares, reached)
        if fresh:
            for item in items:
                shares[_slot(table, item, small), 0] = -1.0
        held = 0
        for r in range(found):
            item = _slot(table, reached[r], small)
            if shares[item, 0] > 0.0:
                degree = degree_at(table, locate(table, reached[r]))
                score = _pooled(shares, item, totals, degree, weights, weighing.damping)
                held = _admit(best[n], scores[n], held, reached[r], score)
            for m in range(blocks):
                shares[item, m] = 0.0
        if fresh:
            for item in items:
                shares[_slot(table, item, small), 0] = 0.0
        for k in range(held):
            scores[n, k] = exponential(max(min(scores[n, k], 80.0), -80.0))
    return best, scores


@compiled
def _admit(best, scores, held, item, score):  # type: ignore[no-untyped-def]
    """Let an item in among the best if it is one; equals come in the order of their ids."""
    top = len(best)
    if held == top:
        last = scores[top - 1]
        if score < last or (score == last and item > best[top - 1]):
            return held
    at = min(held, top - 1)
    while at > 0 and (scores[at - 1] < score or (scores[at - 1] == score and best[at - 1] > item)):
        best[at], scores[at] = best[at - 1], scores[at - 1]
        at -= 1
    best[at], scores[at] = item, score
    return min(held + 1, top)


@compiled
def judged(table, users, held, candidates, weighing, near):  # type: ignore[no-untyped-def]
    """Return the evidence of candidates ``[n, k]`` for users ``[n]``, each without their held item.

    Returns: ``[n, blocks + 1, k]``, logarithms of the damped shares, and of 1 / degree.
    """
    blocks, (small, slots) = len(weighing.sharpness), _slots(table)
    sums, met = np.zeros(slots), np.empty(slots, dtype=np.int64)
    x, totals = np.zeros((slots, blocks)), np.empty(blocks)
    out = np.empty((len(users), blocks + 1, candidates.shape[1]))
    one = np.empty(blocks)
    for n in range(len(users)):
        place = locate(table, users[n])
        items, strengths = profile_of(table, place, held[n], weighing.scale)
        count = _meet(table, items, strengths, users[n], weighing, near, small, sums, met)
        _sharpen(table, met, count, weighing, small, sums, x, totals)
        for k in range(candidates.shape[1]):
            place = locate(table, candidates[n, k])
            degree, first = degree_at(table, place), first_edge(table, place)
            for m in range(blocks):
                one[m] = 0.0
            for e in range(degree):
                user = _slot(table, neighbour(first, e), small)
                strength = _strength(table, place, e, weighing.scale)
                for m in range(blocks):
                    one[m] += x[user, m] * strength
            known = degree - 1 if candidates[n, k] == held[n] else degree
            popularity = logarithm(np.float64(max(known, 1)))
            for m in range(blocks):
                share = one[m] / totals[m] if totals[m] > 0.0 else 0.0
                out[n, m, k] = logarithm(share + FLOOR) - weighing.damping * popularity
            out[n, blocks, k] = -popularity
        for r in range(count):
            for m in range(blocks):
                x[_slot(table, met[r], small), m] = 0.0
    return out


@compiled
def explained(table, items, strengths, own, target, weighing, near):  # type: ignore[no-untyped-def]
    """Return the part of each item in each block's share of a target ``[len(items), blocks]``.

    A neighbour's part in the share is divided among the items in common as they count in it.
    """
    blocks, (small, slots) = len(weighing.sharpness), _slots(table)
    sums, met = np.zeros(slots), np.empty(slots, dtype=np.int64)
    x, totals = np.zeros((slots, blocks)), np.empty(blocks)
    out = np.zeros((len(items), blocks))
    count = _meet(table, items, strengths, own, weighing, near, small, sums, met)
    common = sums.copy()
    _sharpen(table, met, count, weighing, small, sums, x, totals)
    for k in range(len(items)):
        place = locate(table, items[k])
        if place == NOWHERE:
            continue
        degree, first = degree_at(table, place), first_edge(table, place)
        power = _power(weighing.item_powers, weighing.exponents[0], degree) * strengths[k]
        for e in range(degree):
            node = neighbour(first, e)
            user = _slot(table, node, small)
            if common[user] == 0.0:
                continue
            there = locate(table, node)
            entry = entry_of(table, there, target)
            if entry == NOWHERE:
                continue
            part = power * _strength(table, place, e, weighing.scale) / common[user]
            part *= _strength(table, there, entry, weighing.scale)
            for m in range(blocks):
                out[k, m] += part * x[user, m] / totals[m]
    return out


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
