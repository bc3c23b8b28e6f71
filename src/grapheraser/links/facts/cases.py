"""Cases that weights are learned from: facts, each held out of its own case.

The facts with the smallest keyed hashes are cases: one way or the other, without its tail, a head
is to find it among some others. These are tails of the same step and any entities, those with the
smallest hashes, so that one who goes lets in the next and all else stays. What is held out has no
part in what judges it: no path, constant or likeness leads through it, and the rules are counted
without it. A case that a change hasn't touched keeps the paths and numbers that it has read; what
these paths count follows from the rules of the moment.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from grapheraser.kernels.compiled import compiled
from grapheraser.kernels.hashing import paired
from grapheraser.links.facts.evidence import (
    ENTRIES,
    MAX_ALIKE,
    MAX_SHARING,
    ROW,
    WIDTH,
    add,
    add_constants,
    add_likeness,
    column_of,
    is_chosen,
    level_of,
    note,
    strength,
)
from grapheraser.links.facts.rows import Ids, Rows, entry, room, span
from grapheraser.links.facts.rules import Rules, num_codes
from grapheraser.links.facts.walks import all_but, paths_between
from grapheraser.seeding import derive

# Tails that a case chooses from, its own among them; the last ones may be any entities.
CHOICES, OF_STEP = 32, 26
_POOL = 64


@dataclass(frozen=True, eq=False)
class Case:
    """Places that a case has read.

    Attributes:
        step: from the head to the tail that is held out.
        choices: tails ``[CHOICES]``; -1 where there are fewer.
        label: which of them is held out; -1 where none is.
        paths: slots, codes, and how often they come ``[p, 3]``.
        numbers: of the choices ``[CHOICES, WIDTH]``, but for those of paths.
        near: neighbours of the head, sorted; a change between one and a choice is read as well.
        reads: rows, or steps of rows, as `evidence.note` spells them; sorted.
    """

    step: int
    choices: Ids
    label: int
    paths: Ids
    numbers: Ids
    near: Ids
    reads: Ids

    @classmethod
    def of(cls, rows: Rows, fact: Ids, choices: Ids, label: int, length: int, seed: int) -> Case:
        """Judge the choices of a head and a step, but for the fact that is held out."""
        slots = np.full(len(rows.ids), -1)
        judged = _judge(rows, *fact.tolist(), choices, slots, length, key_of(seed))
        return cls(int(fact[1]), choices, label, *judged)

    def has_read(self, changed: Ids, marked: NDArray[np.bool_], notes: Ids, num_steps: int) -> bool:
        """Tell whether the case has read anything that changed; see `Cases.untouched`."""
        if _is_read(self.reads, notes, marked, num_steps):
            return True
        return bool(_is_between(self.choices, self.near, changed))


def key_of(seed: int) -> np.uint64:
    """Return the key of all hashes."""
    return np.uint64(derive(seed, "facts"))


def numbers_of(cases: list[Case], num_steps: int, rules: Rules) -> NDArray[np.int64]:
    """Return all numbers of the choices of cases ``[n, CHOICES, WIDTH]``."""
    if not cases:
        return np.zeros((0, CHOICES, WIDTH), dtype=np.int64)
    ends = np.cumsum([0, *(len(case.paths) for case in cases)])
    paths = np.concatenate([case.paths for case in cases])
    steps = np.array([case.step for case in cases])
    labels = np.array([case.label for case in cases])
    out = np.stack([case.numbers for case in cases])
    codes = num_codes(num_steps, rules.length)
    table = (rules.keys, rules.support, rules.body)
    _add_rules(paths, ends, steps, labels, *table, num_steps, codes, out)
    return out


@dataclass(frozen=True, eq=False)
class Cases:
    """The cases of a graph, by their facts: ids and a step."""

    by_fact: dict[tuple[int, ...], Case]

    @property
    def labels(self) -> Ids:
        """Which choice of each case is held out."""
        return np.array([case.label for case in self.by_fact.values()], dtype=np.int64)

    def numbers(self, num_steps: int, rules: Rules) -> NDArray[np.int64]:
        """Return the numbers of all choices ``[n, CHOICES, WIDTH]``."""
        return numbers_of(list(self.by_fact.values()), num_steps, rules)

    @classmethod
    def of(cls, rows: Rows, most: int, length: int, seed: int) -> Cases:
        """Choose at most so many cases, and judge them."""
        return cls({}).of_rows(rows, most, length, seed)

    def untouched(self, rows: Rows, entries: Ids, come: int, seed: int) -> Cases:
        """Return the cases that have read none of the facts that come or go.

        Args:
            rows: in which these facts are.
            entries: of the facts, both ways.
            come: 1 where they come, 0 where they go.
            seed: of the run.
        """
        changed, notes, all_moved = _changed(rows, entries, come, key_of(seed))
        if all_moved:
            return Cases({})
        marked = np.zeros(len(rows.ids), dtype=np.bool_)
        marked[changed[:, 0]] = True
        parts = (changed, marked, np.unique(notes), rows.num_steps)
        return Cases({f: c for f, c in self.by_fact.items() if not c.has_read(*parts)})

    def moved(self, places: Ids, num_steps: int) -> Cases:
        """Return the cases with the new place of every entity; -1 for one that is gone."""
        if (places == np.arange(len(places))).all():
            return self
        places, known = np.append(places, -1), list(self.by_fact.values())
        near, reads = [case.near for case in known], [case.reads for case in known]
        at, what = np.divmod(np.concatenate([*reads, places[:0]]), 2 * num_steps + 1)
        moved = zip(
            known,
            np.split(places[np.concatenate([*near, places[:0]])], _ends(near)),
            np.split(places[at] * (2 * num_steps + 1) + what, _ends(reads)),
            strict=False,
        )
        made = [
            Case(c.step, places[c.choices], c.label, c.paths, c.numbers, *both)
            for c, *both in moved
        ]
        return Cases(dict(zip(self.by_fact, made, strict=True)))

    def of_rows(self, rows: Rows, most: int, length: int, seed: int) -> Cases:
        """Return the cases of a graph; those that are known are not judged again."""
        facts, labels, choices = _chosen_cases(rows, most, key_of(seed))
        found: dict[tuple[int, ...], Case] = {}
        for fact, label, some in zip(facts, labels.tolist(), choices, strict=True):
            named = (int(rows.ids[fact[0]]), int(fact[1]), int(rows.ids[fact[2]]))
            case = self.by_fact.get(named)
            if case is None or not np.array_equal(case.choices, some):
                case = Case.of(rows, fact, some, label, length, seed)
            found[named] = case
        return Cases(found)


def _ends(parts: list[Ids]) -> Ids:
    return np.cumsum([len(part) for part in parts], dtype=np.int64)


@compiled
def _add_rules(paths, ends, steps, labels, keys, support, body, m, num_codes, out):  # type: ignore[no-untyped-def]
    """Add what the rules of paths say, each counted without the fact that is held out."""
    own = np.zeros(num_codes, dtype=np.int64)
    for n in range(len(steps)):
        for p in range(ends[n], ends[n + 1]):
            if paths[p, 0] == labels[n]:
                own[paths[p, 1]] = paths[p, 2]
        for p in range(ends[n], ends[n + 1]):
            code = paths[p, 1]
            k = np.searchsorted(keys, code * m + steps[n])
            if k < len(keys) and keys[k] == code * m + steps[n]:
                value = strength(support[k] - own[code], body[k] - own[code])
                if value:
                    add(out[n], paths[p, 0], column_of(code, m + 1), value, paths[p, 2])
        for p in range(ends[n], ends[n + 1]):
            own[paths[p, 1]] = 0


@compiled
def _marked_facts(rows, key, bound):  # type: ignore[no-untyped-def]
    """Return facts (head, step, tail) with hashes up to a bound and these, and pools of tails.

    And the sizes of the pools. That of a step holds those of its tails with the smallest hashes,
    the last one any entities.
    """
    facts, count = np.empty((1024, 4), dtype=np.int64), 0
    pools = np.empty((rows.num_steps + 1, _POOL), dtype=np.int64)
    marks = np.full((rows.num_steps + 1, _POOL), ~np.uint64(0))
    sizes = np.zeros(rows.num_steps + 1, dtype=np.int64)
    for x in range(len(rows.ids)):
        own = paired(key, np.uint64(rows.ids[x]))
        pooled = paired(own, key)
        _admit(pools, marks, sizes, rows.num_steps, x, pooled)
        stepped = own
        for i in range(rows.ends[x], rows.ends[x + 1]):
            step, y = rows.steps[i], rows.others[i]
            if i == rows.ends[x] or step != rows.steps[i - 1]:
                mark = paired(pooled, np.uint64(step))
                if mark < marks[step ^ 1, _POOL - 1]:
                    _admit(pools, marks, sizes, step ^ 1, x, mark)
                stepped = paired(own, np.uint64(step))
            if step & 1 == 0:
                mark = paired(stepped, np.uint64(rows.ids[y]))
                if mark <= bound:
                    facts = room(facts, count)
                    facts[count, 0], facts[count, 1], facts[count, 2] = x, step, y
                    facts[count, 3] = np.int64(mark)
                    count += 1
    return facts[:count, :3].copy(), facts[:count, 3].copy().view(np.uint64), pools, sizes


@compiled
def _admit(pools, marks, sizes, pool, item, mark):  # type: ignore[no-untyped-def]
    """Let an item into a pool if its hash is among the smallest."""
    at = sizes[pool]
    if at == _POOL:
        if mark >= marks[pool, at - 1]:
            return
        at -= 1
    else:
        sizes[pool] += 1
    while at > 0 and marks[pool, at - 1] > mark:
        marks[pool, at], pools[pool, at] = marks[pool, at - 1], pools[pool, at - 1]
        at -= 1
    marks[pool, at], pools[pool, at] = mark, item


def _chosen_cases(rows: Rows, most: int, key: np.uint64) -> tuple[Ids, Ids, Ids]:
    """Return facts (places, one way), labels and choices of the cases."""
    # About four times as many as are wanted are within the bound; hardly ever there are too few.
    every = 2**64 - 1
    bound = min(every, 2**67 * most // max(1, len(rows.steps)))
    facts, marks, pools, sizes = _marked_facts(rows, key, np.uint64(bound))
    if len(marks) < most and bound < every:
        facts, marks, pools, sizes = _marked_facts(rows, key, np.uint64(every))
    some = np.argpartition(marks, most)[:most] if len(marks) > most else np.arange(len(marks))
    some = some[np.argsort(marks[some], kind="stable")]
    marks, chosen = marks[some], facts[some]
    turned = (marks & np.uint64(1)).astype(bool)
    chosen[turned] = chosen[turned][:, ::-1]
    chosen[:, 1] ^= turned
    labels = ((marks >> np.uint64(8)) % np.uint64(CHOICES)).astype(np.int64)
    kept, choices = _choices(rows, chosen, labels, marks, pools, sizes)
    return chosen[kept], labels[kept], choices


@compiled
def _choices(rows, chosen, labels, marks, pools, sizes):  # type: ignore[no-untyped-def]
    """Find the choices of each case, along its pools; leave out cases that have none."""
    kept, count = np.empty(len(chosen), dtype=np.int64), 0
    out = np.full((len(chosen), CHOICES), -1, dtype=np.int64)
    found = np.empty(CHOICES - 1, dtype=np.int64)
    for n in range(len(chosen)):
        head, step, tail = chosen[n]
        many = 0
        for pool, most in ((step, OF_STEP), (rows.num_steps, CHOICES - 1)):
            size = sizes[pool]
            start = np.int64((marks[n] >> np.uint64(16)) % np.uint64(size))
            for k in range(size):
                t = pools[pool, (start + k) % size]
                if many < most and t != head and entry(rows, head, step, t) < 0:
                    new = True
                    for f in range(many):
                        new &= found[f] != t
                    if new:
                        found[many] = t
                        many += 1
        if many == 0:
            continue
        for k in range(many):
            out[count, k + (k >= labels[n])] = found[k]
        out[count, labels[n]] = tail
        kept[count] = n
        count += 1
    return kept[:count].copy(), out[:count].copy()


@compiled
def _judge(rows, head, step, tail, choices, slots, length, key):  # type: ignore[no-untyped-def]
    """Return paths, numbers, neighbours and reads of a case; ``slots`` are -1."""
    numbers = np.zeros((len(choices), WIDTH), dtype=np.int64)
    reads, read = note(np.empty(1024, dtype=np.int64), 0, head, ROW, rows.num_steps), 1
    near = np.unique(rows.others[rows.ends[head] : rows.ends[head + 1]]).astype(np.int64)
    for k in range(len(choices)):
        if choices[k] >= 0:
            slots[choices[k]] = k
            if length > 2:  # a path ends with a step from anywhere
                reads = note(reads, read, choices[k], ROW, rows.num_steps)
                read += 1
    if length > 2:  # or has one to anywhere in the middle
        for place in near:
            reads = note(reads, read, place, ROW, rows.num_steps)
            read += 1
    others = all_but(rows, head, step, tail)
    paths = _gathered(paths_between(rows, others, head, choices, length), len(choices))
    reads, read = add_constants(rows, head, step, tail, slots, key, numbers, reads, read)
    reads, read = add_likeness(rows, head, step, tail, slots, key, numbers, reads, read)
    return paths, numbers, near, np.unique(reads[:read])


@compiled
def _gathered(paths, width):  # type: ignore[no-untyped-def]
    """Return the slots and codes of paths, each once, and how often each comes ``[p, 3]``."""
    both = np.sort(paths[:, 1] * width + paths[:, 0])
    out, count = np.empty((len(both), 3), dtype=np.int64), -1
    for n in range(len(both)):
        if n == 0 or both[n] != both[n - 1]:
            count += 1
            out[count, 0], out[count, 1], out[count, 2] = both[n] % width, both[n] // width, 0
        out[count, 2] += 1
    return out[: count + 1].copy()


@compiled
def _is_read(reads, changed, marked, num_steps):  # type: ignore[no-untyped-def]
    """Tell whether anything that changed was read; ``marked`` are the rows that it is in."""
    for read in reads:
        if marked[read // (2 * num_steps + 1)]:
            at = np.searchsorted(changed, read)
            if at < len(changed) and changed[at] == read:
                return True
    return False


@compiled
def _is_between(choices, near, changed):  # type: ignore[no-untyped-def]
    """Tell whether a fact that changed is between a neighbour of the head and a choice."""
    for n in range(len(changed)):
        at = np.searchsorted(near, changed[n, 0])
        if at < len(near) and near[at] == changed[n, 0]:
            for choice in choices:
                if choice == changed[n, 2]:
                    return True
    return False


@compiled
def _changed(rows, entries, come, key):  # type: ignore[no-untyped-def]
    """Return the facts at some entries (place, step, place), and what of rows changes with them.

    Also tells whether so many come or go that likeness begins or ends: then all is changed.
    """
    m, half = rows.num_steps, len(entries) // 2
    facts = np.empty((len(entries), 3), dtype=np.int64)
    notes, count = np.empty(3 * len(entries), dtype=np.int64), 0
    for n in range(len(entries)):
        facts[n, 0] = rows.others[entries[(n + half) % len(entries)]]
        facts[n, 1], facts[n, 2] = rows.steps[entries[n]], rows.others[entries[n]]
    for n in range(len(facts)):
        place, step, other = facts[n]
        first, last = span(rows, place, step)
        after = before = last - first
        for k in range(len(facts)):
            if facts[k, 0] == place and facts[k, 1] == step:
                before -= come
                after -= 1 - come
        if (before > MAX_ALIKE) != (after > MAX_ALIKE):
            return facts, notes[:0], True
        for what in (ROW, ENTRIES + step):
            notes[count] = place * (2 * m + 1) + what
            count += 1
        own = paired(key, np.uint64(step ^ 1))
        moved = level_of(before, MAX_SHARING) != level_of(after, MAX_SHARING)
        if moved or is_chosen(own, rows.ids[place], rows.ids[other], before, MAX_SHARING):
            notes[count] = place * (2 * m + 1) + m + ENTRIES + step
            count += 1
    return facts, notes[:count].copy(), False
