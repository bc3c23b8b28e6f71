"""Rules with a path for a body: r1(x, z), r2(z, y) => r(x, y), counted in whole numbers.

A path visits no entity twice. Of a rule is kept

- its support: the facts that it concludes, once for every path that leads to them;
- its body: the paths from all heads of its relation, wherever they lead.

A path has a code, its steps as the digits of a number, and a rule the key ``code * num_steps +
step`` with the step that it concludes. Rules without support are not kept. Which rules count in a
prediction is decided by their support alone.

A fact that comes or goes is counted on its own, one after the other: first as a conclusion, then as
a part of paths. So only the paths around it are walked, whatever the size of the graph.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from grapheraser.errors import ParameterError
from grapheraser.kernels.compiled import compiled
from grapheraser.links.facts.rows import Ids, Rows, entry, place_in, room, span
from grapheraser.links.facts.walks import (
    CODE,
    END,
    goes_on,
    paths_between,
    paths_through,
    stems_from,
)

# Codes that a dense array is made for.
_MAX_CODES = 2**22
_BLOCK = 1024
_WORDS = 4  # of 64 bits, for the steps of an entity

Alive = NDArray[np.bool_]


def num_codes(num_steps: int, length: int) -> int:
    """Return how many codes there are for paths of at most so many steps; refuse too many."""
    count = int((num_steps + 1) ** length)
    if count > _MAX_CODES:
        relations = int(_MAX_CODES ** (1 / length) - 1) // 2
        raise ParameterError(
            f"rules of {length} steps can be counted among {relations} relations at the most. "
            f"Got {num_steps // 2}.",
            hint="use steps=2 or steps=1.",
        )
    return count


@dataclass(frozen=True, eq=False)
class Rules:
    """The counts of all rules.

    Attributes:
        length: of paths, at the most; 1, 2 or 3.
        keys: ascending.
        support: of each, at least 1.
        body: of each.
    """

    length: int
    keys: Ids
    support: Ids
    body: Ids

    @classmethod
    def of(cls, rows: Rows, length: int) -> Rules:
        """Count the rules of a graph."""
        codes = num_codes(rows.num_steps, length)
        keys, support = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
        for first in range(0, len(rows.ids), _BLOCK):
            found = _concluded(rows, first, min(first + _BLOCK, len(rows.ids)), length)
            one, count = np.unique(found, return_counts=True)
            keys, at = np.unique(np.concatenate([keys, one]), return_inverse=True)
            parts = np.concatenate([support, count])
            support = np.zeros(len(keys), dtype=np.int64)
            np.add.at(support, at, parts)
        body = _bodies(rows, keys, codes, length)
        return cls(length, keys, support, body)

    def without(self, rows: Rows, entries: Ids) -> Rules:
        """Return the rules once some facts are gone.

        Args:
            rows: before the change.
            entries: of the facts, both ways: the first half one way, the second half the other.
        """
        alive = np.ones(len(rows.steps), dtype=np.bool_)
        support, body = self.support.copy(), self.body.copy()
        pairs = np.stack(np.split(entries, 2), axis=1)
        _follow(rows, alive, pairs, self.keys, support, body, self.length, False)
        return self._kept(self.keys, support, body)

    def extended(self, rows: Rows, entries: Ids) -> Rules:
        """Return the rules once facts have come: ``rows`` are those after the change."""
        alive = np.ones(len(rows.steps), dtype=np.bool_)
        alive[entries] = False
        support, body = self.support.copy(), self.body.copy()
        pairs = np.stack(np.split(entries, 2), axis=1)
        _follow(rows, alive, pairs, self.keys, support, body, self.length, True)
        found = np.unique(_concluded_through(rows, pairs, self.length))
        born = found[~np.isin(found, self.keys)]
        counts = _counted(rows, born, self.length)
        keys = np.concatenate([self.keys, born])
        order = np.argsort(keys)
        support = np.concatenate([support, counts[:, 0]])[order]
        return self._kept(keys[order], support, np.concatenate([body, counts[:, 1]])[order])

    def _kept(self, keys: Ids, support: Ids, body: Ids) -> Rules:
        some = support > 0
        return Rules(self.length, keys[some], support[some], body[some])


@compiled
def _concluded(rows, first, last, length):  # type: ignore[no-untyped-def]
    """Return the key of every path from some entities that ends at a fact of its first entity."""
    base, m, alive = rows.num_steps + 1, rows.num_steps, np.ones(len(rows.steps), dtype=np.bool_)
    head, following = np.full(len(rows.ids), -1), np.empty(len(rows.steps), dtype=np.int64)
    out, count = np.empty((1024, 1), dtype=np.int64), 0
    for x in range(first, last):
        for i in range(rows.ends[x], rows.ends[x + 1]):
            following[i] = head[rows.others[i]]
            head[rows.others[i]] = i
        stems, _ = stems_from(rows, alive, x, length - 1, -1)
        for s in range(len(stems)):
            for i in range(rows.ends[stems[s, END]], rows.ends[stems[s, END] + 1]):
                e = head[rows.others[i]]
                if e < 0 or not goes_on(rows, alive, stems, s, i, x):
                    continue
                code = stems[s, CODE] * base + rows.steps[i] + 1
                while e >= 0:
                    if e != i:  # a path of one step concludes every other fact, but not itself
                        out = room(out, count)
                        out[count, 0] = code * m + rows.steps[e]
                        count += 1
                    e = following[e]
        for i in range(rows.ends[x], rows.ends[x + 1]):
            head[rows.others[i]] = -1
    return out[:count, 0].copy()


@compiled
def _tally(rows, alive, x, length, counts, codes):  # type: ignore[no-untyped-def]
    """Count the paths from an entity by their codes; return how many codes there are."""
    base, n = rows.num_steps + 1, 0
    stems, _ = stems_from(rows, alive, x, length - 1, -1)
    for s in range(len(stems)):
        for i in range(rows.ends[stems[s, END]], rows.ends[stems[s, END] + 1]):
            if goes_on(rows, alive, stems, s, i, x):
                code = stems[s, CODE] * base + rows.steps[i] + 1
                if counts[code] == 0:
                    codes[n] = code
                    n += 1
                counts[code] += 1
    return n


@compiled
def _bodies(rows, keys, num_codes, length):  # type: ignore[no-untyped-def]
    """Count the bodies of all rules."""
    m, body = rows.num_steps, np.zeros(len(keys), dtype=np.int64)
    alive = np.ones(len(rows.steps), dtype=np.bool_)
    starts = np.searchsorted(keys, np.arange(num_codes + 1) * m)
    counts, codes = np.zeros(num_codes, dtype=np.int64), np.empty(num_codes, dtype=np.int64)
    known = np.zeros(m, dtype=np.bool_)
    for x in range(len(rows.ids)):
        for i in range(rows.ends[x], rows.ends[x + 1]):
            known[rows.steps[i]] = True
        n = _tally(rows, alive, x, length, counts, codes)
        for c in range(n):
            for k in range(starts[codes[c]], starts[codes[c] + 1]):
                if known[keys[k] % m]:
                    body[k] += counts[codes[c]]
            counts[codes[c]] = 0
        for i in range(rows.ends[x], rows.ends[x + 1]):
            known[rows.steps[i]] = False
    return body


@compiled
def _has(rows, alive, place, step):  # type: ignore[no-untyped-def]
    """Tell whether the entity at a place has a step."""
    return _is_any(alive, *span(rows, place, step))


@compiled
def _is_any(alive, first, last):  # type: ignore[no-untyped-def]
    for i in range(first, last):
        if alive[i]:
            return True
    return False


@compiled
def _holds(rows, alive, place, step, other):  # type: ignore[no-untyped-def]
    """Tell whether a fact is there."""
    found = entry(rows, place, step, other)
    return found >= 0 and alive[found]


@compiled
def _follow(rows, alive, pairs, keys, support, body, length, come):  # type: ignore[no-untyped-def]
    """Count facts that come or go, one after the other; marks them alive, or no longer.

    ``pairs`` are the two entries of each fact. One that comes is a conclusion first, while no path
    leads through it, and a part of paths then; one that goes, the other way around.
    """
    sign, size, marks = (1 if come else -1), 1, marks_of(rows)
    for _ in range(length):
        size *= rows.num_steps + 1
    counts, codes = np.zeros(size, dtype=np.int64), np.empty(size, dtype=np.int64)
    for n in range(len(pairs)):
        there, back = pairs[n]
        if come:
            _conclude(rows, alive, there, back, keys, support, body, length, sign, counts, codes)
            alive[there], alive[back] = True, True
            _pass(rows, alive, marks, there, back, keys, support, body, length, sign)
        else:
            _pass(rows, alive, marks, there, back, keys, support, body, length, sign)
            alive[there], alive[back] = False, False
            _conclude(rows, alive, there, back, keys, support, body, length, sign, counts, codes)


@compiled
def marks_of(rows):  # type: ignore[no-untyped-def]
    """Mark the steps of each entity, some under the same bit: few are asked for that it lacks."""
    marks = np.zeros((len(rows.ids), _WORDS), dtype=np.uint64)
    for x in range(len(rows.ids)):
        for i in range(rows.ends[x], rows.ends[x + 1]):
            step = rows.steps[i]
            marks[x, (step >> 6) & (_WORDS - 1)] |= np.uint64(1) << np.uint64(step & 63)
    return marks


@compiled(inline=True)
def is_marked(marks, place, step):  # type: ignore[no-untyped-def]
    """Tell whether the entity at a place may have a step; if not, it hasn't."""
    return marks[place, (step >> 6) & (_WORDS - 1)] >> np.uint64(step & 63) & np.uint64(1)


@compiled
def _conclude(rows, alive, there, back, keys, support, body, length, sign, counts, codes):  # type: ignore[no-untyped-def]
    """Count a fact as a conclusion, with paths that do not lead through it."""
    m = rows.num_steps
    for i, j in ((there, back), (back, there)):
        x, step = rows.others[j], rows.steps[i]
        if not _has(rows, alive, x, step):  # its only one: now x is no head, or is one
            for c in range(_tally(rows, alive, x, length, counts, codes)):
                k = np.searchsorted(keys, codes[c] * m + step)
                if k < len(keys) and keys[k] == codes[c] * m + step:
                    body[k] += sign * counts[codes[c]]
                counts[codes[c]] = 0
    for key in _concluding(rows, alive, there, back, length):
        k = np.searchsorted(keys, key)
        if k < len(keys) and keys[k] == key:
            support[k] += sign


@compiled
def _concluding(rows, alive, there, back, length):  # type: ignore[no-untyped-def]
    """Return the keys of the rules that conclude a fact, both ways, once for every path."""
    m, step = rows.num_steps, rows.steps[there]
    tails = np.array([rows.others[there]])
    paths = paths_between(rows, alive, rows.others[back], tails, length)
    out, count = np.empty(2 * len(paths), dtype=np.int64), 0
    for p in range(len(paths)):
        if paths[p, 1] != step + 1:  # a path of one step concludes every other fact, but not itself
            out[count] = paths[p, 1] * m + step
            out[count + 1] = paths[p, 2] * m + (step ^ 1)
            count += 2
    return out[:count]


@compiled
def _pass(rows, alive, marks, there, back, keys, support, body, length, sign):  # type: ignore[no-untyped-def]
    """Count the paths that lead through a fact; ``marks`` are those of `marks_of`."""
    m, code, first, last = rows.num_steps, np.int64(-1), np.int64(0), np.int64(0)
    asked, known, count = np.int64(-1), np.empty((m, 3), dtype=np.int64), 0
    paths = paths_through(rows, alive, there, back, length)
    for way in range(2):  # paths of one way that follow each other have much in common
        for n in range(way, len(paths), 2):
            x, y = paths[n, 1], paths[n, 2]
            if paths[n, 0] != code or x != asked:
                if paths[n, 0] != code:
                    code = paths[n, 0]
                    first = np.searchsorted(keys, code * m)
                    last = first + np.searchsorted(keys[first:], (code + 1) * m)
                asked, count = x, 0
                for k in range(first, last):
                    step = keys[k] - code * m
                    if is_marked(marks, x, step):
                        low, high = span(rows, x, step)
                        if _is_any(alive, low, high):
                            known[count, 0], known[count, 1], known[count, 2] = k, low, high
                            count += 1
            for c in range(count):
                k, low, high = known[c]
                body[k] += sign
                at = place_in(rows, low, high, y)
                if at >= 0 and alive[at]:
                    support[k] += sign


@compiled
def _concluded_through(rows, pairs, length):  # type: ignore[no-untyped-def]
    """Return the keys of rules with a path through one of these facts, or that conclude one."""
    m, alive = rows.num_steps, np.ones(len(rows.steps), dtype=np.bool_)
    out, count = np.empty((1024, 1), dtype=np.int64), 0
    for n in range(len(pairs)):
        there, back = pairs[n]
        for key in _concluding(rows, alive, there, back, length):
            out = room(out, count)
            out[count, 0] = key
            count += 1
        paths = paths_through(rows, alive, there, back, length)
        for p in range(len(paths)):
            code, x, y = paths[p]
            short, long, turn = x, y, 0
            if rows.ends[x + 1] - rows.ends[x] > rows.ends[y + 1] - rows.ends[y]:
                short, long, turn = y, x, 1
            for e in range(rows.ends[short], rows.ends[short + 1]):
                step = rows.steps[e] ^ turn
                # A path of one step concludes every other fact, but not itself.
                if rows.others[e] == long and code != step + 1:
                    out = room(out, count)
                    out[count, 0] = code * m + step
                    count += 1
    return out[:count, 0].copy()


@compiled
def _counted(rows, keys, length):  # type: ignore[no-untyped-def]
    """Count support and body of some rules ``[k, 2]`` from the start, each by its own walk."""
    m, base = rows.num_steps, rows.num_steps + 1
    counts = np.zeros((len(keys), 2), dtype=np.int64)
    alive = np.ones(len(rows.steps), dtype=np.bool_)
    for k in range(len(keys)):
        step, code, power = keys[k] % m, keys[k] // m, base ** (length - 1)
        while power > code:
            power //= base
        # First, last but one and last entity of the paths with the first digits of the code.
        paths, count = np.empty((len(rows.ids), 3), dtype=np.int64), 0
        for x in range(len(rows.ids)):
            if _has(rows, alive, x, step):
                paths[count, :] = x
                count += 1
        while power:
            digit, power = code // power % base - 1, power // base
            longer, more = np.empty((256, 3), dtype=np.int64), 0
            for p in range(count):
                x, y, z = paths[p]
                for i in range(*span(rows, z, digit)):
                    v = rows.others[i]
                    if v not in (x, y, z):
                        longer = room(longer, more)
                        longer[more, 0], longer[more, 1], longer[more, 2] = x, z, v
                        more += 1
            paths, count = longer, more
        for p in range(count):
            counts[k, 0] += _holds(rows, alive, paths[p, 0], step, paths[p, 2])
        counts[k, 1] = count
    return counts
