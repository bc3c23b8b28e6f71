"""GraphSAGE: ``M H L2 + H R2 + b2`` with ``H = drop(act(M X L1 + X R1 + b1))``, M the mean."""

from __future__ import annotations

from typing import Any

import numpy as np

from grapheraser.engines.cpu.dense import (
    Array,
    Parameters,
    activate,
    add_bias,
    back_through,
    bias_gradient,
    matmul,
)
from grapheraser.engines.cpu.epoch import Shard, begin, entries_of, finish, loss_gradient, matrix
from grapheraser.engines.cpu.noise import row_keys
from grapheraser.engines.cpu.sparse import InputWeights
from grapheraser.engines.shared.adjacency import Adjacency
from grapheraser.engines.shared.layout import HIDDEN_1, TensorLayout
from grapheraser.kernels.compiled import compiled
from grapheraser.kernels.vectors import LANES, ONE, Tile, fma, load, store, tile_for, zeros

ROLES = ("bias1", "weight2", "bias2")


def options(layout: TensorLayout) -> tuple[Any, ...]:
    """Return what `train` takes besides data and weights."""
    return layout.classes.width, tile_for(layout.hidden.width)


@compiled
def combine(edges: Adjacency, z: Array, out: Array, tile: Tile) -> None:
    """Add the mean of the neighbours' left halves of ``z`` to the right half of the node's own.

    The own part comes first, then the neighbours in ascending order: another order, other bits.
    """
    (n, width), indptr, indices, weights = out.shape, edges.indptr, edges.indices, edges.forward
    for r in range(n):
        for t in range(0, width, LANES * len(tile)):
            total = load(z, r * 2 * width + width + t, tile)
            for e in range(indptr[r], indptr[r + 1]):
                total = fma(load(z, indices[e] * 2 * width + t, tile), weights[e], total)
            store(out, r * width + t, total)


@compiled
def spread(edges: Adjacency, g: Array, out: Array, tile: Tile) -> None:
    """Go back through `combine`: from ``g`` by its result to ``out`` by both halves of ``z``."""
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
    """Train L1 beside R1 in ``weights``, and b1, L2 beside R2, b2 in ``parameters``.

    ``offsets`` say where each of these begins; ``classes`` is the padded width of the logits.
    """
    n, hidden = len(shard.labels), weights.values.shape[1] // 2
    bias_1, weight_2, bias_2 = offsets
    edges, theta, gradient = shard.edges, parameters.values, parameters.gradient
    z, g2 = matrix(n, 2 * hidden, theta), matrix(n, 2 * hidden, theta)
    h, slope, g = matrix(n, hidden, theta), matrix(n, hidden, theta), matrix(n, hidden, theta)
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

        loss_gradient(shard, logits)
        bias_gradient(logits, gradient, bias_2, ONE)
        spread(edges, logits, p, ONE)
        depth = classes + shard.num_classes
        back_through(h, p, theta, gradient, weight_2, depth, weight_2t, g, slope, ONE, tile)
        bias_gradient(g, gradient, bias_1, tile)
        spread(edges, g, g2, tile)
        finish(shard, weights, parameters, epoch, entries, g2, tile)
