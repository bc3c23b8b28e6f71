"""GraphSAGE: ``M H L2 + H R2 + b2`` with ``H = drop(act(M X L1 + X R1 + b1))``, M the mean."""

from __future__ import annotations

from typing import Any

import numpy as np

from grapheraser.kernels.compiled import compiled
from grapheraser.kernels.vectors import LANES, ONE, Tile, fma, load, store, tile_for, zeros
from grapheraser.training.cpu.adam import Parameters
from grapheraser.training.cpu.dense import (
    Array,
    activate,
    add_bias,
    bias_gradient,
    loss_gradient,
    matmul,
    times,
    transpose,
    weight_gradient,
)
from grapheraser.training.cpu.epoch import Shard, begin, entries_of, finish, matrix
from grapheraser.training.cpu.noise import row_keys
from grapheraser.training.cpu.sparse import InputWeights
from grapheraser.training.layout.adjacency import Adjacency
from grapheraser.training.layout.dropout import HIDDEN_1
from grapheraser.training.layout.tensors import TensorLayout

ROLES = ("bias1", "weight2", "bias2")


def options(layout: TensorLayout) -> tuple[Any, ...]:
    """What `train` takes besides data and weights."""
    return layout.classes.width, tile_for(layout.hidden.width)


@compiled
def combine(edges: Adjacency, z: Array, out: Array, tile: Tile) -> None:
    """Mean over neighbours of the left half of ``z``, plus the right half of the node's own."""
    (n, width), indptr, indices, weights = out.shape, edges.indptr, edges.indices, edges.forward
    for r in range(n):
        for t in range(0, width, LANES * len(tile)):
            total = load(z, r * 2 * width + width + t, tile)
            for e in range(indptr[r], indptr[r + 1]):
                total = fma(load(z, indices[e] * 2 * width + t, tile), weights[e], total)
            store(out, r * width + t, total)


@compiled
def spread(edges: Adjacency, g: Array, out: Array, tile: Tile) -> None:
    """Gradient of `combine`: from ``g`` by its result to ``out`` by both halves of ``z``."""
    (n, width), indptr, indices, weights = g.shape, edges.indptr, edges.indices, edges.backward
    for r in range(n):
        for t in range(0, width, LANES * len(tile)):
            total = zeros(g, tile)
            for e in range(indptr[r], indptr[r + 1]):
                total = fma(load(g, indices[e] * width + t, tile), weights[e], total)
            store(out, r * 2 * width + t, total)
            store(out, r * 2 * width + width + t, load(g, r * width + t, tile))


@compiled
def train(
    shard: Shard,
    weights: InputWeights,
    parameters: Parameters,
    offsets: tuple[int, ...],
    classes: int,
    tile: Tile,
) -> None:
    """Train in place.

    Args:
        shard: the data.
        weights: L1 and R1, side by side.
        parameters: b1, L2 and R2 side by side, b2.
        offsets: where each of these begins.
        classes: padded width of the logits.
        tile: of the hidden units.
    """
    n, hidden = len(shard.labels), weights.values.shape[1] // 2
    bias_1, weight_2, bias_2 = offsets
    edges, theta, gradient = shard.edges, parameters.values, parameters.gradient
    z, g2 = matrix(n, 2 * hidden, theta), matrix(n, 2 * hidden, theta)
    h, slope, g = (
        matrix(n, hidden, theta),
        matrix(n, hidden, theta),
        matrix(n, hidden, theta),
    )
    p, logits = matrix(n, 2 * classes, theta), matrix(n, classes, theta)
    weight_2t = matrix(2 * classes, hidden, theta)
    keys = np.empty(n, dtype=np.uint32)
    entries = entries_of(shard)

    for epoch in range(len(shard.schedule.step)):
        begin(shard, weights, epoch, entries, keys, z, tile)
        row_keys(shard.noise, epoch, HIDDEN_1, keys)
        combine(edges, z, h, tile)
        add_bias(h, theta, bias_1, tile)
        activate(h, shard.activation, keys, shard.noise.hidden, h, slope, tile)
        matmul(h, hidden, theta, weight_2, p, ONE)
        combine(edges, p, logits, ONE)
        add_bias(logits, theta, bias_2, ONE)

        loss_gradient(logits, shard.labels, shard.num_classes, logits)
        bias_gradient(logits, gradient, bias_2, ONE)
        spread(edges, logits, p, ONE)
        weight_gradient(h, p, gradient, weight_2, ONE)
        transpose(theta, weight_2, weight_2t)
        matmul(p, classes + shard.num_classes, weight_2t.reshape(-1), 0, g, tile)
        times(g, slope, tile)
        bias_gradient(g, gradient, bias_1, tile)
        spread(edges, g, g2, tile)
        finish(shard, weights, parameters, epoch, entries, g2, tile)
