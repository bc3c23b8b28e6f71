"""The forward pass of a built-in model with any number of layers, in eval mode.

`forward` has the usual numbers of layers in one compiled function each. This composes the same
compiled pieces layer by layer, for all others. A layer is computed for the nodes that the next one
looks at, so that a node's posterior is a function of its own neighbourhood, bit for bit.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from grapheraser.models import ModelSpec
from grapheraser.models.constants import RELU
from grapheraser.training.inference.hops import attend, convolve, mean, with_own
from grapheraser.training.inference.rows import (
    Field,
    Hop,
    Matrix,
    activate,
    add,
    matmul,
    normalise,
    project,
    softmax,
)
from grapheraser.training.inference.weights import WeightsByRole


def deep(spec: ModelSpec, w: WeightsByRole, field: Field) -> Matrix:
    """Posteriors ``[m, num_classes]`` of a model with any number of layers."""
    ends = _ring_ends(field, spec.hops)
    layer = {"gcn": _gcn, "sage": _sage, "gat": _gat, "gin": _gin, "mlp": _mlp}[spec.kind]
    x = _Input(w, field, ends[min(spec.depth, spec.hops)])
    for number in range(1, spec.depth + 1):
        # Around the wanted nodes, so many rings are still looked at by the layers that follow.
        left = spec.depth - number if spec.hops else 0
        hop = field.outer._replace(indptr=field.outer.indptr[: ends[left] + 1])
        h = layer(spec, w, hop, number, x)
        if number < spec.depth:
            x = _Input(w, field, len(h), activate(h, w.activation))
    if spec.kind == "gin" and spec.linear_head:
        head, bias = w.of("head", "head_bias")
        h = add(matmul(activate(_normalised(w, spec.depth, h), w.activation), head), bias)
    return softmax(h)


class _Input:
    """What a layer takes: the features for the first, what the one before gave for the others."""

    def __init__(self, w: WeightsByRole, field: Field, count: int, h: Matrix | None = None) -> None:
        self._w, self._field, self._count, self._h = w, field, count, h

    def times(self, number: int, which: int = 0, count: int | None = None) -> Matrix:
        """The product with one of a layer's weights, of its first rows or of all."""
        rows = self._count if count is None else count
        if self._h is None:
            return project(self._field, rows, self._w.columns, self._w.inputs[which], self._w.tile)
        return matmul(self._h[:rows], self._w.of(f"weight{number}")[which])


def _gcn(spec: ModelSpec, w: WeightsByRole, hop: Hop, number: int, x: _Input) -> Matrix:
    return add(convolve(hop, spec.self_loops, x.times(number)), *w.of(f"bias{number}"))


def _sage(spec: ModelSpec, w: WeightsByRole, hop: Hop, number: int, x: _Input) -> Matrix:
    h = mean(hop, x.times(number))
    h += x.times(number, 1, len(h))
    return add(h, *w.of(f"bias{number}"))


def _gat(spec: ModelSpec, w: WeightsByRole, hop: Hop, number: int, x: _Input) -> Matrix:
    source, target, bias = w.of(f"att_src{number}", f"att_dst{number}", f"bias{number}")
    heads = spec.heads if number < spec.depth else 1
    h = add(attend(hop, spec.self_loops, heads, source, target, x.times(number)), bias)
    if spec.skip:
        h += x.times(number, 1, len(h))
    return h


def _gin(spec: ModelSpec, w: WeightsByRole, hop: Hop, number: int, x: _Input) -> Matrix:
    first, second = 2 * number - 1, 2 * number
    bias, inner, inner_bias = w.of(f"bias{first}", f"weight{second}", f"bias{second}")
    h = activate(add(with_own(hop, spec.mean, x.times(first)), bias), RELU)
    h = add(matmul(h, inner), inner_bias)
    return _normalised(w, number, h) if number < spec.depth else h


def _mlp(spec: ModelSpec, w: WeightsByRole, hop: Hop, number: int, x: _Input) -> Matrix:
    return add(x.times(number), *w.of(f"bias{number}"))


def _normalised(w: WeightsByRole, number: int, h: Matrix) -> Matrix:
    return normalise(h, w.of(*(f"{part}{number}" for part in ("scale", "shift", "mean", "var"))))


def _ring_ends(field: Field, hops: int) -> list[int]:
    """How many of the nodes are at most 0, 1, ... hops away; they are numbered in rings."""
    indptr, indices = field.outer.indptr, field.outer.indices
    ends = [len(field.inner.indptr) - 1 if hops else len(field.rows)]
    for _ in range(hops):
        if ends[-1] >= len(indptr):
            raise ValueError(f"fewer than {hops} rings were gathered")
        seen: NDArray[np.int32] = indices[: indptr[ends[-1]]]
        ends.append(max(ends[-1], int(seen.max()) + 1 if len(seen) else 0))
    return ends
