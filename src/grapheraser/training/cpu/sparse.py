"""Sparse kernels: along the edges of the shard, and through its features."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from grapheraser.training.cpu.adam import Schedule, adam_tile, rates_of
from grapheraser.training.cpu.dense import Array
from grapheraser.training.cpu.noise import INPUT, Noise, is_kept, row_keys, scale_of
from grapheraser.training.cpu.simd import LANES, Tile, fma, load, store, zeros


class Edges(NamedTuple):
    """Symmetric CSR adjacency with weights, self-loops among the entries where there are any.

    Attributes:
        indptr, indices: rows are targets, columns sources, sorted.
        forward: weight of each entry.
        backward: weight of the entry of the opposite direction.
        reverse: place of the entry of the opposite direction.
    """

    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]
    forward: Array
    backward: Array
    reverse: NDArray[np.int32]


class Features(NamedTuple):
    """Features by column (CSC) over the columns that the shard uses.

    Attributes:
        indptr, rows, values: the usual three.
        columns: int32, number of each column among all features.
    """

    indptr: NDArray[np.int64]
    rows: NDArray[np.int32]
    values: Array
    columns: NDArray[np.int32]


class InputWeights(NamedTuple):
    """Weights ``[columns, width]`` of the first layer, and Adam's two moments of them."""

    values: Array
    first: Array
    second: Array


@njit(cache=True, nogil=True)
def propagate(
    indptr: NDArray[np.int64],
    indices: NDArray[np.int32],
    weights: Array,
    z: Array,
    out: Array,
    tile: Tile,
) -> None:
    """``out[r] = sum_e weights[e] z[indices[e]]`` over the entries of row r."""
    n, width = out.shape
    for r in range(n):
        for t in range(0, width, LANES * len(tile)):
            total = zeros(z, tile)
            for e in range(indptr[r], indptr[r + 1]):
                total = fma(load(z, indices[e] * width + t, tile), weights[e], total)
            store(out, r * width + t, total)


@njit(cache=True, nogil=True)
def project(x: Features, values: Array, weight: Array, z: Array, tile: Tile) -> None:
    """``z = X W``; ``values`` stands in for X's own (they may have been through dropout)."""
    width, indptr, rows = z.shape[1], x.indptr, x.rows
    z[:] = 0
    for c in range(len(indptr) - 1):
        for t in range(0, width, LANES * len(tile)):
            w = load(weight, c * width + t, tile)
            for k in range(indptr[c], indptr[c + 1]):
                at = rows[k] * width + t
                store(z, at, fma(w, values[k], load(z, at, tile)))


@njit(cache=True, nogil=True)
def input_step(
    x: Features,
    weights: InputWeights,
    schedule: Schedule,
    epoch: int,
    g: Array,
    values: Array,
    next_values: Array,
    z: Array,
    tile: Tile,
) -> None:
    """End one epoch and begin the next: gradient, Adam, ``z = X W`` with the new weights.

    All three in one pass over the columns, since most of the time goes into the memory traffic of
    the weights and their moments: a column's gradient and new weights never leave the registers.

    Args:
        x: the features.
        weights: what is trained.
        schedule: Adam's rates.
        epoch: which one ends.
        g: ``[n, width]``, gradient by X W.
        values: X's entries in this epoch.
        next_values: X's entries in the next one.
        z: ``[n, width]``, overwritten with the next epoch's X W.
        tile: as wide as ``width`` allows.
    """
    # Inside of loops only plain arrays: each access to a tuple's member counts a reference.
    width, indptr, rows = z.shape[1], x.indptr, x.rows
    weight, first, second = weights
    rates = rates_of(schedule, epoch)
    z[:] = 0
    for c in range(len(indptr) - 1):
        start, end = indptr[c], indptr[c + 1]
        for t in range(0, width, LANES * len(tile)):
            gradient = zeros(g, tile)
            for k in range(start, end):
                gradient = fma(load(g, rows[k] * width + t, tile), values[k], gradient)
            w = adam_tile(weight, first, second, c * width + t, gradient, rates, tile)
            for k in range(start, end):
                at = rows[k] * width + t
                store(z, at, fma(w, next_values[k], load(z, at, tile)))


@njit(cache=True, nogil=True)
def drop_features(
    x: Features, noise: Noise, epoch: int, keys: NDArray[np.uint32], out: Array
) -> None:
    """X's entries after the input dropout of one epoch."""
    row_keys(noise, epoch, INPUT, keys)
    limit, scale = noise.features, scale_of(noise.features)
    indptr, rows, values, columns = x
    for c in range(len(indptr) - 1):
        for k in range(indptr[c], indptr[c + 1]):
            kept = is_kept(keys[rows[k]], columns[c], limit)
            out[k] = values[k] * scale if kept else 0.0
