"""Pieces of the forward pass that work on one row at a time, compiled.

A row's sums run over its own columns or units in ascending order, and nothing is summed across
rows. So the bits of a row don't depend on the rows beside it, on their number or on threads.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from grapheraser.kernels.compiled import compiled
from grapheraser.kernels.elementary import single_exponential
from grapheraser.kernels.vectors import (
    LANES,
    ONE,
    Tile,
    exponential,
    fma,
    load,
    prefetch,
    store,
    where_positive,
    zeros,
)
from grapheraser.models.constants import NO_ACTIVATION, NORM_EPS, RELU

Matrix = NDArray[np.float32]

# How many rows ahead features are prefetched, and how many cache lines of each.
_AHEAD, _LINES = 6, 6


class Hop(NamedTuple):
    """Edges from the nodes of one ring of the neighbourhood to those of the next, wider one.

    The wider ring begins with the nodes of the narrower: row r's own node is at place r.
    """

    # indptr, indices: CSR; columns are places in the wider ring.
    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]
    # Float32, neighbours that count of the wider ring's nodes, or their weights' sum.
    degree: Matrix
    weights: Matrix  # float32, of each entry; empty where edges have none


class Field(NamedTuple):
    """The rows that the wanted posteriors depend on."""

    # outer, inner: from the outermost ring to the one before, and from one hop away to the wanted
    # nodes.
    outer: Hop
    inner: Hop
    rows: NDArray[np.int32]  # int32, of the features, for the outermost ring
    # x_indptr, x_indices, x_data: CSR features of all that was gathered.
    x_indptr: NDArray[np.int64]
    x_indices: NDArray[np.int32]
    x_data: Matrix
    place: NDArray[np.int32]  # int32 ``[num_features]``, all 0: room for `project`


@compiled
def normalise(z: Matrix, norm: tuple[Matrix, ...]) -> Matrix:
    """Apply batch norm with running statistics, in place; nothing where the model has no norm."""
    weight, bias, mean, var = norm
    for u in range(len(weight)):
        scale = weight[u] / np.sqrt(var[u] + np.float32(NORM_EPS))
        for r in range(len(z)):
            z[r, u] = (z[r, u] - mean[u]) * scale + bias[u]
    return z


@compiled
def normalise_rows(z: Matrix, weight: Matrix, bias: Matrix) -> Matrix:
    """Apply layer norm, in place; sums run over the units in order."""
    width = np.float32(z.shape[1])
    for r in range(len(z)):
        mean, var = np.float32(0.0), np.float32(0.0)
        for u in range(z.shape[1]):
            mean += z[r, u] / width
        for u in range(z.shape[1]):
            var += (z[r, u] - mean) ** 2 / width
        scale = np.float32(1.0) / np.sqrt(var + np.float32(NORM_EPS))
        for u in range(z.shape[1]):
            z[r, u] = (z[r, u] - mean) * scale * weight[u] + bias[u]
    return z


@compiled
def add(z: Matrix, bias: Matrix) -> Matrix:
    """Add a row to all rows, in place; an empty one adds nothing."""
    for r in range(len(z)):
        for u in range(len(bias)):
            z[r, u] += bias[u]
    return z


class InputLayer(NamedTuple):
    """The first layer's weights."""

    columns: NDArray[np.int32]  # int32, the feature columns that have weights
    # Matrices ``[1 + columns, width]``, a feature's weights side by side, below a row of zeros.
    weights: tuple[Matrix, ...]
    tile: Tile  # of the rows


@compiled
def project(field: Field, count: int, layer: InputLayer, which: int) -> Matrix:
    """Return the first rows of X W ``[count, width]``, W being one of a layer's matrices.

    W has a row of zeros, for the columns that the shard has no weights of, and then one for each
    of its columns: without a branch for each feature the processor is several times as fast. Such
    a feature adds an exact zero, so a shard's posteriors don't depend on what it never saw.

    A row is one sum in the order of its columns, by fused multiply-adds where a tile is whole. The
    units behind the last whole tile round the product first: which units these are follows from
    the width alone, so a row has the same bits whatever is computed with it.
    """
    columns, weight, tile = layer.columns, layer.weights[which], layer.tile
    width, place = weight.shape[1], field.place
    x_indptr, x_indices, x_data = field.x_indptr, field.x_indices, field.x_data
    for i in range(len(columns)):
        place[columns[i]] = i + 1
    out = np.zeros((count, width), dtype=np.float32)
    whole = width - width % (LANES * len(tile))
    for r in range(count):
        _prefetch_features(field, field.rows[min(r + _AHEAD, count - 1)])
        # Without a sign, an index need not be looked at before it is used.
        row = field.rows[r]
        start, end = np.uint64(x_indptr[row]), np.uint64(x_indptr[row + 1])
        for t in range(0, whole, LANES * len(tile)):
            total = zeros(out, tile)
            for k in range(start, end):
                at = np.int64(place[np.uint64(x_indices[k])])
                total = fma(load(weight, at * width + t, tile), x_data[k], total)
            store(out, r * width + t, total)
        if whole < width:
            for k in range(start, end):
                at = np.int64(place[np.uint64(x_indices[k])])
                for u in range(whole, width):
                    out[r, u] += x_data[k] * weight[at, u]
    for i in range(len(columns)):
        place[columns[i]] = 0
    return out


@compiled(inline=True)
def _prefetch_features(field: Field, row: int) -> None:
    """Prefetch a row that is soon to be read: rows lie anywhere in memory."""
    start, end = field.x_indptr[row], field.x_indptr[row + 1]
    for k in range(start, min(end, start + _LINES * LANES), LANES):
        prefetch(field.x_indices, k)
        prefetch(field.x_data, k)


@compiled
def matmul(h: Matrix, weight: Matrix) -> Matrix:
    """Return ``h @ weight``, each row by itself: a BLAS may sum otherwise when there are more rows.

    Columns are padded to whole vectors, so that every unit is one sum of fused multiply-adds over
    ascending k, whatever the width.
    """
    depth, width = weight.shape
    lanes = width + -width % LANES
    wide = np.zeros((depth, lanes), dtype=np.float32)
    for k in range(depth):
        for u in range(width):
            wide[k, u] = weight[k, u]
    rows = len(h)
    out, line = np.empty((rows, width), dtype=np.float32), np.empty((4, lanes), dtype=np.float32)
    # Four rows at a time, since each row's sum waits for its last term; the last rows repeat.
    for r in range(0, rows, 4):
        a, b, c, d = r, min(r + 1, rows - 1), min(r + 2, rows - 1), min(r + 3, rows - 1)
        for t in range(0, lanes, LANES):
            p, q, s, v = zeros(line, ONE), zeros(line, ONE), zeros(line, ONE), zeros(line, ONE)
            for k in range(depth):
                factor = load(wide, k * lanes + t, ONE)
                p, q = fma(factor, h[a, k], p), fma(factor, h[b, k], q)
                s, v = fma(factor, h[c, k], s), fma(factor, h[d, k], v)
            store(line, t, p)
            store(line, lanes + t, q)
            store(line, 2 * lanes + t, s)
            store(line, 3 * lanes + t, v)
        for i in range(min(4, rows - r)):
            for u in range(width):
                out[r + i, u] = line[i, u]
    return out


@compiled
def activate(z: Matrix, code: int) -> Matrix:
    """Apply an activation of `ACTIVATION_CODES`, in place."""
    if code == RELU:
        for r in range(z.shape[0]):
            for u in range(z.shape[1]):
                z[r, u] = np.float32(0.0) if z[r, u] < 0 else z[r, u]
    elif code != NO_ACTIVATION:
        _elu(z)
    return z


@compiled
def _elu(z: Matrix) -> None:
    """Apply ELU to whole vectors, the last entries beside zeros.

    With a scalar exponential for those, an entry's bits would depend on its place in the matrix.
    """
    whole, rest = z.size - z.size % LANES, np.zeros(LANES, dtype=np.float32)
    for t in range(0, whole, LANES):
        value = load(z, t, ONE)
        store(z, t, where_positive(value, value, exponential(value) - 1.0))
    flat = z.reshape(-1)
    for i in range(whole, z.size):
        rest[i - whole] = flat[i]
    value = load(rest, 0, ONE)
    store(rest, 0, where_positive(value, value, exponential(value) - 1.0))
    for i in range(whole, z.size):
        flat[i] = rest[i - whole]


@compiled
def softmax(logits: Matrix) -> Matrix:
    """Return the probabilities of each row; the total runs over the classes in order."""
    out = np.empty_like(logits)
    for r in range(logits.shape[0]):
        best = logits[r].max()
        total = np.float32(0.0)
        for c in range(logits.shape[1]):
            out[r, c] = single_exponential(logits[r, c] - best)
            total += out[r, c]
        for c in range(logits.shape[1]):
            out[r, c] /= total
    return out
