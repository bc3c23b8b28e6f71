"""Columns that neighbours vote on: deep, and still only moved around what a change has touched.

For every column a keyed hash makes some nodes landmarks, with a sign. In each step a node takes
the sign that most of its neighbours that count have in that column; where they are even it keeps
its own, which may be none. After some steps the signs tell neighbourhoods apart. Averages of the
same depth would change by a little all over the graph wherever a node goes; a vote mostly has the
outcome that it had, so that few signs turn, and only around there.

Signs are two bits, and 64 columns are counted at once. They follow from ids and edges alone, by
whole numbers, so they are the same wherever and in whatever order they are worked out.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from grapheraser.eraser.conventions import Turn
from grapheraser.graph import Graph
from grapheraser.kernels.compiled import compiled
from grapheraser.kernels.hashing import paired
from grapheraser.kernels.neighbourhoods import ANY, admit, places_for, places_of, put_in_order
from grapheraser.kernels.paged import (
    NOWHERE,
    ROOM,
    START,
    degree_at,
    first_edge,
    locate,
    located,
    neighbour,
    neighbours_at,
    node_at,
    nodes_at,
)
from grapheraser.kernels.sets import put, ranks, room_for_set
from grapheraser.seeding import derive

Ids = NDArray[np.int64]
Places = NDArray[np.int64]
# uint64 ``[steps - 1, slots, 2 * words]``: after each step but the last, by place, the columns
# where the sign is + and those where it is -.
Signs = NDArray[np.uint64]

WORD = 64
# Bits of a count of votes.
_PLANES = 5
MAX_VOTES = 2**_PLANES - 1


class Rule(NamedTuple):
    """The rule by which votes are cast.

    Attributes:
        landmarks: key of the landmarks.
        choice: key of which neighbours count.
        most: how many neighbours count.
        rarity: one node in ``2**rarity`` is a landmark, for each column.
        words: how many times 64 columns.
        steps: how many.
        shift: bits of an id below the node's type; see `graph.types`.
    """

    landmarks: np.uint64
    choice: np.uint64
    most: int
    rarity: int
    words: int
    steps: int
    shift: int

    @classmethod
    def of(
        cls, seed: int, columns: int, steps: int, most: int, rarity: int, shift: int = 63
    ) -> Rule:
        """Derive the keys from the seed."""
        landmarks, choice = (np.uint64(derive(seed, "votes", what)) for what in (0, 1))
        return cls(landmarks, choice, most, rarity, -(-columns // WORD), steps, shift)


class Tally:
    """The signs of all nodes of one graph, handed on from a state to the next.

    They follow from the graph and merely save time, as do the neighbours that count. Copying them
    would cost more than a request, so they are changed in place: the newest state holds them, and
    one before, if it is still asked, counts again.
    """

    def __init__(self, rule: Rule, graph: Graph) -> None:
        self.turn = Turn()  # whoever reads signs waits for whoever changes them
        self.rule = rule
        self.graph: Graph | None = graph
        table = graph.table
        slots = len(table.pages) * ROOM
        self._near: Ids = np.full((slots, rule.most), NOWHERE)
        self._signs: Signs = np.zeros((rule.steps - 1, slots, 2 * rule.words), dtype=np.uint64)
        _count_all(table, places_of(table, ANY), rule, self._near, self._signs)

    @property
    def nbytes(self) -> int:
        return self._signs.nbytes + self._near.nbytes

    def votes(self, graph: Graph, places: Places, step: int) -> NDArray[np.int16]:
        """Votes of a step ``[len(places), 64 * words]``, by which + is ahead of -."""
        out: NDArray[np.int16] = _votes(
            graph.table, self._near[places], self.rule, self._signs, step
        )
        return out

    def votes_among(self, graph: Graph, node: int, near: Ids, step: int) -> NDArray[np.int16]:
        """Likewise of a node that is not there, by the sorted ids of its neighbours."""
        chosen = np.full((1, self.rule.most), NOWHERE)
        _choose(node, near, self.rule, _room_to_choose(self.rule.most), chosen[0])
        out: NDArray[np.int16] = _votes(graph.table, chosen, self.rule, self._signs, step)
        return out[0]

    def signs(self) -> Signs:
        """Return the signs of all nodes, in the order of their ids."""
        assert self.graph is not None
        return self._signs[:, places_of(self.graph.table, ANY)]

    def move(self, graph: Graph, touched: Ids, gone: Ids, shown: NDArray[np.bool_]) -> Ids:
        """Go on to the graph after a change; return sorted ids of the rows that may have moved.

        All others have the votes that they had, and as many neighbours. A row is returned though it
        is what it was only where votes that turned cancel out.

        Args:
            graph: after the change.
            touched: sorted ids of nodes left that have other neighbours, or are new.
            gone: sorted ids of the nodes that went.
            shown: of each step, whether its votes are part of a row.
        """
        before = self.graph
        assert before is not None
        self.graph = None  # in case that this fails half way
        new = touched[located(before.table, touched) == NOWHERE]
        others = np.union1d(gone, new)
        self._signs = _aligned(self._signs, before, graph, others)
        self._near = _aligned(self._near[None], before, graph, others)[0]
        parts = self.rule, self._near, self._signs
        moved: Ids = _spread(before.table, graph.table, touched, shown, *parts)
        self.graph = graph
        moved.sort()
        return moved


def _aligned(blocks: NDArray[Any], before: Graph, after: Graph, others: Ids) -> NDArray[Any]:
    """Let rows ``[..., slots, width]`` lie where their nodes lie now; ``others`` went or came.

    In place, unless pages begin elsewhere. Rows of nodes that came are 0.
    """
    old, new = before.table.pages, after.table.pages
    if not np.array_equal(old[:, START], new[:, START]):
        places = places_of(after.table, ANY)
        was = located(before.table, nodes_at(after.table, places))
        shape = len(blocks), len(new) * ROOM, blocks.shape[2]
        made = np.zeros(shape, dtype=blocks.dtype)
        made[:, places[was >= 0]] = blocks[:, was[was >= 0]]
        return made
    pages = np.unique(np.searchsorted(new[:, START], others, side="right") - 1)
    for page in np.maximum(pages, 0).tolist():
        first = page * ROOM
        was = ranks(_ids_on(after, page), _ids_on(before, page))
        block = blocks[:, first : first + ROOM]
        kept = block[:, was[was >= 0]]
        block[:] = 0
        block[:, np.flatnonzero(was >= 0)] = kept
    return blocks


def _ids_on(graph: Graph, page: int) -> Ids:
    table = graph.table
    first = page * ROOM
    found: Ids = nodes_at(table, np.arange(first, first + int(table.pages[page, 1])))
    return found


@compiled
def _room_to_choose(most):  # type: ignore[no-untyped-def]
    """Room for the best of one type, and for the best of all: hashes, ids, ranks in their types."""
    return (*places_for(most), *places_for(most), np.empty(most, dtype=np.int64))


@compiled
def _choose(node, near, rule, room, out):  # type: ignore[no-untyped-def]
    """Write the ids of the neighbours that count, ascending, then `NOWHERE`.

    Of each type those with the smallest hashes: first one of each type, then a second of each, and
    so on. Sorted ids have types side by side.
    """
    hashes, ids, best, found, levels = room
    own, count, e = paired(rule.choice, np.uint64(node)), 0, 0
    out[:] = NOWHERE
    while e < len(near):
        kind, some = near[e] >> rule.shift, 0
        while e < len(near) and near[e] >> rule.shift == kind:
            some = admit(paired(own, np.uint64(near[e])), near[e], hashes, ids, some)
            e += 1
        for level in range(some):
            at = min(count, rule.most - 1)
            if count == rule.most and (levels[at], best[at]) <= (level, hashes[level]):
                break
            while at > 0 and (levels[at - 1], best[at - 1]) > (level, hashes[level]):
                levels[at], best[at], found[at] = levels[at - 1], best[at - 1], found[at - 1]
                at -= 1
            levels[at], best[at], found[at] = level, hashes[level], ids[level]
            count = min(count + 1, rule.most)
    put_in_order(found, count)
    out[:count] = found[:count]


@compiled
def _landmark(node, rule, out):  # type: ignore[no-untyped-def]
    """Write the signs of a node before the first step.

    A bit is set in all of some hashes as rarely as wanted.
    """
    own = paired(rule.landmarks, np.uint64(node))
    for w in range(rule.words):
        bits = np.uint64(0xFFFFFFFFFFFFFFFF)
        for i in range(rule.rarity):
            bits &= paired(own, np.uint64(WORD * w + i))
            if bits == 0:
                break
        sign = paired(own, np.uint64(WORD * w + WORD - 1))
        out[w], out[rule.words + w] = bits & sign, bits & ~sign


@compiled
def _signs_before(table, place, rule, signs, step, out):  # type: ignore[no-untyped-def]
    """Write the signs of a node before a step."""
    if step == 1:
        _landmark(node_at(table, place), rule, out)
    else:
        for w in range(2 * rule.words):
            out[w] = signs[step - 2, place, w]


@compiled
def _add(planes, row, words):  # type: ignore[no-untyped-def]
    """Add a row's signs to the counts, whose bits lie in planes ``[2 * words, _PLANES]``."""
    for w in range(2 * words):
        carry = row[w]
        for bit in range(_PLANES):
            if carry == 0:
                break
            sum_ = planes[w, bit] ^ carry
            carry &= planes[w, bit]
            planes[w, bit] = sum_


@compiled
def _outcome(planes, words, own, out):  # type: ignore[no-untyped-def]
    """Write the signs that have more votes; where they are even, the node's own."""
    for w in range(words):
        more, less = np.uint64(0), np.uint64(0)
        for bit in range(_PLANES - 1, -1, -1):
            plus, minus = planes[w, bit], planes[words + w, bit]
            open_ = ~(more | less)
            more |= open_ & plus & ~minus
            less |= open_ & minus & ~plus
        even = ~(more | less)
        out[w], out[words + w] = more | (even & own[w]), less | (even & own[words + w])


@compiled
def _step(table, near, rule, signs, step, rows, planes):  # type: ignore[no-untyped-def]
    """Count the votes of the neighbours that count."""
    planes[:] = 0
    count = 0
    for node in near:
        if node == NOWHERE:
            break
        # All are fetched before any is added: memory answers many questions at once.
        _signs_before(table, locate(table, node), rule, signs, step, rows[count])
        count += 1
    for i in range(count):
        _add(planes, rows[i], rule.words)


@compiled
def _room(rule):  # type: ignore[no-untyped-def]
    width = 2 * rule.words
    rows, own = np.zeros((rule.most, width), dtype=np.uint64), np.zeros(width, dtype=np.uint64)
    return rows, own, np.zeros((width, _PLANES), dtype=np.uint64)


@compiled
def _count_all(table, places, rule, near, signs):  # type: ignore[no-untyped-def]
    choosing = _room_to_choose(rule.most)
    rows, own, planes = _room(rule)
    for place in places:
        _choose(node_at(table, place), neighbours_at(table, place), rule, choosing, near[place])
    for step in range(1, rule.steps):
        for place in places:
            _step(table, near[place], rule, signs, step, rows, planes)
            _signs_before(table, place, rule, signs, step, own)
            _outcome(planes, rule.words, own, signs[step - 1, place])


@compiled
def _tell(planes, words, out):  # type: ignore[no-untyped-def]
    """Write by how many votes + is ahead in each column."""
    for w in range(words):
        for bit in range(_PLANES):
            plus, minus = planes[w, bit], planes[words + w, bit]
            if plus | minus:
                for c in range(WORD):
                    at = np.uint64(c)
                    ahead = np.int16((plus >> at) & np.uint64(1))
                    ahead -= np.int16((minus >> at) & np.uint64(1))
                    out[WORD * w + c] += ahead << bit


@compiled
def _votes(table, near, rule, signs, step):  # type: ignore[no-untyped-def]
    """Return the votes ``[len(near), 64 * words]`` of nodes, by the ids of whom they count."""
    out = np.zeros((len(near), WORD * rule.words), dtype=np.int16)
    rows, _, planes = _room(rule)
    for r in range(len(near)):
        _step(table, near[r], rule, signs, step, rows, planes)
        _tell(planes, rule.words, out[r])
    return out


@compiled
def _spread(before, after, touched, shown, rule, near, signs):  # type: ignore[no-untyped-def]
    """Follow a change step by step: whose signs turned, and who counts one of those.

    Returns: ids of the nodes whose votes in a step that is shown may not be what they were, or
    whose number of neighbours is not.
    """
    turned, otherwise, moved = _choose_again(before, after, touched, rule, near)
    for step in range(1, rule.steps + 1):
        slots, stale, size = _stale(after, otherwise, turned, near)
        if shown[step - 1]:
            moved = np.append(moved, stale[:size])
        if step < rule.steps:
            for place in turned:  # where votes are even they keep their sign, which is another
                size = max(size, put(slots, stale, size, place) + 1)
            turned = _vote_again(after, stale[:size], rule, near, signs, step)
    return nodes_at(after, np.unique(moved))


@compiled
def _choose_again(before, after, touched, rule, near):  # type: ignore[no-untyped-def]
    """Let nodes choose again whom they count.

    Returns: places of those that are new, of those that count others than before, and of those that
    have another number of neighbours.
    """
    room, fresh = _room_to_choose(rule.most), np.empty(rule.most, dtype=np.int64)
    out, count = np.empty((3, len(touched)), dtype=np.int64), np.zeros(3, dtype=np.int64)
    for node in touched:
        place, was = locate(after, node), locate(before, node)
        _choose(node, neighbours_at(after, place), rule, room, fresh)
        new = was == NOWHERE
        differs = (
            new,
            new or (near[place] != fresh).any(),
            new or degree_at(before, was) != degree_at(after, place),
        )
        near[place] = fresh
        for kind in range(3):
            if differs[kind]:
                out[kind, count[kind]] = place
                count[kind] += 1
    return out[0, : count[0]].copy(), out[1, : count[1]].copy(), out[2, : count[2]].copy()


@compiled
def _stale(table, otherwise, turned, near):  # type: ignore[no-untyped-def]
    """Find the nodes that count others than before, or one whose signs turned.

    Returns: a set of places with room for the turned ones: slots, places, how many.
    """
    most = len(otherwise) + len(turned)
    for place in turned:
        most += degree_at(table, place)
    slots, stale = room_for_set(most)
    size = 0
    for place in otherwise:
        size = max(size, put(slots, stale, size, place) + 1)
    for place in turned:
        node, first = node_at(table, place), first_edge(table, place)
        for e in range(degree_at(table, place)):
            other = locate(table, neighbour(first, e))
            counted = False
            for chosen in near[other]:
                counted |= chosen == node  # to the end: quicker than to guess where it ends
            if counted:
                size = max(size, put(slots, stale, size, other) + 1)
    return slots, stale, size


@compiled
def _vote_again(table, places, rule, near, signs, step):  # type: ignore[no-untyped-def]
    """Let the nodes at these places vote again; returns the places where a sign turned."""
    rows, own, planes = _room(rule)
    fresh = np.zeros(2 * rule.words, dtype=np.uint64)
    turned = np.empty(len(places), dtype=np.int64)
    count = 0
    for place in places:
        _step(table, near[place], rule, signs, step, rows, planes)
        _signs_before(table, place, rule, signs, step, own)
        _outcome(planes, rule.words, own, fresh)
        former, differs = signs[step - 1, place], False
        for w in range(2 * rule.words):
            differs |= former[w] != fresh[w]
            former[w] = fresh[w]
        if differs:
            turned[count] = place
            count += 1
    return turned[:count].copy()
