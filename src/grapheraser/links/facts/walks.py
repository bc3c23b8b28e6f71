"""Walks along facts: paths of at most three steps, which visit no entity twice.

A path has a code: its steps, each plus 1, as the digits of a number. A *stem* is a path that may go
on by one more step; whoever asks for paths walks that last step, so that only stems are held.
"""

from __future__ import annotations

import numpy as np

from grapheraser.kernels.compiled import compiled
from grapheraser.links.facts.rows import entry, room

# Columns of a stem: its code, the code of the way back, its last entity and the one before.
CODE, BACK, END, BEFORE = range(4)


@compiled
def all_but(rows, place, step, other):  # type: ignore[no-untyped-def]
    """Mark all entries of rows but that of one fact, if it is there."""
    alive, held = np.ones(len(rows.steps), dtype=np.bool_), entry(rows, place, step, other)
    if held >= 0:
        alive[held] = False
    return alive


@compiled
def stems_from(rows, alive, x, most, avoid):  # type: ignore[no-untyped-def]
    """Return the paths of 0 to ``most`` (at most 2) steps from an entity.

    Args:
        rows: the facts.
        alive: which entries of rows are there.
        x: the place of the entity.
        most: see above.
        avoid: place of an entity that no path visits; -1 for none.

    Returns: stems ``[s, 4]``, shorter ones first, and where those of each length begin and end.
    """
    base, power = rows.num_steps + 1, 1
    levels = np.ones(most + 2, dtype=np.int64)
    levels[0] = 0
    out, count = np.empty((256, 4), dtype=np.int64), 1
    out[0, CODE], out[0, BACK], out[0, END], out[0, BEFORE] = 0, 0, x, x
    for n in range(most):
        for s in range(levels[n], levels[n + 1]):
            code, back, end = out[s, CODE], out[s, BACK], out[s, END]
            for i in range(rows.ends[end], rows.ends[end + 1]):
                if rows.others[i] != avoid and goes_on(rows, alive, out, s, i, x):
                    out = room(out, count)
                    out[count, CODE] = code * base + rows.steps[i] + 1
                    out[count, BACK] = back + ((rows.steps[i] ^ 1) + 1) * power
                    out[count, END], out[count, BEFORE] = rows.others[i], end
                    count += 1
        levels[n + 2] = count
        power *= base
    return out[:count], levels


@compiled(inline=True)
def goes_on(rows, alive, stems, s, i, x):  # type: ignore[no-untyped-def]
    """Tell whether a stem from ``x`` may go on along an entry."""
    v = rows.others[i]
    return alive[i] and v != x and v != stems[s, END] and v != stems[s, BEFORE]


@compiled
def paths_from(rows, alive, head, length):  # type: ignore[no-untyped-def]
    """Return last entities and codes of all paths from a head ``[p, 2]``.

    Takes rows and entries as `stems_from`, the place of the head, and the most steps.
    """
    base, stems = rows.num_steps + 1, stems_from(rows, alive, head, length - 1, -1)[0]
    out, count = np.empty((256, 2), dtype=np.int64), 0
    for s in range(len(stems)):
        for i in range(rows.ends[stems[s, END]], rows.ends[stems[s, END] + 1]):
            if goes_on(rows, alive, stems, s, i, head):
                out, code = room(out, count), stems[s, CODE] * base + rows.steps[i] + 1
                out[count, 0], out[count, 1] = rows.others[i], code
                count += 1
    return out[:count]


@compiled
def paths_between(rows, alive, head, tails, length):  # type: ignore[no-untyped-def]
    """Return the paths from a head to tails ``[p, 3]``: which tail, code, that of the way back.

    Stems lead back from the tails: these are few, and all that a head leads to may be many. Tails
    are places, or -1 for none; arguments else as for `paths_from`.
    """
    base, first, powers = rows.num_steps + 1, rows.ends[head], np.ones(length, dtype=np.int64)
    for n in range(1, length):
        powers[n] = powers[n - 1] * base
    start, following = _beginnings(rows, alive, head)
    out, count, most = np.empty((256, 3), dtype=np.int64), 0, max(0, length - 2)
    for k in range(len(tails)):
        if tails[k] < 0 or tails[k] == head:
            continue
        stems, levels = stems_from(rows, alive, tails[k], most, head)
        for n in range(most + 1):
            for s in range(levels[n], levels[n + 1]):
                end, code, back = stems[s, END], stems[s, CODE], stems[s, BACK]
                e, parts = start[end], (k, code * base, back, powers[n])
                out, count = _met(rows, e, following, first, parts, out, count)
                if n + 2 != length:
                    continue
                for i in range(rows.ends[end], rows.ends[end + 1]):
                    e = start[rows.others[i]]
                    if e >= 0 and goes_on(rows, alive, stems, s, i, tails[k]):
                        there = (code * base + rows.steps[i] + 1) * base
                        again = back + ((rows.steps[i] ^ 1) + 1) * powers[n]
                        parts = (k, there, again, powers[n + 1])
                        out, count = _met(rows, e, following, first, parts, out, count)
    return out[:count]


@compiled
def _beginnings(rows, alive, head):  # type: ignore[no-untyped-def]
    """Return an entry of the head's row by the entity it leads to, and further ones by entry."""
    first, last = rows.ends[head], rows.ends[head + 1]
    start, following = np.full(len(rows.ids), -1), np.empty(last - first, dtype=np.int64)
    for e in range(first, last):
        if alive[e]:
            following[e - first] = start[rows.others[e]]
            start[rows.others[e]] = e
    return start, following


@compiled(inline=True)
def _met(rows, e, following, first, parts, out, count):  # type: ignore[no-untyped-def]
    """Add the paths that begin with an entry of the head's row, and those like it."""
    k, there, back, power = parts
    while e >= 0:
        out, step = room(out, count), rows.steps[e]
        out[count, 0], out[count, 1] = k, (step + 1) * power + back
        out[count, 2] = there + (step ^ 1) + 1
        count, e = count + 1, following[e - first]
    return out, count


@compiled
def paths_through(rows, alive, there, back, length):  # type: ignore[no-untyped-def]
    """Return the paths through a fact, both ways ``[p, 3]``: code, first and last entity.

    The fact is given by its two entries.
    """
    base, a, b = rows.num_steps + 1, rows.others[back], rows.others[there]
    out, count = np.empty((64, 3), dtype=np.int64), 0
    if a == b:
        return out[:0]
    before, early = stems_from(rows, alive, a, length - 1, b)
    after, late = stems_from(rows, alive, b, length - 1, a)
    for m in range(length):
        for n in range(length - m):
            for s in range(early[m], early[m + 1]):
                for t in range(late[n], late[n + 1]):
                    if m == n == 1 and before[s, END] == after[t, END]:
                        continue
                    out = room(out, count + 1)
                    one = before[s, BACK] * base + rows.steps[there] + 1
                    two = after[t, BACK] * base + rows.steps[back] + 1
                    out[count, 0] = one * base**n + after[t, CODE]
                    out[count + 1, 0] = two * base**m + before[s, CODE]
                    out[count, 1] = out[count + 1, 2] = before[s, END]
                    out[count, 2] = out[count + 1, 1] = after[t, END]
                    count += 2
    return out[:count]
