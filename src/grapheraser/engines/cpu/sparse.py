"""Sparse kernels: along the edges of the shard, and through its features.

Whoever writes a row or a column also sums it, over its stored entries in ascending order, so there
is no race and no order that the number of threads could change. Entries in another order would
change the bits.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from grapheraser.arrays import Ints, Ints32
from grapheraser.engines.cpu.dense import Array, Rates, adam_tile
from grapheraser.engines.cpu.noise import Noise, is_kept, row_keys, scale_of
from grapheraser.engines.shared.layout import INPUT
from grapheraser.kernels.compiled import compiled
from grapheraser.kernels.vectors import LANES, Tile, fma, load, store, zeros

_ONE, _TWO = np.uint64(1), np.uint64(2)


class SparseFeatures(NamedTuple):
    """Features over the columns that the shard uses, by row (CSR) and by column (CSC)."""

    # Pointers are unsigned, or numba would look for indices that count from the end.
    # row_indptr, row_values: CSR; columns ascend within a row.
    row_indptr: NDArray[np.uint64]
    row_places: NDArray[np.integer]  # where the weights of an entry's column begin
    row_values: Array
    row_columns: Ints32  # int32, an entry's column among all features
    # column_indptr, column_values: CSC; rows ascend within a column.
    column_indptr: NDArray[np.uint64]
    # Where an entry's row begins in a matrix as wide as the weights.
    column_places: NDArray[np.integer]
    column_values: Array
    column_rows: Ints32  # int32, an entry's row
    columns: Ints32  # int32, each column among all features


class InputWeights(NamedTuple):
    """Weights ``[columns, width]`` of the first layer, and Adam's two moments of them."""

    values: Array
    first: Array
    second: Array


@compiled
def propagate(
    indptr: Ints, indices: Ints32, weights: Array, z: Array, out: Array, tile: Tile
) -> None:
    """``out[r] = sum_e weights[e] z[indices[e]]`` over the entries of row r.

    One that is twice as wide as the other holds pairs: what is summed, and beside it what a node
    has of its own. That comes first in a sum of pairs, then the neighbours in ascending order:
    another order, other bits. The gradient by pairs has the row of ``z`` there.
    """
    (n, stride), from_ = out.shape, z.shape[1]
    width = min(stride, from_)
    for r in range(n):
        for t in range(0, width, LANES * len(tile)):
            total = load(z, r * from_ + width + t, tile) if from_ > width else zeros(z, tile)
            for e in range(indptr[r], indptr[r + 1]):
                total = fma(load(z, indices[e] * from_ + t, tile), weights[e], total)
            store(out, r * stride + t, total)
            if stride > width:
                store(out, r * stride + width + t, load(z, r * from_ + t, tile))


@compiled
def project(
    indptr: NDArray[np.uint64],
    places: NDArray[np.integer],
    values: Array,
    weight: Array,
    z: Array,
    tile: Tile,
) -> None:
    """``z = X W``, from X by row."""
    n, width = z.shape
    for r in range(n):
        start, end = indptr[r], indptr[r + 1]
        for t in range(0, width, LANES * len(tile)):
            # Two sums, of the even and of the odd entries, hide half of the latency. They are part
            # of the definition: a single sum, or four, would round otherwise.
            even, odd = zeros(weight, tile), zeros(weight, tile)
            k = start
            while k + _TWO <= end:
                even = fma(load(weight, places[k] + t, tile), values[k], even)
                odd = fma(load(weight, places[k + _ONE] + t, tile), values[k + _ONE], odd)
                k += _TWO
            if k < end:
                even = fma(load(weight, places[k] + t, tile), values[k], even)
            store(z, r * width + t, even + odd)


@compiled
def input_step(
    indptr: NDArray[np.uint64],
    places: NDArray[np.integer],
    values: Array,
    weights: InputWeights,
    rates: Rates,
    g: Array,
    tile: Tile,
) -> None:
    """Adam on W, from X by column and the gradient ``g`` by X W.

    A column's gradient is a sum over its entries' rows of ``g``; it goes right into the update and
    never to memory.
    """
    # Inside of loops only plain arrays: each access to a tuple's member counts a reference.
    weight, first, second = weights
    num_columns, width = weight.shape
    for c in range(num_columns):
        start, end = indptr[c], indptr[c + 1]
        for t in range(0, width, LANES * len(tile)):
            # As in `project`; a function for both would count references to its arrays, and took
            # up to twice as long.
            even, odd = zeros(g, tile), zeros(g, tile)
            k = start
            while k + _TWO <= end:
                even = fma(load(g, places[k] + t, tile), values[k], even)
                odd = fma(load(g, places[k + _ONE] + t, tile), values[k + _ONE], odd)
                k += _TWO
            if k < end:
                even = fma(load(g, places[k] + t, tile), values[k], even)
            adam_tile(weight, first, second, c * width + t, even + odd, rates, tile)


@compiled
def drop_features(
    x: SparseFeatures,
    noise: Noise,
    epoch: int,
    keys: NDArray[np.uint32],
    by_row: Array,
    by_column: Array,
) -> None:
    """Write X's entries after the input dropout of one epoch, in both orders.

    A mask is a hash of node and feature, so an entry is dropped in both orders or in neither.
    """
    row_keys(noise, epoch, INPUT, keys)
    limit, scale = noise.features, scale_of(noise.features)
    indptr, row_values, row_columns = x.row_indptr, x.row_values, x.row_columns
    for r in range(len(indptr) - 1):
        for k in range(indptr[r], indptr[r + 1]):
            kept = is_kept(keys[r], row_columns[k], limit)
            by_row[k] = row_values[k] * scale if kept else 0.0
    indptr, column_values, rows = x.column_indptr, x.column_values, x.column_rows
    columns = x.columns
    for c in range(len(indptr) - 1):
        for k in range(indptr[c], indptr[c + 1]):
            kept = is_kept(keys[rows[k]], columns[c], limit)
            by_column[k] = column_values[k] * scale if kept else 0.0
