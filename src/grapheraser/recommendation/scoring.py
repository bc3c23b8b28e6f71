"""Scores of items for a user, counted around them in the graph whenever somebody asks.

A user's *neighbours* are the others who have an item in common with them. With r the strength of an
interaction (1 where there are no weights), d a number of interactions and ``w_v = d_v^-b``, user u
and neighbour v have in common

    k_v = w_v  sum over common items j of  d_j^-c r_uj r_vj

A block tells u by their neighbours: by ridge regression, ``(K + l I) x = k``, where K holds what
neighbours have in common with each other, ``K_vz = w_v w_z sum over items of r_vi r_zi``. So many
who all have the same count little more than one of them would. A few steps of conjugate gradients
from 0 are taken, not all: the first is proportional to k, the linear part of graph filters such as
GF-CF, the others take off what neighbours repeat. The ridge l is a multiple of what u has in common
with u. The block's share of item i is

    s_i = sum over neighbours v of x_v w_v r_vi / sum over neighbours v of |x_v| w_v

A pool of blocks scores ``sum_m w_m log((s_i + FLOOR) / d_i^e) + p log(d_i)``, and where there are
times ``+ q log(1 + r_i)``, r being popularity as seen from a moment (see `Recency`). Weights are
learned without the damping e, which is applied on top: to tell one item from fifteen others,
popularity helps more than among the first of a long list. Nothing of this is kept: a user who is
forgotten is in no sum any more. Sums run along ids, in their order, on one thread, and
powers and logarithms are our own, so the same graph gives the same bits everywhere. Where there are
very many users, those with the smallest hashes count as neighbours (see `Neighbours`), and of them
the closest alone; and degrees of items are rounded where a power is taken of them, so that hardly
any sum changes when a user goes who is nobody's neighbour.
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
from grapheraser.kernels.sets import rank_of
from grapheraser.seeding import derive

Ids = NDArray[np.int64]
Vector = NDArray[np.float64]

# A share below this says nothing.
FLOOR = 1e-3
# Powers of degrees up to here are looked up.
_KNOWN = 4096
# Neighbours that are looked at, the closest.
_CLOSEST = 2048
# A square of the residual, as a part of the first, from where on steps are no use.
_DONE = 1e-24
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
        blocks: b and the number of steps of each.
        damping: e.
        ridge: l, as a multiple.
        scale: the weight of an interaction of strength 1; None: interactions have no weights.
        half_life: see `Weighing`; None: interactions have no times.
    """

    item_power: float
    blocks: tuple[tuple[float, int], ...]
    damping: float
    ridge: float
    scale: float | None = None
    half_life: float | None = None

    @property
    def weighing(self) -> Weighing:
        """The numbers that scores are made with."""
        return _weighing(self)


@lru_cache(maxsize=16)
def _weighing(rule: Blocks) -> Weighing:
    exponents = np.array([rule.item_power, *(power for power, _ in rule.blocks)])
    powers = _powers(exponents)
    steps = np.array([steps for _, steps in rule.blocks], dtype=np.int64)
    scale = 0.0 if rule.scale is None else float(rule.scale)
    known = (powers[0].copy(), powers[1:].copy())
    half_life = 0.0 if rule.half_life is None else float(rule.half_life)
    return Weighing(*known, exponents, steps, scale, rule.damping, rule.ridge, half_life)


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


@compiled
def item_degree(table: Table, place: int, near: Neighbours) -> int:
    """Return the number of users of the item at a place, rounded down where users are many."""
    degree, spare = degree_at(table, place), 0
    if near.top != _ALL:
        while degree >> (spare + _KEPT):
            spare += 1
    return (degree >> spare) << spare


@compiled(inline=True)
def is_near(near: Neighbours, node: int) -> bool:
    """Return whether a user counts as a neighbour."""
    return near.top == _ALL or paired(near.key, np.uint64(node)) <= near.top


@compiled(inline=True)
def _item_power(table: Table, place: int, weighing: Weighing, near: Neighbours) -> float:
    degree = item_degree(table, place, near)
    return _power(weighing.item_powers, weighing.exponents[0], degree)


@compiled(inline=True)
def _strength(table: Table, place: int, entry: int, scale: float) -> float:
    """Return the strength of the interaction that an entry is."""
    if scale == 0.0:
        return 1.0
    return np.float64(edge_value(table, place, entry, 0)) / scale


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
def _recent(recency: Recency, item: int, without: int) -> float:
    """Return the logarithm of one more than an item's popularity of late."""
    sum_ = recency.sums[rank_of(item, recency.items)] - without
    return logarithm(1.0 + sum_ / _WHOLE)


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
        power = _item_power(table, place, weighing, near) * strengths[k]
        for e in range(degree):
            node = neighbour(first, e)
            if node == own or not is_near(near, node):
                continue
            user = _slot(table, node, small)
            if sums[user] == 0.0:
                met[count] = node
                count += 1
            sums[user] += power * _strength(table, place, e, weighing.scale)
    return count


@compiled
def _closest(table, met, count, small, sums):  # type: ignore[no-untyped-def]
    """Keep the closest users met, in their order; return how many, and clear the sums of others."""
    if count <= _CLOSEST:
        return count
    values = np.empty(count)
    for n in range(count):
        sum_ = sums[_slot(table, met[n], small)]
        values[n] = sum_ * sum_ / degree_at(table, locate(table, met[n]))
    least = np.partition(values, count - _CLOSEST)[count - _CLOSEST]
    room = _CLOSEST
    for n in range(count):
        room -= values[n] > least
    kept = 0
    for n in range(count):
        if values[n] > least or (values[n] == least and room > 0):
            room -= values[n] == least
            met[kept] = met[n]
            kept += 1
        else:
            sums[_slot(table, met[n], small)] = 0.0
    return kept


@compiled
def _rows(table, met, count, scale, small, at):  # type: ignore[no-untyped-def]
    """Copy the rows of users, with items by the order in which they are reached.

    ``at`` is 0 by slot, and gets the number of each item that is reached, from 1 on: zeros take no
    time until they are read, however many items there are.

    Returns: where each row begins, numbers of items, strengths (none where all are 1), and the ids
    of the items that are reached.
    """
    starts = np.zeros(count + 1, dtype=np.int64)
    for n in range(count):
        starts[n + 1] = starts[n] + degree_at(table, locate(table, met[n]))
    columns = np.empty(starts[count], dtype=np.int32)
    strengths = np.empty(starts[count] if scale != 0.0 else 0)
    reached, found = np.empty(min(starts[count], len(at)), dtype=np.int64), 0
    for n in range(count):
        place = locate(table, met[n])
        first = first_edge(table, place)
        for e in range(starts[n + 1] - starts[n]):
            node = neighbour(first, e)
            item = _slot(table, node, small)
            if at[item] == 0:
                reached[found] = node
                found += 1
                at[item] = found
            columns[starts[n] + e] = at[item] - 1
            if scale != 0.0:
                strengths[starts[n] + e] = _strength(table, place, e, scale)
    return starts, columns, strengths, reached[:found]


@compiled
def _spread(rows, powers, ahead, sums):  # type: ignore[no-untyped-def]
    """Write sums of rows of users, times what each counts; return their sum of squares."""
    starts, columns, strengths, _ = rows
    sums[:] = 0.0
    for n in range(len(ahead)):
        part = ahead[n] * powers[n]
        for e in range(starts[n], starts[n + 1]):
            sums[columns[e]] += part * strengths[e] if len(strengths) else part
    square = 0.0
    for i in range(len(sums)):
        square += sums[i] * sums[i]
    return square


@compiled
def _gather(rows, n, sums):  # type: ignore[no-untyped-def]
    """Return the product of a user's row with the sums."""
    starts, columns, strengths, _ = rows
    back = 0.0
    for e in range(starts[n], starts[n + 1]):
        back += sums[columns[e]] * strengths[e] if len(strengths) else sums[columns[e]]
    return back


@compiled
def _squared(values):  # type: ignore[no-untyped-def]
    total = 0.0
    for value in values:
        total += value * value
    return total


@compiled
def _solve(rows, common, powers, ridge, steps, x, shares):  # type: ignore[no-untyped-def]
    """Regress a user on their neighbours; add to ``x`` and ``shares`` (zeros), return the total.

    Args:
        rows: of the neighbours, see `_rows`.
        common: what each has in common with the user.
        powers: w of each.
        ridge: l.
        steps: of conjugate gradients.
        x: what each counts.
        shares: of the items, not yet divided by the total.
    """
    residual, ahead, sums = common * powers, common * powers, np.empty(len(shares))
    square = _squared(residual)
    end = _DONE * square
    for _ in range(steps):
        if square <= end:
            break
        length = ridge * _squared(ahead) + _spread(rows, powers, ahead, sums)
        scale = square / length
        for i in range(len(sums)):
            shares[i] += scale * sums[i]
        for n in range(len(x)):
            x[n] += scale * ahead[n]
            residual[n] -= scale * (powers[n] * _gather(rows, n, sums) + ridge * ahead[n])
        before, square = square, _squared(residual)
        for n in range(len(x)):
            ahead[n] = residual[n] + square / before * ahead[n]
    total = 0.0
    for n in range(len(x)):
        total += abs(x[n]) * powers[n]
    return total


@compiled
def _regressed(table, items, strengths, own, weighing, near, small, sums, met, at):  # type: ignore[no-untyped-def]
    """Tell a user by their neighbours in each block.

    ``sums`` are zeros by slot and stay so, ``met`` gets the ids of the neighbours, ``at`` the
    numbers of the items that are reached: 0 by slot, see `_rows` and `_clear`.

    Returns: what each neighbour has in common with the user and counts ``[blocks, count]``, the
    ids of items that are reached, their shares ``[blocks, found]``, none below 0.
    """
    count = _meet(table, items, strengths, own, weighing, near, small, sums, met)
    count = _closest(table, met, count, small, sums)
    rows = _rows(table, met, count, weighing.scale, small, at)
    common, powers = np.empty(count), np.empty(count)
    degrees = np.empty(count, dtype=np.int64)
    for n in range(count):
        user = _slot(table, met[n], small)
        common[n], sums[user] = sums[user], 0.0
        degrees[n] = degree_at(table, locate(table, met[n]))
    self = 0.0
    for k in range(len(items)):
        place = locate(table, items[k])
        if place != NOWHERE:
            power = _item_power(table, place, weighing, near)
            self += power * strengths[k] * strengths[k]
    blocks, reached = len(weighing.steps), rows[3]
    x, shares = np.zeros((blocks, count)), np.zeros((blocks, len(reached)))
    for m in range(blocks):
        known, exponent = weighing.user_powers[m], weighing.exponents[1 + m]
        for n in range(count):
            powers[n] = _power(known, exponent, degrees[n])
        power = _power(known, exponent, max(len(items), 1))
        ridge = weighing.ridge * self * power * power
        total = _solve(rows, common, powers, ridge, weighing.steps[m], x[m], shares[m])
        for i in range(len(reached)):
            shares[m, i] = max(shares[m, i], 0.0) / total if total > 0.0 else 0.0
        for n in range(count):
            x[m, n] *= powers[n]
    return common, x, reached, shares


@compiled
def _clear(table, nodes, small, at):  # type: ignore[no-untyped-def]
    for node in nodes:
        at[_slot(table, node, small)] = 0


@compiled(inline=True)
def _pooled(shares, item, degree, weights, damping):  # type: ignore[no-untyped-def]
    """Return the pool's score of an item with such shares and such a degree."""
    blocks, popularity = len(shares), logarithm(np.float64(max(degree, 1)))
    score = weights[blocks] * popularity
    for m in range(blocks):
        if weights[m] != 0.0:
            score += weights[m] * (logarithm(shares[m, item] + FLOOR) - damping * popularity)
    return score


@compiled
def ranked(  # type: ignore[no-untyped-def]
    table, profiles, strengths, ends, own, weighing, near, recency, weights, top, fresh, among
):
    """Return the best items of some users ``[n, top]`` and their scores; -1 where there are fewer.

    Args:
        table: the graph.
        profiles: ids of the items of all users, one user after the other.
        strengths: of the interactions with them.
        ends: where the items of each user begin ``[n + 1]``.
        own: the id of each user, or -1.
        weighing: see there.
        near: see there.
        recency: see there.
        weights: of the blocks, of the logarithm of an item's degree, and of late popularity.
        top: how many items.
        fresh: whether the items of a user are left out.
        among: sorted ids of the items to choose from; none: all.
    """
    small, slots = _slots(table)
    sums, met = np.zeros(slots), np.empty(slots, dtype=np.int64)
    at = np.zeros(slots, dtype=np.int32)
    best = np.full((len(own), top), -1, dtype=np.int64)
    scores = np.zeros((len(own), top))
    for n in range(len(own)):
        items = profiles[ends[n] : ends[n + 1]]
        given = strengths[ends[n] : ends[n + 1]]
        parts = table, items, given, own[n], weighing, near, small, sums, met, at
        _common, _x, reached, shares = _regressed(*parts)
        if fresh:
            _clear(table, items, small, at)
        held = 0
        for r in range(len(reached)):
            wanted = len(among) == 0 or rank_of(reached[r], among) >= 0
            if wanted and at[_slot(table, reached[r], small)] > 0:
                degree = degree_at(table, locate(table, reached[r]))
                score = _pooled(shares, r, degree, weights, weighing.damping)
                if len(recency.items):
                    score += weights[len(shares) + 1] * _recent(recency, reached[r], 0)
                held = _admit(best[n], scores[n], held, reached[r], score)
        _clear(table, reached, small, at)
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

    Returns: ``[n, blocks, k]``, logarithms of the shares; and the sorted ids of the neighbours who
    told each user, one user's after the other's, with where they begin ``[n + 1]``.
    """
    blocks, (small, slots) = len(weighing.steps), _slots(table) if len(users) else (True, 0)
    sums, met = np.zeros(slots), np.empty(slots, dtype=np.int64)
    at = np.zeros(slots, dtype=np.int32)
    out = np.empty((len(users), blocks, candidates.shape[1]))
    told, ends = np.empty(_CLOSEST, dtype=np.int64), np.zeros(len(users) + 1, dtype=np.int64)
    for n in range(len(users)):
        place = locate(table, users[n])
        items, strengths = profile_of(table, place, held[n], weighing.scale)
        parts = table, items, strengths, users[n], weighing, near, small, sums, met, at
        common, _x, reached, shares = _regressed(*parts)
        ends[n + 1] = ends[n] + len(common)
        if ends[n + 1] > len(told):
            told = np.concatenate((told, np.empty(ends[n + 1], dtype=np.int64)))
        told[ends[n] : ends[n + 1]] = np.sort(met[: len(common)])
        for k in range(candidates.shape[1]):
            item = at[_slot(table, candidates[n, k], small)] - 1
            for m in range(blocks):
                share = shares[m, item] if item >= 0 else 0.0
                out[n, m, k] = logarithm(share + FLOOR)
        _clear(table, reached, small, at)
    return out, told[: ends[-1]].copy(), ends


@compiled
def commonness(table, users, held, candidates, weighing, recency):  # type: ignore[no-untyped-def]
    """Return the evidence of how popular candidates are, each without its held item's interaction.

    Returns: ``[n, 1, k]``, logarithms of 1 / degree; with times ``[n, 2, k]``, logarithms of
    degrees, and of 1 / (1 + popularity of late).
    """
    timed = len(recency.items) > 0
    out = np.empty((len(held), 2 if timed else 1, candidates.shape[1]))
    for n in range(len(held)):
        for k in range(candidates.shape[1]):
            item, own = candidates[n, k], candidates[n, k] == held[n]
            degree = logarithm(np.float64(max(degree_at(table, locate(table, item)) - own, 1)))
            out[n, 0, k] = degree if timed else -degree
            if timed:
                without = np.int64(0)
                if own:
                    place = locate(table, users[n])
                    age = age_of(table, place, entry_of(table, place, item), weighing)
                    without = recent_part(age, weighing.half_life)
                out[n, 1, k] = -_recent(recency, item, without)
    return out


@compiled
def explained(table, items, strengths, own, target, weighing, near):  # type: ignore[no-untyped-def]
    """Return the part of each item in each block's share of a target ``[len(items), blocks]``.

    A neighbour's part in the share is divided among the items in common as they count in it;
    neighbours who speak against the target have no part.
    """
    blocks, (small, slots) = len(weighing.steps), _slots(table)
    sums, met = np.zeros(slots), np.empty(slots, dtype=np.int64)
    at = np.zeros(slots, dtype=np.int32)
    out = np.zeros((len(items), blocks))
    parts = table, items, strengths, own, weighing, near, small, sums, met, at
    common, x, _reached, _shares = _regressed(*parts)
    numbers = np.zeros(slots, dtype=np.int64)
    for n in range(len(common)):
        numbers[_slot(table, met[n], small)] = n + 1
    for k in range(len(items)):
        place = locate(table, items[k])
        if place == NOWHERE:
            continue
        degree, first = degree_at(table, place), first_edge(table, place)
        power = _item_power(table, place, weighing, near) * strengths[k]
        for e in range(degree):
            node = neighbour(first, e)
            user = numbers[_slot(table, node, small)] - 1
            if user < 0:
                continue
            there = locate(table, node)
            entry = entry_of(table, there, target)
            if entry == NOWHERE:
                continue
            part = power * _strength(table, place, e, weighing.scale) / common[user]
            part *= _strength(table, there, entry, weighing.scale)
            for m in range(blocks):
                out[k, m] += part * max(x[m, user], 0.0)
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
