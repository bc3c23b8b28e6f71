"""Regression of targets on all columns of wide features together.

A row holds a node's own features, the mean of its neighbours' rows in columns of their own, and a
few columns beside. It is learned from a bounded number of nodes, by so few conjugate gradients that
a request can solve it anew. No row is written down: what weights say of a row is put together from
what they say of its node and of its neighbours, each looked at once.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from grapheraser.aggregation.base import Ensemble
from grapheraser.aggregation.members.base import Ids
from grapheraser.aggregation.members.features import SHARDED
from grapheraser.aggregation.members.smoothing import inverse_length, key_of
from grapheraser.aggregation.members.target_pattern import PIECES, pieces_of
from grapheraser.aggregation.members.target_sums import targets_at
from grapheraser.aggregation.members.walks import Reach, Ring, ring_around
from grapheraser.kernels.compiled import compiled
from grapheraser.kernels.elementary import logarithm
from grapheraser.kernels.paged import copy_features, degrees_at, size_at
from grapheraser.kernels.sets import ranks
from grapheraser.kernels.vectors import HALF, HALF_LANES, load, store, zeros

# A row is as long as the logarithm of how many features there are, over this, and at the most 2.
_USUAL, _LONGEST = 3.0, 2.0
# Columns beside those of features.
OTHERS = 2 * PIECES - 1
# Neighbours that count, and how many gradients it takes.
AROUND, _GRADIENTS = 16, 8
# Nodes to learn from, at the most; where there are more of them, so many and few of their
# neighbours, lest a request of a large graph cost more.
NODES, MOST_NODES, _FEW = 8192, 16384, 2
# Of more targets than this, a node's own features alone: each is one more to solve for.
_WITH_NEIGHBOURS = 4


def weights_of_all(
    ensemble: Ensemble, chosen: Ids, sample: Ids, mean: NDArray[np.float64], ridge: float
) -> NDArray[np.float64]:
    """Solve for weights ``[columns, 2 count]``: from nodes, and from all but the sample.

    Args:
        ensemble: with the graph.
        chosen: nodes to learn from beside the sample; the first ones where those are too many.
        sample: sorted ids.
        mean: of the targets, in the graph's frame.
        ridge: see `TargetWords`.
    """
    graph, frame = ensemble.graph, ensemble.graph.label_frame
    most, around = (NODES, AROUND) if graph.num_train <= NODES else (MOST_NODES, _FEW)
    if graph.num_classes > _WITH_NEIGHBOURS:
        most, around = NODES, 0
    nodes = np.union1d(chosen[:most], sample)
    places = graph.places(nodes)
    targets = targets_at(graph, places)
    known = ~np.isnan(targets)
    others = known & (ranks(nodes, sample) < 0)[:, None]
    scaled = np.nan_to_num((targets - frame.centre) / frame.spread - mean)
    reach, rows = Reach(SHARDED[graph.context], around), np.arange(len(places) + 1)
    ring = Ring(places, rows, rows[:-1].astype(np.int32))
    if around:
        ring = ring_around(graph, places, reach, key_of(ensemble.seed))
    own = _own(graph.table, ring.places, graph.num_features)
    sizes = np.diff(own[0])[ring.entries[ring.indptr[:-1]]]
    columns = beside(sizes, degrees_at(graph.table, places), 2.0**12) / 2**12
    parts = np.hstack([scaled, scaled]), np.hstack([known, others]).astype(np.float64)
    found: NDArray[np.float64] = _regressed(
        *own, *ring[1:], columns, *parts, graph.num_features, ridge, _GRADIENTS
    )
    return found


@compiled
def logarithms_of(values):  # type: ignore[no-untyped-def]
    """Take logarithms of a node's features in place; return what brings them to their length."""
    last, size = np.float32(0.0), np.float32(0.0)
    for i in range(len(values)):
        if values[i] != last:
            last = values[i]
            size = np.float32(logarithm(1.0 + abs(np.float64(last))))
        values[i] = size if last > 0 else -size
    return min(logarithm(1.0 + len(values)) / _USUAL, _LONGEST) * inverse_length(values)


@compiled
def beside(sizes, degrees, one):  # type: ignore[no-untyped-def]
    """Columns beside those of features: pieces of both numbers, and a constant, in steps."""
    return np.hstack((pieces_of(sizes, one)[:, :-1], pieces_of(degrees, one)))


@compiled
def _own(table, places, features):  # type: ignore[no-untyped-def]
    """Own features of the nodes at these places, as long as they are."""
    most = 0
    for place in places:
        most += size_at(table, place)
    pointers = np.zeros(len(places) + 1, dtype=np.int64)
    found, numbers = np.empty(most, dtype=np.int32), np.empty(most)
    values = np.empty(features, dtype=np.float32)
    for r in range(len(places)):
        start = pointers[r]
        count = copy_features(table, places[r], found[start:], values, 0)
        scale = logarithms_of(values[:count])
        for i in range(count):
            numbers[start + i] = values[i] * scale
        pointers[r + 1] = start + count
    return pointers, found[: pointers[-1]].copy(), numbers[: pointers[-1]].copy()


@compiled
def _regressed(  # type: ignore[no-untyped-def]
    pointers, columns, values, indptr, entries, others, targets, known, features, ridge, gradients
):
    """Solve ridge regressions side by side by conjugate gradients, from zero.

    Each has a part of the rows: those known to it. No row is written down: of its own node the
    first lanes hold the weights, of its neighbours, whose mean counts, the next ones. All sums run
    over rows, entries and columns in their order, and lanes never meet, so weights follow from the
    rows alone.
    """
    count = known.shape[1]
    used = 2 * count if len(entries) > len(known) else count  # lanes; without neighbours half
    shape = features + OTHERS, -(-used // HALF_LANES) * HALF_LANES
    rows, squares = (pointers, columns, values, indptr, entries), values * values
    left = _turned(*rows, others, targets * known, np.zeros(shape))
    scale = _turned(pointers, columns, squares, indptr, entries, others * others, known, left * 0.0)
    scale = 1.0 / (scale + ridge)
    weights, way, size = np.zeros(shape), left * scale, np.zeros(count)
    _add_products(left, way, used, size)
    for _ in range(gradients):
        image = _turned(*rows, others, _said_of(*rows, others, way, known), ridge * way)
        length, new = np.zeros(count), np.zeros(count)
        _add_products(way, image, used, length)
        along = _shares(size, length)
        for c in range(shape[0]):
            for at in range(0, used, count):
                for k in range(count):
                    weights[c, at + k] += along[k] * way[c, at + k]
                    left[c, at + k] -= along[k] * image[c, at + k]
                    image[c, at + k] = left[c, at + k] * scale[c, at + k]
        _add_products(left, image, used, new)
        share, size = _shares(new, size), new
        for c in range(shape[0]):
            for at in range(0, used, count):
                for k in range(count):
                    way[c, at + k] = image[c, at + k] + share[k] * way[c, at + k]
    out = np.zeros((2 * features + OTHERS, count))
    out[:features], out[2 * features :] = weights[:features, :count], weights[features:, :count]
    if used > count:
        out[features : 2 * features] = weights[:features, count:used]
    return out


@compiled
def _said_of(pointers, columns, values, indptr, entries, others, way, known):  # type: ignore[no-untyped-def]
    """Multiply rows by weights."""
    m, count = known.shape
    lanes, features = way.shape[1], len(way) - OTHERS
    said, out = np.zeros((len(pointers) - 1, lanes)), np.zeros((m, count))
    for at in range(0, lanes, HALF_LANES):
        for u in range(len(said)):
            total = zeros(way, HALF)
            for e in range(pointers[u], pointers[u + 1]):
                total = total + load(way, columns[e] * lanes + at, HALF) * values[e]
            store(said, u * lanes + at, total)
    for r in range(m):
        around = indptr[r + 1] - indptr[r] - 1
        for k in range(count):
            for e in range(indptr[r] + 1, indptr[r + 1]):
                out[r, k] += said[entries[e], count + k]
            out[r, k] = out[r, k] / max(around, 1) + said[entries[indptr[r]], k]
            for c in range(OTHERS):
                out[r, k] += others[r, c] * way[features + c, k]
            out[r, k] *= known[r, k]
    return out


@compiled
def _turned(pointers, columns, values, indptr, entries, others, said, out):  # type: ignore[no-untyped-def]
    """Add transposed rows times what is said of them."""
    (m, count), lanes = said.shape, out.shape[1]
    features, sums = len(out) - OTHERS, np.zeros((len(pointers) - 1, lanes))
    for r in range(m):
        around = indptr[r + 1] - indptr[r] - 1
        for k in range(count):
            sums[entries[indptr[r]], k] += said[r, k]
            share = said[r, k] / max(around, 1)
            for e in range(indptr[r] + 1, indptr[r + 1]):
                sums[entries[e], count + k] += share
            for c in range(OTHERS):
                out[features + c, k] += others[r, c] * said[r, k]
    for at in range(0, lanes, HALF_LANES):
        for u in range(len(sums)):
            total = load(sums, u * lanes + at, HALF)
            for e in range(pointers[u], pointers[u + 1]):
                place = columns[e] * lanes + at
                store(out, place, load(out, place, HALF) + total * values[e])
    return out


@compiled
def _add_products(a, b, used, out):  # type: ignore[no-untyped-def]
    """Add up the products of each regression."""
    for c in range(len(a)):
        for at in range(0, used, len(out)):
            for k in range(len(out)):
                out[k] += a[c, at + k] * b[c, at + k]


@compiled
def _shares(a, b):  # type: ignore[no-untyped-def]
    """Divide; nothing is left of what is 0 already."""
    out = np.zeros(len(a))
    for k in range(len(a)):
        if b[k] > 0.0:
            out[k] = a[k] / b[k]
    return out
