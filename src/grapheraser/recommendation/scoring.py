"""Scores of items for a user, and what they come from.

A pool of blocks scores ``sum_m w_m log((s_i + FLOOR) / d_i^e) + p log(d_i)``, with the shares s of
`neighbours`, and where there are times ``+ q log(1 + r_i)``, r being popularity as seen from a
moment (see `Recency`). Weights are learned without the damping e, which is applied on top: to tell
one item from fifteen others, popularity helps more than among the first of a long list. Nothing of
this is kept: a user who is forgotten is in no sum any more.
"""

from __future__ import annotations

import numpy as np

from grapheraser.kernels.compiled import compiled
from grapheraser.kernels.elementary import exponential, logarithm
from grapheraser.kernels.paged import NOWHERE, degree_at, entry_of, first_edge, locate, neighbour
from grapheraser.kernels.sets import rank_of
from grapheraser.recommendation.neighbours import CLOSEST, clear, regressed, slot_of, slots_of
from grapheraser.recommendation.weighing import (
    age_of,
    item_power_at,
    profile_of,
    recent,
    recent_part,
    strength,
)

# A share below this says nothing.
FLOOR = 1e-3


@compiled(inline=True)
def _pooled(shares, item, degree, weights, damping):  # type: ignore[no-untyped-def]
    """Return the pool's score of an item with such shares and such a degree."""
    blocks, popularity = len(shares), logarithm(np.float64(max(degree, 1)))
    score = weights[blocks] * popularity
    for m in range(blocks):
        if weights[m] != 0.0:
            score += weights[m] * (logarithm(shares[m, item] + FLOOR) - damping * popularity)
    return score


@compiled
def ranked(  # type: ignore[no-untyped-def]
    table, profiles, strengths, ends, own, weighing, near, recency, weights, top, fresh, among
):
    """Return the best items of some users ``[n, top]`` and their scores; -1 where there are fewer.

    Args:
        table: the graph.
        profiles: ids of the items of all users, one user after the other.
        strengths: of the interactions with them.
        ends: where the items of each user begin ``[n + 1]``.
        own: the id of each user, or -1.
        weighing: see there.
        near: see there.
        recency: see there.
        weights: of the blocks, of the logarithm of an item's degree, and of late popularity.
        top: how many items.
        fresh: whether the items of a user are left out.
        among: sorted ids of the items to choose from; none: all.
    """
    small, slots = slots_of(table)
    sums, met = np.zeros(slots), np.empty(slots, dtype=np.int64)
    at = np.zeros(slots, dtype=np.int32)
    best = np.full((len(own), top), -1, dtype=np.int64)
    scores = np.zeros((len(own), top))
    for n in range(len(own)):
        items = profiles[ends[n] : ends[n + 1]]
        given = strengths[ends[n] : ends[n + 1]]
        parts = table, items, given, own[n], weighing, near, small, sums, met, at
        _common, _x, reached, shares = regressed(*parts)
        if fresh:
            clear(table, items, small, at)
        held = 0
        for r in range(len(reached)):
            wanted = len(among) == 0 or rank_of(reached[r], among) >= 0
            if wanted and at[slot_of(table, reached[r], small)] > 0:
                degree = degree_at(table, locate(table, reached[r]))
                score = _pooled(shares, r, degree, weights, weighing.damping)
                if len(recency.items):
                    score += weights[len(shares) + 1] * recent(recency, reached[r], 0)
                held = _admit(best[n], scores[n], held, reached[r], score)
        clear(table, reached, small, at)
        for k in range(held):
            scores[n, k] = exponential(max(min(scores[n, k], 80.0), -80.0))
    return best, scores


@compiled
def _admit(best, scores, held, item, score):  # type: ignore[no-untyped-def]
    """Let an item in among the best if it is one; equals come in the order of their ids."""
    top = len(best)
    if held == top:
        last = scores[top - 1]
        if score < last or (score == last and item > best[top - 1]):
            return held
    at = min(held, top - 1)
    while at > 0 and (scores[at - 1] < score or (scores[at - 1] == score and best[at - 1] > item)):
        best[at], scores[at] = best[at - 1], scores[at - 1]
        at -= 1
    best[at], scores[at] = item, score
    return min(held + 1, top)


@compiled
def judged(table, users, held, candidates, weighing, near):  # type: ignore[no-untyped-def]
    """Return the evidence of candidates ``[n, k]`` for users ``[n]``, each without their held item.

    Returns: ``[n, blocks, k]``, logarithms of the shares; and the sorted ids of the neighbours who
    told each user, one user's after the other's, with where they begin ``[n + 1]``.
    """
    blocks, (small, slots) = len(weighing.steps), slots_of(table) if len(users) else (True, 0)
    sums, met = np.zeros(slots), np.empty(slots, dtype=np.int64)
    at = np.zeros(slots, dtype=np.int32)
    out = np.empty((len(users), blocks, candidates.shape[1]))
    told, ends = np.empty(CLOSEST, dtype=np.int64), np.zeros(len(users) + 1, dtype=np.int64)
    for n in range(len(users)):
        place = locate(table, users[n])
        items, strengths = profile_of(table, place, held[n], weighing.scale)
        parts = table, items, strengths, users[n], weighing, near, small, sums, met, at
        common, _x, reached, shares = regressed(*parts)
        ends[n + 1] = ends[n] + len(common)
        if ends[n + 1] > len(told):
            told = np.concatenate((told, np.empty(ends[n + 1], dtype=np.int64)))
        told[ends[n] : ends[n + 1]] = np.sort(met[: len(common)])
        for k in range(candidates.shape[1]):
            item = at[slot_of(table, candidates[n, k], small)] - 1
            for m in range(blocks):
                share = shares[m, item] if item >= 0 else 0.0
                out[n, m, k] = logarithm(share + FLOOR)
        clear(table, reached, small, at)
    return out, told[: ends[-1]].copy(), ends


@compiled
def commonness(table, users, held, candidates, weighing, recency):  # type: ignore[no-untyped-def]
    """Return the evidence of how popular candidates are, each without its held item's interaction.

    Returns: ``[n, 1, k]``, logarithms of 1 / degree; with times ``[n, 2, k]``, logarithms of
    degrees, and of 1 / (1 + popularity of late).
    """
    timed = len(recency.items) > 0
    out = np.empty((len(held), 2 if timed else 1, candidates.shape[1]))
    for n in range(len(held)):
        for k in range(candidates.shape[1]):
            item, own = candidates[n, k], candidates[n, k] == held[n]
            degree = logarithm(np.float64(max(degree_at(table, locate(table, item)) - own, 1)))
            out[n, 0, k] = degree if timed else -degree
            if timed:
                without = np.int64(0)
                if own:
                    place = locate(table, users[n])
                    age = age_of(table, place, entry_of(table, place, item), weighing)
                    without = recent_part(age, weighing.half_life)
                out[n, 1, k] = -recent(recency, item, without)
    return out


@compiled
def explained(table, items, strengths, own, target, weighing, near):  # type: ignore[no-untyped-def]
    """Return the part of each item in each block's share of a target ``[len(items), blocks]``.

    A neighbour's part in the share is divided among the items in common as they count in it;
    neighbours who speak against the target have no part.
    """
    blocks, (small, slots) = len(weighing.steps), slots_of(table)
    sums, met = np.zeros(slots), np.empty(slots, dtype=np.int64)
    at = np.zeros(slots, dtype=np.int32)
    out = np.zeros((len(items), blocks))
    parts = table, items, strengths, own, weighing, near, small, sums, met, at
    common, x, _reached, _shares = regressed(*parts)
    numbers = np.zeros(slots, dtype=np.int64)
    for n in range(len(common)):
        numbers[slot_of(table, met[n], small)] = n + 1
    for k in range(len(items)):
        place = locate(table, items[k])
        if place == NOWHERE:
            continue
        degree, first = degree_at(table, place), first_edge(table, place)
        power = item_power_at(table, place, weighing, near) * strengths[k]
        for e in range(degree):
            node = neighbour(first, e)
            user = numbers[slot_of(table, node, small)] - 1
            if user < 0:
                continue
            there = locate(table, node)
            entry = entry_of(table, there, target)
            if entry == NOWHERE:
                continue
            part = power * strength(table, place, e, weighing.scale) / common[user]
            part *= strength(table, there, entry, weighing.scale)
            for m in range(blocks):
                out[k, m] += part * max(x[m, user], 0.0)
    return out
