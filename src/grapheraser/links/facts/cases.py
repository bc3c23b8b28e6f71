"""Cases that weights are learned from: facts, each held out of its own case.

The facts with the smallest keyed hashes are cases: one way or the other, without its tail, a head
is to find it among some others. These are tails of the same step and any entities, those with the
smallest hashes, so that one who goes lets in the next and all else stays. What is held out has no
part in what judges it: no path, constant or likeness leads through it, and the rules are counted
without it. A case that a change hasn't touched keeps the paths and numbers that it has read; what
these paths count follows from the rules of the moment.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from grapheraser.kernels.compiled import compiled
from grapheraser.kernels.hashing import paired
from grapheraser.links.facts.chosen import POOL, Chosen
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
from grapheraser.links.facts.rows import Ids, Rows, entry, span
from grapheraser.links.facts.rules import Rules, num_codes
from grapheraser.links.facts.walks import paths_between
from grapheraser.seeding import derive

# Tails that a case chooses from, its own among them; the last ones may be any entities.
CHOICES, OF_STEP = 32, 26


@dataclass(frozen=True, eq=False)
class Case:
    """A case and all that it has read, by lasting numbers of entities (see `Cases`).

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
    def of(
        cls,
        rows: Rows,
        fact: Ids,
        choices: Ids,
        label: int,
        length: int,
        seed: int,
        room: tuple[Ids, NDArray[np.bool_]] | None = None,
    ) -> Case:
        """Judge the choices of a head and a step, but for the fact that is held out.

        ``room`` is that of `room_of`, for many cases in a row.
        """
        slots, alive = room_of(rows) if room is None else room
        parts = _judge(rows, *fact.tolist(), choices, slots, alive, length, key_of(seed))
        paths, numbers, near, reads = parts
        reads.sort()
        once = np.append(True, reads[1:] != reads[:-1])
        return cls(int(fact[1]), choices, label, paths, numbers, near, reads[once])

    def numbered(self, numbers: Ids, num_steps: int) -> Case:
        """Return the case with lasting numbers in place of places."""
        choices, near = np.append(numbers, -1)[self.choices], np.sort(numbers[self.near])
        reads = np.sort(_spelled(self.reads, numbers, num_steps))
        return replace(self, choices=choices, near=near, reads=reads)


def room_of(rows: Rows) -> tuple[Ids, NDArray[np.bool_]]:
    """Return the slot of every entity, none, and a mark at every entry; as `_judge` leaves them."""
    return np.full(len(rows.ids), -1), np.ones(len(rows.steps), dtype=np.bool_)


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
    """The cases of a graph.

    Attributes:
        by_fact: cases by their facts: ids and a step.
        lasting: of every place the number that its entity keeps while others come and go.
        used: how many numbers were given out; none is given twice.
        chosen: what cases are made of; None where it has to be found.
    """

    by_fact: dict[tuple[int, ...], Case]
    lasting: Ids
    used: int
    chosen: Chosen | None = None

    @property
    def labels(self) -> Ids:
        """Which choice of each case is held out."""
        return np.array([case.label for case in self.by_fact.values()], dtype=np.int64)

    def numbers(self, num_steps: int, rules: Rules) -> NDArray[np.int64]:
        """Return the numbers of all choices ``[n, CHOICES, WIDTH]``."""
        return numbers_of(list(self.by_fact.values()), num_steps, rules)

    @classmethod
    def none(cls, rows: Rows) -> Self:
        """Return no cases yet."""
        return cls({}, np.arange(len(rows.ids)), len(rows.ids))

    def without(self, rows: Rows, entries: Ids, after: Rows, places: Ids, seed: int) -> Cases:
        """Return the cases that have read none of the facts that go.

        Args:
            rows: in which these facts are.
            entries: of the facts, both ways.
            after: the rows without them.
            places: the new place of every entity; -1 for one that is gone.
            seed: of the run.
        """
        left = self._untouched(rows, entries, self.lasting, 0, seed)
        chosen = self.chosen and self.chosen.left(rows, entries, after, places, key_of(seed))
        return Cases(left, self.lasting[places >= 0], self.used, chosen)

    def extended(self, rows: Rows, entries: Ids, places: Ids, seed: int) -> Cases:
        """Return the cases that have read none of the facts that come: ``rows`` have them."""
        lasting = np.full(len(rows.ids), -1)
        lasting[places] = self.lasting
        new, used = lasting < 0, self.used + len(rows.ids) - len(places)
        lasting[new] = np.arange(self.used, used)
        left = replace(self, used=used)._untouched(rows, entries, lasting, 1, seed)
        return Cases(left, lasting, used)

    def _untouched(
        self, rows: Rows, entries: Ids, lasting: Ids, come: int, seed: int
    ) -> dict[tuple[int, ...], Case]:
        changed, notes, all_moved = _changed(rows, entries, come, key_of(seed))
        if all_moved or not self.by_fact:
            return {}
        m = rows.num_steps
        changed[:, 0], changed[:, 2] = lasting[changed[:, 0]], lasting[changed[:, 2]]
        marked = np.zeros(self.used, dtype=np.bool_)
        marked[changed[:, 0]] = True
        parts = changed, marked, np.unique(_spelled(notes, lasting, m)), m
        return {
            fact: case
            for fact, case in self.by_fact.items()
            if not _is_touched(case.reads, case.choices, case.near, *parts)
        }

    def of_rows(self, rows: Rows, most: int, length: int, seed: int) -> Cases:
        """Return the cases of a graph; those that are known are not judged again."""
        key, chosen = key_of(seed), self.chosen
        if chosen is None or not chosen.is_enough(most):
            chosen = Chosen.of(rows, most, key)
        facts, labels, choices = _chosen_cases(rows, chosen, most)
        ids = np.stack([rows.ids[facts[:, 0]], facts[:, 1], rows.ids[facts[:, 2]]], axis=1)
        named = list(map(tuple, ids.tolist()))
        lasting = np.append(self.lasting, -1)[choices]
        found: dict[tuple[int, ...], Case] = {}
        again = room_of(rows)
        for n, fact in enumerate(named):
            known = self.by_fact.get(fact)
            if known is None or known.choices.tobytes() != lasting[n].tobytes():
                made = Case.of(rows, facts[n], choices[n], int(labels[n]), length, seed, again)
                known = made.numbered(self.lasting, rows.num_steps)
            found[fact] = known
        return Cases(found, self.lasting, self.used, chosen)


def _spelled(reads: Ids, numbers: Ids, num_steps: int) -> Ids:
    """Return reads with numbers in place of places; see `evidence.note`."""
    places, what = np.divmod(reads, 2 * num_steps + 1)
    spelled: Ids = numbers[places] * (2 * num_steps + 1) + what
    return spelled


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


def _chosen_cases(rows: Rows, found: Chosen, most: int) -> tuple[Ids, Ids, Ids]:
    """Return facts (places, one way), labels and choices of the cases."""
    marks = found.marks
    some = np.argpartition(marks, most)[:most] if len(marks) > most else np.arange(len(marks))
    some = some[np.argsort(marks[some], kind="stable")]
    marks, chosen = marks[some], found.facts[some]
    turned = (marks & np.uint64(1)).astype(bool)
    chosen[turned] = chosen[turned][:, ::-1]
    chosen[:, 1] ^= turned
    labels = ((marks >> np.uint64(8)) % np.uint64(CHOICES)).astype(np.int64)
    sizes = np.minimum(found.sizes, POOL)
    kept, choices = _choices(rows, chosen, labels, marks, found.pools, sizes)
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
def _judge(rows, head, step, tail, choices, slots, alive, length, key):  # type: ignore[no-untyped-def]
    """Return paths, numbers, neighbours and reads of a case; see `room_of`."""
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
    held = entry(rows, head, step, tail)
    if held >= 0:
        alive[held] = False
    paths = _gathered(paths_between(rows, alive, head, choices, length), len(choices))
    if held >= 0:
        alive[held] = True
    reads, read = add_constants(rows, head, step, tail, slots, key, numbers, reads, read)
    reads, read = add_likeness(rows, head, step, tail, slots, key, numbers, reads, read)
    for choice in choices:
        if choice >= 0:
            slots[choice] = -1
    return paths, numbers, near, reads[:read]


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
def _is_touched(reads, choices, near, changed, marked, notes, num_steps):  # type: ignore[no-untyped-def]
    """Tell whether a case has read anything that changed.

    That is one of the notes (``marked`` are the rows that they are about), or a fact between a
    neighbour of the head and a choice.
    """
    for read in reads:
        if marked[read // (2 * num_steps + 1)]:
            at = np.searchsorted(notes, read)
            if at < len(notes) and notes[at] == read:
                return True
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
