"""Facts and tails that cases are made of: those with the smallest keyed hashes, kept up to date.

All facts with hashes up to a bound are held, more than are wanted, and for each step more tails
than its pool gives: where some go, the next come in, and the graph is scanned again only once too
few are left.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from grapheraser.kernels.compiled import compiled
from grapheraser.kernels.hashing import paired
from grapheraser.links.facts.rows import Ids, Rows, entry, room, span

# Tails that cases choose from, of each step and of all; so many are held.
POOL = 64
_HELD = 96


class Chosen(NamedTuple):
    """Facts and tails with small hashes, by their places.

    Attributes:
        facts: head, step, tail ``[k, 3]``.
        marks: their hashes.
        all_facts: whether no fact has a larger one.
        pools: for each step tails of it, and entities at last, with the smallest hashes, in order.
        pool_marks: their hashes.
        sizes: of the pools.
        more: whether there are more than a pool holds.
    """

    facts: Ids
    marks: NDArray[np.uint64]
    all_facts: bool
    pools: Ids
    pool_marks: NDArray[np.uint64]
    sizes: Ids
    more: NDArray[np.bool_]

    @classmethod
    def of(cls, rows: Rows, most: int, key: np.uint64) -> Chosen:
        """Scan all facts for so many with the smallest hashes, and some more."""
        # About four times as many as are wanted are within the bound, hardly ever too few.
        every = 2**64 - 1
        bound = min(every, 2**67 * most // max(1, len(rows.steps)))
        found: Chosen = _scanned(rows, key, np.uint64(bound))
        if len(found.marks) < most and bound < every:
            found = _scanned(rows, key, np.uint64(every))
        return found

    def left(self, rows: Rows, entries: Ids, after: Rows, places: Ids, key: np.uint64) -> Chosen:
        """Return what is left once facts have gone; arguments as for `Cases.without`."""
        touched = np.zeros(len(rows.ids), dtype=np.bool_)
        touched[rows.others[entries]] = True
        found: Chosen = _left(after, self, places, touched, key)
        return found

    def is_enough(self, most: int) -> bool:
        """Tell whether so many facts are held, or all."""
        return len(self.marks) >= most or self.all_facts


@compiled
def _scanned(rows, key, bound):  # type: ignore[no-untyped-def]
    m = rows.num_steps
    facts, count = np.empty((1024, 4), dtype=np.int64), 0
    pools, marks = _empty(m)
    sizes, more = np.zeros(m + 1, dtype=np.int64), np.zeros(m + 1, dtype=np.bool_)
    for x in range(len(rows.ids)):
        own = paired(key, np.uint64(rows.ids[x]))
        pooled = paired(own, key)
        _admit(pools, marks, sizes, more, m, x, pooled)
        stepped = own
        for i in range(rows.ends[x], rows.ends[x + 1]):
            step, y = rows.steps[i], rows.others[i]
            if i == rows.ends[x] or step != rows.steps[i - 1]:
                _admit(pools, marks, sizes, more, step ^ 1, x, paired(pooled, np.uint64(step)))
                stepped = paired(own, np.uint64(step))
            if step & 1 == 0:
                mark = paired(stepped, np.uint64(rows.ids[y]))
                if mark <= bound:
                    facts = room(facts, count)
                    facts[count, 0], facts[count, 1], facts[count, 2] = x, step, y
                    facts[count, 3] = np.int64(mark)
                    count += 1
    found = facts[:count, 3].copy().view(np.uint64)
    every = bound == ~np.uint64(0)
    return Chosen(facts[:count, :3].copy(), found, every, pools, marks, sizes, more)


@compiled
def _empty(m):  # type: ignore[no-untyped-def]
    return np.empty((m + 1, _HELD), dtype=np.int64), np.empty((m + 1, _HELD), dtype=np.uint64)


@compiled
def _admit(pools, marks, sizes, more, pool, item, mark):  # type: ignore[no-untyped-def]
    """Let an item into a pool if its hash is among the smallest."""
    at = sizes[pool]
    if at == _HELD:
        more[pool] = True
        at -= 1
        if mark >= marks[pool, at]:
            return
    else:
        sizes[pool] += 1
    while at > 0 and marks[pool, at - 1] > mark:
        marks[pool, at], pools[pool, at] = marks[pool, at - 1], pools[pool, at - 1]
        at -= 1
    marks[pool, at], pools[pool, at] = mark, item


@compiled
def _left(rows, chosen, places, touched, key):  # type: ignore[no-untyped-def]
    """Keep what is still there at its new place; fill pools that have become too small."""
    m, facts, found, count = rows.num_steps, chosen.facts.copy(), chosen.marks.copy(), 0
    for n in range(len(facts)):
        head, step, tail = chosen.facts[n]
        x, y = places[head], places[tail]
        if x >= 0 and y >= 0 and (not touched[head] or entry(rows, x, step, y) >= 0):
            facts[count, 0], facts[count, 1], facts[count, 2] = x, step, y
            found[count] = chosen.marks[n]
            count += 1
    pools, marks = _empty(m)
    sizes, more = np.zeros(m + 1, dtype=np.int64), chosen.more.copy()
    for pool in range(m + 1):
        for k in range(chosen.sizes[pool]):
            before = chosen.pools[pool, k]
            x = places[before]
            if x >= 0 and (not touched[before] or _is_of(rows, x, pool)):
                pools[pool, sizes[pool]] = x
                marks[pool, sizes[pool]] = chosen.pool_marks[pool, k]
                sizes[pool] += 1
        if more[pool] and sizes[pool] < POOL:
            sizes[pool], more[pool] = 0, False
            for x in range(len(rows.ids)):
                if _is_of(rows, x, pool):
                    mark = paired(paired(key, np.uint64(rows.ids[x])), key)
                    if pool < m:
                        mark = paired(mark, np.uint64(pool ^ 1))
                    _admit(pools, marks, sizes, more, pool, x, mark)
    return Chosen(facts[:count], found[:count], chosen.all_facts, pools, marks, sizes, more)


@compiled
def _is_of(rows, place, pool):  # type: ignore[no-untyped-def]
    """Tell whether the entity at a place is a tail of the pool's step."""
    if pool == rows.num_steps:
        return True
    first, last = span(rows, place, pool ^ 1)
    return last > first
