"""The pool for several labels and for numbers: members combined by weights of each target.

Every member says a number for each target. Of several labels the pool makes log-odds: a weighted
sum of what members add to those of the label's share, and an offset. Numbers are stacked linearly:
a weighted sum and an offset by least squares. Weights are not negative. They are learned, target by
target, from a sample of training nodes that every member judges held out, and relearned with every
request; a target that is not known of a node has no part in it.

A member may have nothing to go by, as `pattern` has where no label is around: it says NaN, and is
left out. For such nodes there is a second set of weights: what the member would have said is put
in as a regression from what all others say, over the sampled nodes of which it says something.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grapheraser.aggregation.log_linear import PoolWeights, newton_step
from grapheraser.aggregation.members.base import Evidence, Ids
from grapheraser.aggregation.members.target_sums import is_partial
from grapheraser.graph import Graph
from grapheraser.graph.labels import ONE
from grapheraser.kernels.cholesky import solve_few
from grapheraser.kernels.compiled import compiled
from grapheraser.kernels.elementary import exponential, logarithm

# Where weights start, and the strength, in nodes, with which they and offsets are pulled there.
_START, _PULL, _OFFSET_PULL = 0.6, 5.0, 1.0
_PASSES, _HALVINGS, _TOLERANCE = 30, 20, 1e-6
# Log-odds that a member adds are a share's difference over its variance, and this for rare labels.
_RARE = 0.02
_BOUND = 30.0
# The member that says nothing where no label is around.
QUIET = "pattern"


def target_weights(graph: Graph, sample: Ids, said: Evidence, quiet: int) -> PoolWeights:
    """Learn weights ``[2, members, count]`` and offsets ``[2, count]``, flat, in two sets.

    The first set is for nodes of which every member says something. Of labels the last offset is a
    threshold.

    Args:
        graph: the current graph.
        sample: ids of the nodes to learn from.
        said: what members say about them, held out ``[len(sample), members, count]``.
        quiet: the member that may say nothing; -1 for none.
    """
    evidence, kind, frame = _evidence(graph, said), graph.label_kind, graph.label_frame
    steps, several = kind.fixed(graph.labels(sample)), not kind.is_numbers
    targets = steps / ONE if several else (steps - frame.centre) / frame.spread
    start = _log_odds(frame.mean / ONE) if several else np.zeros(kind.count)
    weights, offsets = np.empty((2, said.shape[1], kind.count)), np.empty((2, kind.count))
    by_target = np.ascontiguousarray(evidence.transpose(2, 0, 1))
    speaks = ~np.isnan(evidence).any(axis=(1, 2))
    for k in range(kind.count):
        there = speaks & ~np.isnan(targets[:, k])
        L = by_target[k, there]
        found = _solve(L, targets[there, k], _START, float(start[k]), several)
        weights[0, :, k], offsets[0, k] = found[:-1], found[-1]
        alone = _without(L, found, quiet, several) if quiet >= 0 else found
        weights[1, :, k], offsets[1, k] = alone[:-1], alone[-1]
    if not several:
        return PoolWeights(weights, offsets.ravel())
    likely = _pooled(evidence, weights, offsets, several).astype(np.float32)
    return PoolWeights(weights, np.append(offsets, _threshold(likely, targets)))


def _threshold(likely: NDArray[np.float32], targets: NDArray[np.float64]) -> float:
    """Return from where on a label is said: where that gives the best micro F1 on the sample.

    Rare labels are hardly ever more likely than not; half of the best F1 is the best threshold.
    """
    known = ~np.isnan(targets)
    scores, labels = likely[known], targets[known].astype(np.int64)
    order = np.argsort(-scores, kind="stable")
    scores, hits = scores[order], np.cumsum(labels[order])
    if not len(hits) or hits[-1] == 0:
        return 0.5
    ends = np.append(scores[1:] < scores[:-1], True)  # equal ones are said together
    f1 = np.where(ends, 2.0 * hits / (np.arange(1, len(hits) + 1) + hits[-1]), 0.0)
    return float(scores[int(f1.argmax())])


def target_answers(graph: Graph, said: Evidence, learned: PoolWeights) -> NDArray[Any]:
    """Return how likely each label is, float32; or numbers, float64 ``[m, count]``."""
    kind, frame = graph.label_kind, graph.label_frame
    offsets = learned.offsets[: 2 * kind.count].reshape(2, kind.count)
    pooled = _pooled(_evidence(graph, said), learned.members, offsets, not kind.is_numbers)
    if not kind.is_numbers:
        return np.asarray(pooled, dtype=np.float32)
    return kind.values(frame.centre + frame.spread * pooled)


def told(
    graph: Graph, said: Evidence, learned: PoolWeights, target: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return what members say of a target of one node ``[1, members, count]``, and their weights.

    Of labels they are probabilities. A member that says nothing has no weight.
    """
    kind, frame = graph.label_kind, graph.label_frame
    quiet = np.isnan(said[0]).any(axis=1)
    values = kind.values(frame.centre + frame.spread * said[0])[:, target]
    weights = learned.members[int(quiet.any()), :, target]
    if not kind.is_numbers:
        values = np.clip(values, 0.0, 1.0)
    return values, np.where(quiet, 0.0, weights)


def remarks(before: Graph, graph: Graph) -> tuple[str, ...]:
    """Say where a request cost more, because what follows from all targets has moved."""
    notes = []
    if not graph.label_frame.same(before.label_frame):
        notes.append("the centre or spread of a target has moved: all rows of means were made anew")
    if is_partial(graph) != is_partial(before):
        notes.append("the first target has become unknown, or the last one known: sums made anew")
    return tuple(notes)


def _evidence(graph: Graph, said: Evidence) -> Evidence:
    """Turn what members say ``[m, members, count]`` into what the pool weighs."""
    if graph.label_kind.is_numbers:
        return said
    frame = graph.label_frame
    share = frame.mean / ONE
    difference = (frame.centre + frame.spread * said) / ONE - share
    return np.clip(difference / (share * (1 - share) + _RARE), -_BOUND, _BOUND)


@compiled
def _log_odds(shares):  # type: ignore[no-untyped-def]
    out = np.empty(len(shares))
    for k in range(len(shares)):
        share = min(max(shares[k], 1e-4), 1.0 - 1e-4)
        out[k] = logarithm(share) - logarithm(1.0 - share)
    return out


@compiled
def _pooled(evidence, weights, offsets, several):  # type: ignore[no-untyped-def]
    m, members, count = evidence.shape
    out = np.empty((m, count))
    for v in range(m):
        alone = 1 if np.isnan(evidence[v]).any() else 0
        for k in range(count):
            value = offsets[alone, k]
            for i in range(members):
                if not np.isnan(evidence[v, i, k]):
                    value += weights[alone, i, k] * evidence[v, i, k]
            out[v, k] = 1.0 / (1.0 + exponential(-value)) if several else value
    return out


@compiled
def _without(L, x, quiet, several):  # type: ignore[no-untyped-def]
    """Weights and offset for nodes about which a member is quiet, from those for all others.

    It is taken to say what least squares expect of it, given what the others say. As it may have
    said something else, log-odds shrink by what the logistic function averages them to.
    """
    n = L.shape[1] + 1
    A, s, row = np.zeros((n, n)), np.zeros(n), np.ones(n)
    for v in range(len(L)):
        row[: n - 1] = L[v]
        row[quiet] = 0.0
        for i in range(n):
            s[i] += row[i] * L[v, quiet]
            for j in range(i + 1):
                A[i, j] += row[i] * row[j]
    for i in range(n):
        A[i, i] += _PULL
    solve_few(A, s)
    square = 0.0
    for v in range(len(L)):
        row[: n - 1] = L[v]
        row[quiet] = 0.0
        gap = L[v, quiet]
        for i in range(n):
            gap -= s[i] * row[i]
        square += gap * gap
    variance = x[quiet] * x[quiet] * square / max(len(L), 1)
    out = x + x[quiet] * s
    out[quiet] = 0.0
    out[: n - 1] = np.maximum(out[: n - 1], 0.0)
    return out / math.sqrt(1.0 + math.pi / 8.0 * variance) if several else out


@compiled
def _solve(L, y, start, offset, several):  # type: ignore[no-untyped-def]
    """Find weights that are not negative, and an offset, by projected Newton steps."""
    members = L.shape[1]
    x = np.full(members + 1, start / members)
    x[members] = offset
    middle = x.copy()
    value, gradient, hessian = _look(L, y, x, middle, several)
    for _ in range(_PASSES):
        step = newton_step(hessian, gradient, x, members)
        scale, slope = 1.0, 0.0
        new = x.copy()
        for _ in range(_HALVINGS):
            slope = 0.0
            for i in range(members + 1):
                new[i] = x[i] + scale * step[i]
                if i < members:
                    new[i] = max(new[i], 0.0)
                slope += gradient[i] * (new[i] - x[i])
            if slope > -_TOLERANCE * (len(y) + 1):
                return x  # nothing left to gain
            found = _look(L, y, new, middle, several)
            if found[0] <= value + 1e-4 * slope:
                break
            scale *= 0.5
        x = new
        value, gradient, hessian = found
    return x


@compiled
def _look(L, y, x, middle, several):  # type: ignore[no-untyped-def]
    """Value, gradient and Hessian at ``x``, node by node in order."""
    members = L.shape[1]
    n = members + 1
    value, gradient, hessian = 0.0, np.zeros(n), np.zeros((n, n))
    for v in range(len(y)):
        z = x[members]
        for i in range(members):
            z += x[i] * L[v, i]
        if several:
            size = exponential(-abs(z))
            p = 1.0 / (1.0 + size) if z >= 0 else size / (1.0 + size)
            value += max(z, 0.0) + logarithm(1.0 + size) - y[v] * z
            slope, bend = p - y[v], p * (1.0 - p)
        else:
            value += 0.5 * (z - y[v]) * (z - y[v])
            slope, bend = z - y[v], 1.0
        for i in range(n):
            one = L[v, i] if i < members else 1.0
            gradient[i] += slope * one
            for j in range(i + 1):
                hessian[i, j] += bend * one * (L[v, j] if j < members else 1.0)
    for i in range(n):
        pull, away = (_PULL if i < members else _OFFSET_PULL), x[i] - middle[i]
        value += 0.5 * pull * away * away
        gradient[i] += pull * away
        hessian[i, i] += pull
    return value, gradient, hessian
