"""Facts in rows: of every entity its steps, out of it and into it, sorted.

A relation is walked both ways: step ``2 r`` leads from head to tail, step ``2 r + 1`` back, so that
``step ^ 1`` is the way back. Rows hold positions among the sorted ids of all entities that have a
fact, so that they follow from the facts alone.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from grapheraser.kernels.compiled import compiled
from grapheraser.kernels.sets import ranks

Ids = NDArray[np.int64]


class Rows(NamedTuple):
    """The facts of a graph, as compiled code takes them.

    Attributes:
        ids: of entities, ascending ``[n]``.
        ends: where the row of each begins ``[n + 1]``.
        steps: int32 ``[2 m]``, ascending within a row.
        others: int32 ``[2 m]``, positions, ascending within a row's step.
        num_steps: twice the number of relations.
    """

    ids: Ids
    ends: Ids
    steps: NDArray[np.int32]
    others: NDArray[np.int32]
    num_steps: int

    @classmethod
    def of(cls, facts: Ids, relations: int) -> Rows:
        """Sort facts ``[m, 3]`` (head, relation, tail) into rows."""
        ids = np.unique(facts[:, [0, 2]])
        entries = _entries(facts, ids)
        order = np.lexsort((entries[:, 2], entries[:, 1], entries[:, 0]))
        return cls._made(ids, entries[order], 2 * relations)

    @classmethod
    def _made(cls, ids: Ids, entries: Ids, num_steps: int) -> Rows:
        ends = np.zeros(len(ids) + 1, dtype=np.int64)
        np.cumsum(np.bincount(entries[:, 0], minlength=len(ids)), out=ends[1:])
        steps, others = (entries[:, c].astype(np.int32) for c in (1, 2))
        return cls(ids, ends, steps, others, num_steps)

    @property
    def facts(self) -> Ids:
        """All facts ``[m, 3]`` by ids, sorted by head, relation and tail."""
        own = np.repeat(np.arange(len(self.ids)), np.diff(self.ends))
        out = self.steps % 2 == 0
        columns = self.ids[own[out]], self.steps[out] // 2, self.ids[self.others[out]]
        return np.stack(columns, axis=1).astype(np.int64)

    def without(self, entries: Ids) -> tuple[Rows, Ids]:
        """Return the rows without some entries (places in ``steps``).

        Entities without a fact go as well: the new place of each comes second, -1 for those.
        """
        ends = self.ends - np.searchsorted(np.sort(entries), self.ends)
        steps, others = np.delete(self.steps, entries), np.delete(self.others, entries)
        left = np.diff(ends) > 0
        if left.all():
            return Rows(self.ids, ends, steps, others, self.num_steps), np.arange(len(self.ids))
        moved = np.where(left, np.cumsum(left) - 1, -1)
        ends = np.append(ends[:-1][left], ends[-1])
        others = moved[others].astype(np.int32)
        return Rows(self.ids[left], ends, steps, others, self.num_steps), moved

    def extended(self, facts: Ids) -> tuple[Rows, Ids]:
        """Return the rows with new facts ``[m, 3]`` by ids, and the new place of each entity."""
        ids = np.union1d(self.ids, facts[:, [0, 2]])
        moved = np.searchsorted(ids, self.ids)
        own = np.repeat(moved, np.diff(self.ends))
        held = np.stack([own, self.steps, moved[self.others]], axis=1)
        entries = np.concatenate([held, _entries(facts, ids)])
        order = np.lexsort((entries[:, 2], entries[:, 1], entries[:, 0]))
        return Rows._made(ids, entries[order], self.num_steps), moved

    def among(self, ids: Ids) -> Ids:
        """Return the facts ``[m, 3]`` by ids between some entities, of those that are there."""
        places = ranks(ids, self.ids)
        marked = np.zeros(len(self.ids), dtype=np.bool_)
        marked[places[places >= 0]] = True
        found: Ids = _between(self, marked)
        return found

    def entries(self, facts: Ids) -> Ids:
        """Return where facts ``[m, 3]`` by ids lie: all from head to tail, then all back."""
        found: Ids = _found(self, _entries(facts, self.ids))
        return found


def _entries(facts: Ids, ids: Ids) -> Ids:
    """Return facts as entries of rows, both ways."""
    heads, tails = np.searchsorted(ids, facts[:, 0]), np.searchsorted(ids, facts[:, 2])
    there = np.stack([heads, 2 * facts[:, 1], tails], axis=1)
    back = np.stack([tails, 2 * facts[:, 1] + 1, heads], axis=1)
    return np.concatenate([there, back]).astype(np.int64)


@compiled
def room(found, last):  # type: ignore[no-untyped-def]
    """Return an array of rows with room for one at ``last``."""
    if last < len(found):
        return found
    more = np.empty((2 * len(found), found.shape[1]), dtype=np.int64)
    more[: len(found)] = found
    return more


@compiled
def span(rows: Rows, place: int, step: int) -> tuple[int, int]:
    """Return where the entries of a step begin and end in the row at a place."""
    low, high = rows.ends[place], rows.ends[place + 1]
    last = high
    while low < high:
        middle = (low + high) // 2
        if rows.steps[middle] < step:
            low = middle + 1
        else:
            high = middle
    first, high = low, last
    # Most steps have few entries.
    if first < last and rows.steps[first] != step:
        return first, first
    while low < high:
        middle = (low + high) // 2
        if rows.steps[middle] <= step:
            low = middle + 1
        else:
            high = middle
    return first, low


@compiled
def entry(rows: Rows, place: int, step: int, other: int) -> int:
    """Return where a fact lies in the row at a place; -1 where there is none."""
    low, last = span(rows, place, step)
    return place_in(rows, low, last, other)


@compiled
def place_in(rows: Rows, low: int, last: int, other: int) -> int:
    """Return where an entity is among the entries of one step; -1 where it isn't."""
    high = last
    while low < high:
        middle = (low + high) // 2
        if rows.others[middle] < other:
            low = middle + 1
        else:
            high = middle
    return low if low < last and rows.others[low] == other else -1


@compiled
def _found(rows: Rows, facts: Ids) -> Ids:
    out = np.empty(len(facts), dtype=np.int64)
    for n in range(len(facts)):
        out[n] = entry(rows, facts[n, 0], facts[n, 1], facts[n, 2])
    return out


@compiled
def _between(rows: Rows, marked: NDArray[np.bool_]) -> Ids:
    """Return the facts by ids between marked entities."""
    out, count = np.empty((64, 3), dtype=np.int64), 0
    for x in np.flatnonzero(marked):
        for i in range(rows.ends[x], rows.ends[x + 1]):
            if rows.steps[i] & 1 == 0 and marked[rows.others[i]]:
                out = room(out, count)
                out[count, 0], out[count, 1] = rows.ids[x], rows.steps[i] >> 1
                out[count, 2] = rows.ids[rows.others[i]]
                count += 1
    return out[:count].copy()
