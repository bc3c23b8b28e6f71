"""Users told by their neighbours, around them in the graph, whenever somebody asks.

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

Of very many neighbours the closest alone are regressed on.
"""

from __future__ import annotations

import numpy as np

from grapheraser.kernels.compiled import compiled
from grapheraser.kernels.paged import (
    COUNT,
    NOWHERE,
    ROOM,
    Table,
    degree_at,
    first_edge,
    locate,
    neighbour,
    node_at,
)
from grapheraser.recommendation.weighing import is_near, item_power_at, power_of, strength

# Neighbours that are looked at, the closest.
CLOSEST = 2048
# A square of the residual, as a part of the first, from where on steps are no use.
_DONE = 1e-24


@compiled
def slots_of(table: Table) -> tuple[bool, int]:
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
def slot_of(table: Table, node: int, small: bool) -> np.int64 | int:
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
        power = item_power_at(table, place, weighing, near) * strengths[k]
        for e in range(degree):
            node = neighbour(first, e)
            if node == own or not is_near(near, node):
                continue
            user = slot_of(table, node, small)
            if sums[user] == 0.0:
                met[count] = node
                count += 1
            sums[user] += power * strength(table, place, e, weighing.scale)
    return count


@compiled
def _closest(table, met, count, small, sums):  # type: ignore[no-untyped-def]
    """Keep the closest users met, in their order; return how many, and clear the sums of others."""
    if count <= CLOSEST:
        return count
    values = np.empty(count)
    for n in range(count):
        sum_ = sums[slot_of(table, met[n], small)]
        values[n] = sum_ * sum_ / degree_at(table, locate(table, met[n]))
    least = np.partition(values, count - CLOSEST)[count - CLOSEST]
    room = CLOSEST
    for n in range(count):
        room -= values[n] > least
    kept = 0
    for n in range(count):
        if values[n] > least or (values[n] == least and room > 0):
            room -= values[n] == least
            met[kept] = met[n]
            kept += 1
        else:
            sums[slot_of(table, met[n], small)] = 0.0
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
            item = slot_of(table, node, small)
            if at[item] == 0:
                reached[found] = node
                found += 1
                at[item] = found
            columns[starts[n] + e] = at[item] - 1
            if scale != 0.0:
                strengths[starts[n] + e] = strength(table, place, e, scale)
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
def regressed(table, items, strengths, own, weighing, near, small, sums, met, at):  # type: ignore[no-untyped-def]
    """Tell a user by their neighbours in each block.

    ``sums`` are zeros by slot and stay so, ``met`` gets the ids of the neighbours, ``at`` the
    numbers of the items that are reached: 0 by slot, see `_rows` and `clear`.

    Returns: what each neighbour has in common with the user and counts ``[blocks, count]``, the
    ids of items that are reached, their shares ``[blocks, found]``, none below 0.
    """
    count = _meet(table, items, strengths, own, weighing, near, small, sums, met)
    count = _closest(table, met, count, small, sums)
    rows = _rows(table, met, count, weighing.scale, small, at)
    common, powers = np.empty(count), np.empty(count)
    degrees = np.empty(count, dtype=np.int64)
    for n in range(count):
        user = slot_of(table, met[n], small)
        common[n], sums[user] = sums[user], 0.0
        degrees[n] = degree_at(table, locate(table, met[n]))
    self = 0.0
    for k in range(len(items)):
        place = locate(table, items[k])
        if place != NOWHERE:
            power = item_power_at(table, place, weighing, near)
            self += power * strengths[k] * strengths[k]
    blocks, reached = len(weighing.steps), rows[3]
    x, shares = np.zeros((blocks, count)), np.zeros((blocks, len(reached)))
    for m in range(blocks):
        known, exponent = weighing.user_powers[m], weighing.exponents[1 + m]
        for n in range(count):
            powers[n] = power_of(known, exponent, degrees[n])
        power = power_of(known, exponent, max(len(items), 1))
        ridge = weighing.ridge * self * power * power
        total = _solve(rows, common, powers, ridge, weighing.steps[m], x[m], shares[m])
        for i in range(len(reached)):
            shares[m, i] = max(shares[m, i], 0.0) / total if total > 0.0 else 0.0
        for n in range(count):
            x[m, n] *= powers[n]
    return common, x, reached, shares


@compiled
def clear(table, nodes, small, at):  # type: ignore[no-untyped-def]
    """Take back the numbers of some items."""
    for node in nodes:
        at[slot_of(table, node, small)] = 0
