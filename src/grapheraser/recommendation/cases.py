"""Cases that the weights of the pool are learned from: interactions, each held out of its own case.

A case is a user and one of their items: without it, they are to find it among some others. Users
with the smallest keyed hashes have cases, so one who goes lets in the next and every other stays;
up to `HELD` items of each, at most a quarter, have one, those with the smallest hashes, and none of
them has a part in the numbers that judge the user: one regression is for all. The other items are
those of further cases, along a ring in the order of another hash: popular items come often, which
the pool's weights make up for. Cases that a change hasn't touched keep their evidence: whoever goes
had a part in it only if they were among those who told its user, or if the number of users of one
of its items counts differently without them.

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
from grapheraser.seeding import derive

# Items that a case chooses from, its own among them.
CHOICES = 16
# Items of a user that are held out, at most.
HELD = 8
# So many times as many nodes are drawn as there are users with cases: some are items.
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
        told: sorted ids of the neighbours of each user who said it, by user.
        common: how popular choices are ``[n, 1 or 2, CHOICES]``, see `scoring.commonness`.
        near: which users counted as neighbours.
    """

    drawn: Candidates
    users: Ids
    items: Ids
    choices: Ids
    labels: Ids
    shares: NDArray[np.float64]
    told: dict[int, Ids]
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
        """Choose and judge the cases of a graph; of at most so many users."""
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
        pairs = zip(self.users.tolist(), self.items.tolist(), strict=True)
        old = {pair: n for n, pair in enumerate(pairs)}
        known = [old.get(pair, -1) for pair in zip(users.tolist(), items.tolist(), strict=True)]
        rows = np.array(known, dtype=np.int64)
        if near == self.near:
            moved = _moved_items(change.before.graph, graph, change, near)
            stale = _stale(graph.table, users, choices, self.choices, rows, change.changed, moved)
            again, going = set(users[stale].tolist()), _near_ones(change.gone, near)
            if len(going):
                others = set(users.tolist()) - again
                again |= {user for user in others if (ranks(self.told[user], going) >= 0).any()}
            stale = np.array([user in again for user in users.tolist()], dtype=bool)
        some = (users[stale], items[stale], choices[stale])
        found, told = _judged(graph, some, weighing, near)
        shares = np.empty((len(users), *found.shape[1:]))
        shares[stale], shares[~stale] = found, self.shares[rows[~stale]]
        told |= {user: self.told[user] for user in users[~stale].tolist()}
        common = commonness(graph.table, users, items, choices, weighing, recency)
        return Cases(drawn, users, items, choices, labels, shares, told, common, near)


def _judged(
    graph: Graph, cases: tuple[Ids, Ids, Ids], weighing: Weighing, near: Neighbours
) -> tuple[NDArray[np.float64], dict[int, Ids]]:
    """Return the shares of cases, and who told them, by user. All cases of a user come together."""
    order = np.argsort(cases[0], kind="stable")
    found, told, ends = judged(graph.table, *(part[order] for part in cases), weighing, near)
    shares = np.empty_like(found)
    shares[order] = found
    parts = [told[a:b].copy() for a, b in pairwise(ends.tolist())]
    return shares, dict(zip(np.unique(cases[0]).tolist(), parts, strict=True))


def _chosen(
    graph: Graph, drawn: Candidates, seed: int, weighing: Weighing
) -> tuple[Ids, Ids, Ids, Ids]:
    """Return users, items, choices and labels of the cases, in the order of the ring."""
    most = drawn.limit[1] or 0
    nodes = drawn.nodes[:most]
    users = nodes[graph.labels(nodes) == USER]
    keys = [np.uint64(derive(seed, "recommendation", use)) for use in ("held out", "ring")]
    users, items, marks = _held_out(graph.table, users, most // _SPARE, *keys, weighing)
    order = np.lexsort((items, users, marks))
    labels = (marks[order] % np.uint64(CHOICES)).astype(np.int64)
    users, items = users[order], items[order]
    kept, choices = _others(graph.table, users, items, labels)
    return users[kept], items[kept], choices, labels[kept]


@compiled
def _held_out(
    table: Table, users: Ids, most: int, key: np.uint64, ring: np.uint64, weighing: Weighing
) -> tuple[Ids, Ids, NDArray[np.uint64]]:
    """Hold out items of the first users; none of one who has fewer than two to be judged by.

    With times it is the newest of each, and more users are looked at: it is left out the likelier,
    the longer ago it was.

    Returns: users, items, and marks of the cases.
    """
    timed, count, taken = weighing.half_life > 0.0, 0, 0
    owners = np.empty(most * HELD, dtype=np.int64)
    items, out = np.empty_like(owners), np.empty(len(owners), dtype=np.uint64)
    for n in range(len(users) if timed else min(len(users), most)):
        place = locate(table, users[n])
        first, degree = first_edge(table, place), degree_at(table, place)
        if degree < 2 or taken == most:
            continue
        marks, ages = np.empty(degree, dtype=np.uint64), np.zeros(degree)
        for e in range(degree):
            marks[e] = paired(paired(key, np.uint64(users[n])), np.uint64(neighbour(first, e)))
            ages[e] = age_of(table, place, e, weighing) if timed else 0.0
        before = count
        for _ in range(1 if timed else min(HELD, max(1, degree // 4))):
            least = 0
            for e in range(degree):
                if ages[e] < ages[least] or (ages[e] == ages[least] and marks[e] < marks[least]):
                    least = e
            drawn = np.int64(paired(marks[least], key) >> np.uint64(44))
            if timed and drawn >= recent_part(ages[least], weighing.half_life):
                break
            owners[count], items[count] = users[n], neighbour(first, least)
            out[count] = paired(paired(ring, np.uint64(users[n])), np.uint64(items[count]))
            ages[least] = np.inf
            count += 1
        taken += count > before
    return owners[:count].copy(), items[:count].copy(), out[:count].copy()


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
