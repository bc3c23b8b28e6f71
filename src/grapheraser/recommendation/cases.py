"""Cases that the weights of the pool are learned from: interactions, each held out of its own case.

A case is a user and one of their items: without it, they are to find it among some others. Users
with the smallest keyed hashes have a case each, so one who goes lets in the next and every other
stays; the item is the one with the smallest hash. The other items are those of further cases, along
a ring in the order of another hash: popular items come often, which the pool's weights make up for.
What is held out has no part in the numbers that judge it. A case that a change hasn't touched keeps
its evidence: whoever goes had a part in it only if they were among those who told its user, or if
the number of users of one of its items counts differently without them.

Where interactions have times, a user's newest one is held out, and has a case as likely as it
counts in the popularity of late: so weights are learned from what was looked for of late, and
choices come as often as they were popular of late.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from grapheraser.aggregation.base import Change
from grapheraser.aggregation.sample.membership import Candidates
from grapheraser.graph import Graph
from grapheraser.kernels.compiled import compiled
from grapheraser.kernels.hashing import paired
from grapheraser.kernels.paged import (
    NOWHERE,
    Table,
    degree_at,
    entry_of,
    first_edge,
    label_at,
    locate,
    neighbour,
)
from grapheraser.kernels.sets import rank_of, ranks
from grapheraser.recommendation.scoring import commonness, judged
from grapheraser.recommendation.weighing import (
    Ids,
    Neighbours,
    Recency,
    Weighing,
    age_of,
    is_near,
    item_degree,
    recent_part,
)
from grapheraser.seeding import derive, keyed_hash

# Items that a case chooses from, its own among them.
CHOICES = 16
# So many times as many nodes are drawn as there are cases: some are items.
_SPARE = 8
USER, ITEM = 0, 1


@dataclass(frozen=True, eq=False)
class Cases:
    """The cases of a graph.

    Attributes:
        drawn: nodes with the smallest hashes, users among them.
        users: ids ``[n]``.
        items: of what is held out ``[n]``.
        choices: ids of items ``[n, CHOICES]``.
        labels: which of them is the item ``[n]``; it follows from the hash.
        shares: what blocks say ``[n, blocks, CHOICES]``, see `scoring.judged`.
        told: sorted ids of the neighbours of each user who said it.
        common: how popular choices are ``[n, 1 or 2, CHOICES]``, see `scoring.commonness`.
        near: which users counted as neighbours.
    """

    drawn: Candidates
    users: Ids
    items: Ids
    choices: Ids
    labels: Ids
    shares: NDArray[np.float64]
    told: list[Ids]
    common: NDArray[np.float64]
    near: Neighbours

    @classmethod
    def of(
        cls,
        graph: Graph,
        most: int,
        seed: int,
        weighing: Weighing,
        near: Neighbours,
        recency: Recency,
    ) -> Cases:
        """Choose and judge the cases of a graph; at most so many."""
        drawn = Candidates.of(graph, (1.0, _SPARE * most), derive(seed, "recommendation"))
        users, items, choices, labels = _chosen(graph, drawn, seed, weighing)
        shares, told = _judged(graph, (users, items, choices), weighing, near)
        common = commonness(graph.table, users, items, choices, weighing, recency)
        return cls(drawn, users, items, choices, labels, shares, told, common, near)

    @property
    def evidence(self) -> NDArray[np.float64]:
        """The evidence that the weights are learned from ``[n, members, CHOICES]``."""
        return np.concatenate([self.shares, self.common], axis=1)

    def changed(
        self,
        graph: Graph,
        change: Change,
        seed: int,
        weighing: Weighing,
        near: Neighbours,
        recency: Recency,
    ) -> Cases:
        """Return the cases of a graph after a change; judge again what it has touched."""
        drawn = self.drawn.changed(graph, change.changed, derive(seed, "recommendation"))
        users, items, choices, labels = _chosen(graph, drawn, seed, weighing)
        stale = np.ones(len(users), dtype=bool)
        old = {pair: n for n, pair in enumerate(zip(self.users, self.items, strict=True))}
        known = [old.get(pair, -1) for pair in zip(users, items, strict=True)]
        rows = np.array(known, dtype=np.int64)
        if near == self.near:
            moved = _moved_items(change.before.graph, graph, change, near)
            stale = _stale(graph.table, users, choices, self.choices, rows, change.changed, moved)
            going = _near_ones(change.gone, near)
            for n in np.flatnonzero(~stale) if len(going) else ():
                stale[n] = (ranks(self.told[rows[n]], going) >= 0).any()
        some = (users[stale], items[stale], choices[stale])
        found, new = _judged(graph, some, weighing, near)
        shares = np.empty((len(users), *found.shape[1:]))
        shares[stale], shares[~stale] = found, self.shares[rows[~stale]]
        told = [new.pop(0) if stale[n] else self.told[rows[n]] for n in range(len(users))]
        common = commonness(graph.table, users, items, choices, weighing, recency)
        return Cases(drawn, users, items, choices, labels, shares, told, common, near)


def _judged(
    graph: Graph, cases: tuple[Ids, Ids, Ids], weighing: Weighing, near: Neighbours
) -> tuple[NDArray[np.float64], list[Ids]]:
    """Return the shares of cases, and who told them."""
    shares, told, ends = judged(graph.table, *cases, weighing, near)
    return shares, [told[a:b].copy() for a, b in pairwise(ends.tolist())]


def _chosen(
    graph: Graph, drawn: Candidates, seed: int, weighing: Weighing
) -> tuple[Ids, Ids, Ids, Ids]:
    """Return users, items, choices and labels of the cases, in the order of the ring."""
    most = drawn.limit[1] or 0
    nodes = drawn.nodes[:most]
    most_cases = most // _SPARE
    users = nodes[graph.labels(nodes) == USER][: most if weighing.half_life else most_cases]
    key = np.uint64(derive(seed, "recommendation", "held out"))
    items = _held_out(graph.table, users, key, weighing)
    marks = keyed_hash(users, derive(seed, "recommendation", "ring"))[items >= 0][:most_cases]
    users, items = users[items >= 0][:most_cases], items[items >= 0][:most_cases]
    order = np.lexsort((users, marks))
    labels = (marks[order] % np.uint64(CHOICES)).astype(np.int64)
    users, items = users[order], items[order]
    kept, choices = _others(graph.table, users, items, labels)
    return users[kept], items[kept], choices, labels[kept]


@compiled
def _held_out(table: Table, users: Ids, key: np.uint64, weighing: Weighing) -> Ids:
    """Choose an item of each user; -1 for one who has fewer than two, and nothing to judge by.

    With times it is the newest, and -1 the likelier the longer ago it was.
    """
    out = np.full(len(users), -1, dtype=np.int64)
    for n in range(len(users)):
        place = locate(table, users[n])
        first, degree, least = first_edge(table, place), degree_at(table, place), np.uint64(0)
        if degree < 2:
            continue
        age = newest = 0.0
        for e in range(degree):
            item = neighbour(first, e)
            mark = paired(paired(key, np.uint64(users[n])), np.uint64(item))
            if weighing.half_life > 0.0:
                age = age_of(table, place, e, weighing)
            if e == 0 or age < newest or (age == newest and mark < least):
                out[n], least, newest = item, mark, age
        if weighing.half_life > 0.0:
            drawn = np.int64(paired(least, key) >> np.uint64(44))
            if drawn >= recent_part(newest, weighing.half_life):
                out[n] = -1
    return out


@compiled
def _others(table: Table, users: Ids, items: Ids, labels: Ids) -> tuple[Ids, Ids]:
    """Find the choices of each case along the ring; leave out cases that have none to make."""
    n = len(users)
    kept, count = np.empty(n, dtype=np.int64), 0
    choices = np.empty((n, CHOICES), dtype=np.int64)
    found = np.empty(CHOICES - 1, dtype=np.int64)
    for r in range(n):
        place, many, step = locate(table, users[r]), 0, 1
        while many < CHOICES - 1 and step < n:
            other = items[(r + step) % n]
            if entry_of(table, place, other) == NOWHERE:
                found[many] = other
                many += 1
            step += 1
        if many == 0:
            continue
        for k in range(CHOICES - 1):  # where there are few, they come again
            choices[count, k + (k >= labels[r])] = found[k % many]
        choices[count, labels[r]] = items[r]
        kept[count] = r
        count += 1
    return kept[:count].copy(), choices[:count].copy()


def _moved_items(before: Graph, after: Graph, change: Change, near: Neighbours) -> Ids:
    """Return sorted ids of the items that count differently now, or that changed users have.

    Users who are gone are not among them: see `Cases.told`.
    """
    tables = before.table, after.table
    parts = [_touching(*pair, change.touched, near) for pair in (tables, tables[::-1])]
    return np.unique(np.concatenate(parts))


@compiled
def _near_ones(nodes: Ids, near: Neighbours) -> Ids:
    return np.array([node for node in nodes if is_near(near, node)], dtype=np.int64)


@compiled
def _touching(table: Table, other: Table, nodes: Ids, near: Neighbours) -> Ids:
    most = 0
    for node in nodes:
        place = locate(table, node)
        if place != NOWHERE:
            most += 1 if label_at(table, place) == ITEM else degree_at(table, place)
    out, count = np.empty(most, dtype=np.int64), 0
    for node in nodes:
        place, there = locate(table, node), locate(other, node)
        if place == NOWHERE:
            continue
        if label_at(table, place) == ITEM:
            if there == NOWHERE or (
                item_degree(table, place, near) != item_degree(other, there, near)
            ):
                out[count] = node
                count += 1
            continue
        if not is_near(near, node):
            continue
        first = first_edge(table, place)
        for e in range(degree_at(table, place)):
            out[count] = neighbour(first, e)
            count += 1
    return out[:count].copy()


@compiled
def _stale(
    table: Table, users: Ids, choices: Ids, before: Ids, rows: Ids, changed: Ids, moved: Ids
) -> NDArray[np.bool_]:
    """Mark the cases that are new, have other choices, or read a user or an item that moved.

    Evidence reads the user's items, and all neighbours who have any of them: where one of these
    changed, their items are among those that moved.
    """
    out = np.zeros(len(users), dtype=np.bool_)
    for n in range(len(users)):
        if rows[n] < 0 or rank_of(users[n], changed) >= 0:
            out[n] = True
            continue
        for k in range(CHOICES):
            if choices[n, k] != before[rows[n], k]:
                out[n] = True
                break
        if out[n]:
            continue
        place = locate(table, users[n])
        first = first_edge(table, place)
        for e in range(degree_at(table, place)):
            if rank_of(neighbour(first, e), moved) >= 0:
                out[n] = True
                break
    return out
