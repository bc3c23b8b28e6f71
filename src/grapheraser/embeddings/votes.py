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

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from grapheraser.eraser.conventions import Turn
from grapheraser.graph import Graph
from grapheraser.kernels.compiled import compiled
from grapheraser.kernels.hashing import paired
from grapheraser.kernels.neighbourhoods import (
    ANY,
    chosen_alike,
    chosen_around,
    is_chosen,
    places_for,
    places_of,
)
from grapheraser.kernels.paged import (
    NOWHERE,
    ROOM,
    START,
    degree_at,
    first_edge,
    locate,
    located,
    neighbour,
    node_at,
    nodes_at,
)
from grapheraser.kernels.sets import find, put, ranks, room_for_set
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
        keys: uint64 ``[steps + 1]``: of the landmarks, then of each step's choice of neighbours.
        most: how many neighbours count in a step.
        rarity: one node in ``2**rarity`` is a landmark, for each column.
        words: how many times 64 columns.
        shown: bool ``[steps + 1]``: whether the votes of a step are part of a row.
    """

    keys: NDArray[np.uint64]
    most: int
    rarity: int
    words: int
    shown: NDArray[np.bool_]

    @classmethod
    def of(cls, seed: int, columns: int, shown: NDArray[np.bool_], most: int, rarity: int) -> Rule:
        """Derive the keys from the seed; ``shown`` is said of each step."""
        keys = [derive(seed, "votes", step) for step in range(len(shown) + 1)]
        words = -(-columns // WORD)
        return cls(np.array(keys, np.uint64), most, rarity, words, np.append(False, shown))

    @property
    def steps(self) -> int:
        return len(self.keys) - 1


class Tally:
    """The signs of all nodes of one graph, handed on from a state to the next.

    They follow from the graph and merely save time. Copying them would cost more than a request, so
    they are changed in place: the newest state holds them, and one before, if it is still asked,
    counts again.
    """

    def __init__(self, rule: Rule, graph: Graph) -> None:
        self.turn = Turn()  # whoever reads signs waits for whoever changes them
        self.rule = rule
        self.graph: Graph | None = graph
        table = graph.table
        self._signs: Signs = np.zeros(
            (rule.steps - 1, len(table.pages) * ROOM, 2 * rule.words), dtype=np.uint64
        )
        _count_all(table, places_of(table, ANY), rule, self._signs)

    @property
    def nbytes(self) -> int:
        return self._signs.nbytes

    def votes(self, graph: Graph, places: Places, step: int) -> NDArray[np.int16]:
        """Votes of a step ``[len(places), 64 * words]``, by which + is ahead of -."""
        out: NDArray[np.int16] = _votes(graph.table, places, self.rule, self._signs, step)
        return out

    def votes_among(self, graph: Graph, node: int, near: Ids, step: int) -> NDArray[np.int16]:
        """Likewise of a node that is not there, by the sorted ids of its neighbours."""
        chosen = _chosen_among(self.rule.keys[step], node, near, self.rule.most)
        places = graph.places(chosen)
        out: NDArray[np.int16] = _votes_of(graph.table, places, self.rule, self._signs, step)
        return out

    def signs(self) -> Signs:
        """Return the signs of all nodes, in the order of their ids."""
        assert self.graph is not None
        return self._signs[:, places_of(self.graph.table, ANY)]

    def move(self, graph: Graph, touched: Ids, gone: Ids) -> Ids:
        """Go on to the graph after a change; return sorted ids of the rows that may have moved.

        All others have the votes that they had. A row is returned though it is what it was only
        where votes that turned cancel out.
        """
        before = self.graph
        assert before is not None
        self.graph = None  # in case that this fails half way
        new = touched[located(before.table, touched) == NOWHERE]
        self._align(before, graph, np.union1d(gone, new))
        moved: Ids = _spread(before.table, graph.table, touched, self.rule, self._signs)
        self.graph = graph
        moved.sort()
        return moved

    def _align(self, before: Graph, after: Graph, others: Ids) -> None:
        """Let signs lie where their nodes lie now; ``others`` went or came."""
        old, new = before.table.pages, after.table.pages
        if not np.array_equal(old[:, START], new[:, START]):
            places = places_of(after.table, ANY)
            was = located(before.table, nodes_at(after.table, places))
            signs = self._signs
            self._signs = np.zeros((len(signs), len(new) * ROOM, signs.shape[2]), dtype=np.uint64)
            self._signs[:, places[was >= 0]] = signs[:, was[was >= 0]]
            return
        pages = np.unique(np.searchsorted(new[:, START], others, side="right") - 1)
        for page in np.maximum(pages, 0).tolist():
            first = page * ROOM
            ids, former = _ids_on(after, page), _ids_on(before, page)
            was = ranks(ids, former)
            block = self._signs[:, first : first + ROOM]
            kept = block[:, was[was >= 0]]
            block[:] = 0
            block[:, np.flatnonzero(was >= 0)] = kept


def _ids_on(graph: Graph, page: int) -> Ids:
    table = graph.table
    first = page * ROOM
    found: Ids = nodes_at(table, np.arange(first, first + int(table.pages[page, 1])))
    return found


@compiled
def _chosen_among(key, node, near, most):  # type: ignore[no-untyped-def]
    own = paired(key, np.uint64(node))
    values = np.empty(len(near), dtype=np.uint64)
    for i in range(len(near)):
        values[i] = paired(own, np.uint64(near[i]))
    return np.sort(near[np.argsort(values)[:most]])


@compiled
def _landmark(node, rule, out):  # type: ignore[no-untyped-def]
    """Write the signs of a node before the first step.

    A bit is set in all of some hashes as rarely as wanted.
    """
    own = paired(rule.keys[0], np.uint64(node))
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
def _step(table, place, rule, signs, step, hashes, chosen, row, planes):  # type: ignore[no-untyped-def]
    """Count the votes of the neighbours that count."""
    planes[:] = 0
    for i in range(chosen_around(table, place, ANY, rule.keys[step], hashes, chosen)):
        _signs_before(table, chosen[i], rule, signs, step, row)
        _add(planes, row, rule.words)


@compiled
def _room(words):  # type: ignore[no-untyped-def]
    planes = np.zeros((2 * words, _PLANES), dtype=np.uint64)
    return np.zeros(2 * words, dtype=np.uint64), np.zeros(2 * words, dtype=np.uint64), planes


@compiled
def _count_all(table, places, rule, signs):  # type: ignore[no-untyped-def]
    hashes, chosen = places_for(rule.most)
    row, own, planes = _room(rule.words)
    for step in range(1, len(rule.keys) - 1):
        for place in places:
            _step(table, place, rule, signs, step, hashes, chosen, row, planes)
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
def _votes(table, places, rule, signs, step):  # type: ignore[no-untyped-def]
    out = np.zeros((len(places), WORD * rule.words), dtype=np.int16)
    hashes, chosen = places_for(rule.most)
    row, _, planes = _room(rule.words)
    for r in range(len(places)):
        _step(table, places[r], rule, signs, step, hashes, chosen, row, planes)
        _tell(planes, rule.words, out[r])
    return out


@compiled
def _votes_of(table, places, rule, signs, step):  # type: ignore[no-untyped-def]
    """Return the votes of the nodes at these places ``[64 * words]``."""
    out = np.zeros(WORD * rule.words, dtype=np.int16)
    row, _, planes = _room(rule.words)
    for place in places:
        _signs_before(table, place, rule, signs, step, row)
        _add(planes, row, rule.words)
    _tell(planes, rule.words, out)
    return out


@compiled
def _spread(before, after, touched, rule, signs):  # type: ignore[no-untyped-def]
    """Follow a change step by step: whose signs turned, and who counts one of those.

    Returns: ids of the nodes whose votes in a step that is shown may not be what they were.
    """
    turned = np.empty(len(touched), dtype=np.int64)  # places
    count = 0
    for node in touched:
        if locate(before, node) == NOWHERE:
            turned[count] = locate(after, node)
            count += 1
    turned = turned[:count].copy()
    moved = turned.copy()
    for step in range(1, len(rule.keys)):
        slots, stale, size = _stale(before, after, touched, turned, rule, step)
        if rule.shown[step]:
            moved = np.append(moved, stale[:size])
        if step + 1 < len(rule.keys):
            for place in turned:  # where votes are even they keep their sign, which is another
                size = max(size, put(slots, stale, size, place) + 1)
            turned = _vote_again(after, stale[:size], rule, signs, step)
    return nodes_at(after, np.unique(moved))


@compiled
def _stale(before, after, touched, turned, rule, step):  # type: ignore[no-untyped-def]
    """Find the nodes that count others in a step than before, or one whose signs turned.

    Returns: a set of places with room for the turned ones: slots, places, how many.
    """
    most, key = len(touched) + len(turned), rule.keys[step]
    for place in turned:
        most += degree_at(after, place)
    slots, stale = room_for_set(most)
    hashes, chosen = places_for(rule.most)
    room = hashes, chosen, np.empty_like(chosen)
    size = 0
    for node in touched:
        place, was = locate(after, node), locate(before, node)
        if was == NOWHERE or chosen_alike(before, was, after, place, ANY, key, room) < 0:
            size = max(size, put(slots, stale, size, place) + 1)
    for place in turned:
        node, first = node_at(after, place), first_edge(after, place)
        for e in range(degree_at(after, place)):
            other = locate(after, neighbour(first, e))
            if find(slots, stale, other) < 0 and is_chosen(after, other, ANY, key, rule.most, node):
                size = max(size, put(slots, stale, size, other) + 1)
    return slots, stale, size


@compiled
def _vote_again(table, places, rule, signs, step):  # type: ignore[no-untyped-def]
    """Let the nodes at these places vote again; returns the places where a sign turned."""
    hashes, chosen = places_for(rule.most)
    row, own, planes = _room(rule.words)
    fresh = np.zeros(2 * rule.words, dtype=np.uint64)
    turned = np.empty(len(places), dtype=np.int64)
    count = 0
    for place in places:
        _step(table, place, rule, signs, step, hashes, chosen, row, planes)
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
