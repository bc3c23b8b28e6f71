"""What the forward pass of a model is made of, compiled, row by row.

Every sum runs over one row in the order of node positions.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from grapheraser.kernels.compiled import compiled
from grapheraser.kernels.vectors import (
    LANES,
    ONE,
    Tile,
    exponential,
    fma,
    load,
    store,
    zeros,
)
from grapheraser.models.constants import LEAK, NO_ACTIVATION, NORM_EPS, RELU

Matrix = NDArray[np.float32]


class Hop(NamedTuple):
    """Edges from the nodes of one ring of the neighbourhood to those of the next, wider one.

    The wider ring begins with the nodes of the narrower: row r's own node is at place r.

    Attributes:
        indptr, indices: CSR; columns are places in the wider ring.
        degree: float32, neighbours in the whole graph of the wider ring's nodes.
    """

    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]
    degree: Matrix


class Field(NamedTuple):
    """The rows that the wanted posteriors depend on.

    Attributes:
        outer, inner: from two hops away to one, and from one hop to the wanted nodes.
        rows: positions of the outermost ring, whose features are read.
        x_indptr, x_indices, x_data: CSR features of the whole graph.
        place: int32 ``[num_features]``, all -1: room for `project`.
    """

    outer: Hop
    inner: Hop
    rows: NDArray[np.int64]
    x_indptr: NDArray[np.int32]
    x_indices: NDArray[np.int32]
    x_data: Matrix
    place: NDArray[np.int32]


@compiled
def normalise(z: Matrix, norm: tuple[Matrix, ...]) -> Matrix:
    """Batch norm with running statistics, in place; does nothing where the model has no norm."""
    weight, bias, mean, var = norm
    for u in range(len(weight)):
        scale = weight[u] / np.sqrt(var[u] + np.float32(NORM_EPS))
        for r in range(len(z)):
            z[r, u] = (z[r, u] - mean[u]) * scale + bias[u]
    return z


@compiled
def add(z: Matrix, bias: Matrix) -> Matrix:
    """Add a row to all rows, in place; an empty one adds nothing."""
    for r in range(len(z)):
        for u in range(len(bias)):
            z[r, u] += bias[u]
    return z


@compiled
def project(
    field: Field, count: int, columns: NDArray[np.int32], weight: Matrix, tile: Tile
) -> Matrix:
    """The first rows of X W ``[count, width]``; W has a row for each of the columns."""
    width, place = weight.shape[1], field.place
    for i in range(len(columns)):
        place[columns[i]] = i
    out = np.zeros((count, width), dtype=np.float32)
    whole = width - width % (LANES * len(tile))
    for r in range(count):
        start, end = field.x_indptr[field.rows[r]], field.x_indptr[field.rows[r] + 1]
        for t in range(0, whole, LANES * len(tile)):
            total = zeros(out, tile)
            for k in range(start, end):
                at = np.int64(place[field.x_indices[k]])
                if at >= 0:
                    total = fma(load(weight, at * width + t, tile), field.x_data[k], total)
            store(out, r * width + t, total)
        if whole < width:
            for k in range(start, end):
                at = np.int64(place[field.x_indices[k]])
                if at >= 0:
                    for u in range(whole, width):
                        out[r, u] += field.x_data[k] * weight[at, u]
    for i in range(len(columns)):
        place[columns[i]] = -1
    return out


@compiled
def matmul(h: Matrix, weight: Matrix) -> Matrix:
    """``h @ weight``, each row by itself: a BLAS may sum differently when there are more rows."""
    depth, width = weight.shape
    lanes = width + -width % LANES
    wide = np.zeros((depth, lanes), dtype=np.float32)
    wide[:, :width] = weight
    out, line = np.empty((len(h), width), dtype=np.float32), np.empty(lanes, dtype=np.float32)
    for r in range(len(h)):
        for t in range(0, lanes, LANES):
            total = zeros(line, ONE)
            for k in range(depth):
                total = fma(load(wide, k * lanes + t, ONE), h[r, k], total)
            store(line, t, total)
        for u in range(width):
            out[r, u] = line[u]
    return out


@compiled
def convolve(hop: Hop, self_loops: bool, z: Matrix) -> Matrix:
    """GCN's symmetrically normalised sum over neighbours."""
    n = len(hop.indptr) - 1
    out = np.zeros((n, z.shape[1]), dtype=np.float32)
    loop = np.float32(1.0 if self_loops else 0.0)
    for r in range(n):
        degree = hop.degree[r] + loop
        if degree == 0:
            continue
        here, row = np.float32(1.0) / np.sqrt(degree), out[r]
        for k in range(hop.indptr[r], hop.indptr[r + 1]):
            j = hop.indices[k]
            factor, other = here / np.sqrt(hop.degree[j] + loop), z[j]
            for u in range(z.shape[1]):
                row[u] += factor * other[u]
        if self_loops:
            for u in range(z.shape[1]):
                row[u] += here * here * z[r, u]
    return out


@compiled
def _sum(hop: Hop, z: Matrix) -> Matrix:
    """Sum over neighbours."""
    n = len(hop.indptr) - 1
    out = np.zeros((n, z.shape[1]), dtype=np.float32)
    for r in range(n):
        row = out[r]
        for k in range(hop.indptr[r], hop.indptr[r + 1]):
            other = z[hop.indices[k]]
            for u in range(z.shape[1]):
                row[u] += other[u]
    return out


@compiled
def mean(hop: Hop, z: Matrix) -> Matrix:
    """Mean over neighbours; zero where there are none."""
    out = _sum(hop, z)
    for r in range(len(out)):
        share = np.float32(1.0) / np.float32(max(1, hop.indptr[r + 1] - hop.indptr[r]))
        for u in range(z.shape[1]):
            out[r, u] *= share
    return out


@compiled
def with_own(hop: Hop, averaged: bool, z: Matrix) -> Matrix:
    """The node itself plus the sum over its neighbours, or their mean if ``averaged``."""
    out = mean(hop, z) if averaged else _sum(hop, z)
    out += z[: len(out)]
    return out


@compiled
def attend(
    hop: Hop, self_loops: bool, heads: int, att_source: Matrix, att_target: Matrix, z: Matrix
) -> Matrix:
    """GAT's attention-weighted sum over neighbours, heads side by side."""
    n, width = len(hop.indptr) - 1, z.shape[1] // heads
    source, target = _scores(z, att_source, heads), _scores(z[:n], att_target, heads)
    most = 0
    for r in range(n):
        most = max(most, hop.indptr[r + 1] - hop.indptr[r] + 1)
    shares = np.zeros(most * heads + LANES, dtype=np.float32)
    best, total = np.empty(heads, dtype=np.float32), np.empty(heads, dtype=np.float32)
    out = np.zeros((n, z.shape[1]), dtype=np.float32)
    for r in range(n):
        start, end = hop.indptr[r], hop.indptr[r + 1]
        count = end - start + (1 if self_loops else 0)
        best[:] = -np.inf
        for e in range(count):
            j = hop.indices[start + e] if start + e < end else r
            for head in range(heads):
                score = source[j, head] + target[r, head]
                score = score if score > 0 else np.float32(LEAK) * score
                shares[e * heads + head] = score
                best[head] = max(best[head], score)
        for e in range(count):
            for head in range(heads):
                shares[e * heads + head] -= best[head]
        for t in range(0, count * heads, LANES):
            store(shares, t, exponential(load(shares, t, ONE)))
        row = out[r]
        total[:] = 0.0
        for e in range(count):
            j = hop.indices[start + e] if start + e < end else r
            other = z[j]
            for head in range(heads):
                share = shares[e * heads + head]
                total[head] += share
                for u in range(head * width, (head + 1) * width):
                    row[u] += share * other[u]
        if count:
            for head in range(heads):
                for u in range(head * width, (head + 1) * width):
                    row[u] /= total[head]
    return out


@compiled
def _scores(z: Matrix, weights: Matrix, heads: int) -> Matrix:
    """Each row's product with the weights, head by head."""
    width = z.shape[1] // heads
    out = np.empty((len(z), heads), dtype=np.float32)
    for r in range(len(z)):
        for head in range(heads):
            total = np.float32(0.0)
            for u in range(head * width, (head + 1) * width):
                total += z[r, u] * weights[u]
            out[r, head] = total
    return out


@compiled
def activate(z: Matrix, code: int) -> Matrix:
    """Apply an activation of `ACTIVATION_CODES`, in place."""
    if code != NO_ACTIVATION:
        for r in range(z.shape[0]):
            for u in range(z.shape[1]):
                if z[r, u] < 0:
                    z[r, u] = np.float32(0.0) if code == RELU else np.expm1(z[r, u])
    return z


@compiled
def softmax(logits: Matrix) -> Matrix:
    """Probabilities of each row."""
    out = np.empty_like(logits)
    for r in range(logits.shape[0]):
        best = logits[r].max()
        total = np.float32(0.0)
        for c in range(logits.shape[1]):
            out[r, c] = np.exp(logits[r, c] - best)
            total += out[r, c]
        for c in range(logits.shape[1]):
            out[r, c] /= total
    return out


@compiled
def ring(
    indptr: NDArray[np.int64], indices: NDArray[np.int32], rows: NDArray[np.int64], edges: bool
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int32]]:
    """The rows and then their other neighbours, and the CSR between: empty unless ``edges``."""
    pointers = np.zeros(len(rows) + 1, dtype=np.int64)
    place = np.full(len(indptr) - 1, -1, dtype=np.int32)
    for r in range(len(rows)):
        place[rows[r]] = r
        pointers[r + 1] = pointers[r] + (indptr[rows[r] + 1] - indptr[rows[r]] if edges else 0)
    places = np.empty(pointers[-1], dtype=np.int32)
    wider = np.empty(len(rows) + len(places), dtype=np.int64)
    wider[: len(rows)] = rows
    count = len(rows)
    for r in range(len(rows)):
        for e in range(pointers[r], pointers[r + 1]):
            other = indices[indptr[rows[r]] + e - pointers[r]]
            if place[other] < 0:
                place[other] = count
                wider[count] = other
                count += 1
            places[e] = place[other]
    return wider[:count].copy(), pointers, places
