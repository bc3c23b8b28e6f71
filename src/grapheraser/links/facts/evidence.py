"""Evidence for facts: what paths, constants and likeness say about the tails of a head.

Asked for the tails of a head under a step (see `rows`), three kinds of rules speak for an entity t:

- paths: the rules of `rules` that lead from the head to t;
- constants: of those who share a fact with the head, say ``works at X``, some have t for a tail;
- likeness: of those who share a fact with t, some are tails of the head already.

Each rule has a confidence: its support over its body and a damping. A rule of confidence c counts
``-log(1 - c)``, in whole numbers of 1 / `UNIT`, of which the largest and the sum are taken: in any
order they are the same. Rules with constants are counted when somebody asks. Of those who share a
fact at most about `MAX_SHARING` count, chosen by a keyed hash, and likewise of the facts of a head.
"""

from __future__ import annotations

import numpy as np

from grapheraser.kernels.compiled import compiled
from grapheraser.kernels.elementary import logarithm
from grapheraser.kernels.hashing import paired
from grapheraser.links.facts.rows import span

UNIT = 2**20
MIN_SUPPORT, DAMPING = 2, 5.0
MAX_SHARING, MAX_FACTS = 64, 128
# What more have in common makes nobody alike.
MAX_ALIKE = 256
ROW, ENTRIES = 0, 1
# Where the numbers of a tail begin, the largest and the sum of each: of paths of one, two and three
# steps, of constants, of likeness.
PATHS, CONSTANTS, LIKENESS = 0, 6, 8
WIDTH = 10


@compiled
def likeness(support: int, body: int) -> int:
    """Return what it counts that so many of all who have a fact are tails already."""
    return int(-logarithm(1.0 - support / (body + DAMPING)) * UNIT)


@compiled
def strength(support: int, body: int) -> int:
    """Return what a rule counts; 0 where its support is too small for it to exist."""
    return 0 if support < MIN_SUPPORT else likeness(support, body)


@compiled(inline=True)
def add(numbers, slot, column, value, times):  # type: ignore[no-untyped-def]
    """Add what so many rules or paths say that count the same."""
    numbers[slot, column] = max(numbers[slot, column], value)
    numbers[slot, column + 1] += times * value


@compiled(inline=True)
def column_of(code: int, base: int) -> int:
    """Return the first column of paths as long as one with this code."""
    return PATHS + (0 if code < base else 2 if code < base * base else 4)


@compiled
def level_of(count: int, most: int) -> int:
    """Return how often so many are halved until about ``most`` are left."""
    level = 0
    while count > most << level:
        level += 1
    return level


@compiled
def is_chosen(key, own, other, count, most):  # type: ignore[no-untyped-def]
    """Tell whether one of ``count`` counts, where at most about ``most`` do; by ids.

    One of 2, of 4, of 8, ... counts, so that others stay when one of many comes or goes.
    """
    return paired(paired(key, np.uint64(own)), np.uint64(other)) <= bound_of(count, most)


@compiled
def bound_of(count: int, most: int) -> np.uint64:
    """Return the largest hash of those that are chosen; see `is_chosen`."""
    return ~np.uint64(0) >> np.uint64(level_of(count, most))


@compiled(inline=True)
def note(reads, count, place, what, num_steps):  # type: ignore[no-untyped-def]
    """Note that of the row at a place something was read.

    Args:
        reads: where to note it, after ``count`` others.
        count: see above.
        place: of the row.
        what: `ROW`; ``ENTRIES + step`` for those of a step; ``num_steps + ENTRIES + step`` for
            those of a step that are chosen where there are many.
        num_steps: see `Rows`.
    """
    if count == len(reads):
        more = np.empty(2 * count, dtype=np.int64)
        more[:count] = reads
        reads = more
    reads[count] = place * (2 * num_steps + 1) + what
    return reads


@compiled
def count_constant(rows, head, step, i, slots, key, counts, met, reads, read):  # type: ignore[no-untyped-def]
    """Count the tails of those who share an entry of the head's row.

    Args:
        rows: the facts.
        head: its place.
        step: that is asked for.
        slots: of all entities; -1 for none.
        i: the entry.
        key: chooses among many.
        counts: by slot, zeros; gets the counts.
        met: gets the slots that have one.
        reads: what was read so far; ``read`` of them, -1 where nobody asks.

    Returns: how many share it, how many slots were met, and what was read.
    """
    others, ids = rows.others, rows.ids
    c, back = others[i], rows.steps[i] ^ 1
    first, last = span(rows, c, back)
    if read >= 0:
        reads = note(reads, read, c, rows.num_steps + ENTRIES + back, rows.num_steps)
        read += 1
    own, body, found = paired(paired(key, np.uint64(rows.steps[i])), np.uint64(ids[c])), 0, 0
    bound = bound_of(last - first, MAX_SHARING)
    for j in range(first, last):
        x = others[j]
        if x == head or paired(own, np.uint64(ids[x])) > bound:
            continue
        if read >= 0:
            reads = note(reads, read, x, ENTRIES + step, rows.num_steps)
            read += 1
        low, high = span(rows, x, step)
        body += high > low
        for k in range(low, high):
            slot = slots[others[k]]
            if slot >= 0:
                if counts[slot] == 0:
                    met[found] = slot
                    found += 1
                counts[slot] += 1
    return body, found, reads, read


@compiled
def is_asked(rows, head, step, but, i, key):  # type: ignore[no-untyped-def]
    """Tell whether those who share an entry of the head's row are asked."""
    c, own = rows.others[i], paired(key, np.uint64(rows.steps[i]))
    if (c == but and rows.steps[i] == step) or c == head:
        return False
    many = rows.ends[head + 1] - rows.ends[head]
    return is_chosen(own, rows.ids[head], rows.ids[c], many, MAX_FACTS)


@compiled
def add_constants(rows, head, step, but, slots, key, numbers, reads, read):  # type: ignore[no-untyped-def]
    """Add what rules with constants say of the tails that have a slot, to ``numbers`` by slot.

    Arguments as for `count_constant`; no entry counts that leads with the step to the place
    ``but`` (-1: none). Returns what was read, and how much.
    """
    counts, met = np.zeros(len(numbers), dtype=np.int64), np.empty(len(numbers), dtype=np.int64)
    first, last = rows.ends[head], rows.ends[head + 1]
    for i in range(first, last):
        if not is_asked(rows, head, step, but, i, key):
            continue
        body, found, reads, read = count_constant(
            rows, head, step, i, slots, key, counts, met, reads, read
        )
        for f in range(found):
            value = strength(counts[met[f]], body)
            if value:
                add(numbers, met[f], CONSTANTS, value, 1)
            counts[met[f]] = 0
    return reads, read


@compiled
def shared_facts(rows, head, step, but, key, reads, read):  # type: ignore[no-untyped-def]
    """Return what the tails of a head have in common: ``other * num_steps + step back`` and counts.

    Only what as many tails share as a rule needs. Arguments as for `add_constants`; also returns
    what was read, and how much.
    """
    ends, steps, others, ids = rows.ends, rows.steps, rows.others, rows.ids
    first, last = span(rows, head, step)
    own, room, tails = paired(paired(key, np.uint64(step)), np.uint64(ids[head])), 0, 0
    bound = bound_of(last - first, MAX_SHARING)
    # Whom too few tails lead to is left out: that is cheaper than to sort them as well.
    met = np.zeros(len(ids), dtype=np.int32)
    for i in range(first, last):
        t = others[i]
        if t != but and paired(own, np.uint64(ids[t])) <= bound:
            tails, room = tails + 1, room + ends[t + 1] - ends[t]
            for other in others[ends[t] : ends[t + 1]]:
                met[other] += 1
    least = min(MIN_SUPPORT, tails)
    shared, count = np.empty(room, dtype=np.int64), 0
    for i in range(first, last):
        t = others[i]
        if t == but or paired(own, np.uint64(ids[t])) > bound:
            continue
        if read >= 0:
            reads = note(reads, read, t, ROW, rows.num_steps)
            read += 1
        for j in range(ends[t], ends[t + 1]):
            if others[j] != head and met[others[j]] >= least:
                shared[count] = others[j] * np.int64(rows.num_steps) + (steps[j] ^ 1)
                count += 1
    shared, n, held = np.sort(shared[:count]), 0, 0
    counts = np.empty(count, dtype=np.int64)
    while n < count:
        after = n
        while after < count and shared[after] == shared[n]:
            after += 1
        if after - n >= least:
            shared[held], counts[held] = shared[n], after - n
            held += 1
        n = after
    return shared[:held], counts[:held], reads, read


@compiled
def add_likeness(rows, head, step, but, slots, key, numbers, reads, read):  # type: ignore[no-untyped-def]
    """Add what the head's other tails say of tails like them; arguments as `add_constants`."""
    shared, counts, reads, read = shared_facts(rows, head, step, but, key, reads, read)
    for n in range(len(shared)):
        c, back = shared[n] // rows.num_steps, shared[n] % rows.num_steps
        low, high = span(rows, c, back)
        if high - low > MAX_ALIKE:
            continue
        if read >= 0:
            reads = note(reads, read, c, ENTRIES + back, rows.num_steps)
            read += 1
        value = likeness(counts[n], high - low)
        for j in range(low, high):
            if slots[rows.others[j]] >= 0:
                add(numbers, slots[rows.others[j]], LIKENESS, value, 1)
    return reads, read


@compiled
def add_paths(paths, strengths, base, numbers):  # type: ignore[no-untyped-def]
    """Add what the rules of some paths say; ``strengths`` are by code."""
    for n in range(len(paths)):
        value = strengths[paths[n, 1]]
        if value:
            add(numbers, paths[n, 0], column_of(paths[n, 1], base), value, 1)


@compiled
def strengths_of(keys, support, body, step, num_steps, num_codes):  # type: ignore[no-untyped-def]
    """Return what the rules for a step count, by code."""
    out = np.zeros(num_codes, dtype=np.int64)
    for k in range(len(keys)):
        if keys[k] % num_steps == step:
            out[keys[k] // num_steps] = strength(support[k], body[k])
    return out


@compiled
def scores_of(numbers, columns, weights):  # type: ignore[no-untyped-def]
    """Return the score of every slot: the weighed logarithms of 1 and its numbers; 0 at least."""
    out = np.zeros(len(numbers))
    for n in range(len(numbers)):
        for k in range(len(columns)):
            if numbers[n, columns[k]]:
                out[n] += weights[k] * logarithm(1.0 + numbers[n, columns[k]] / UNIT)
    return out
