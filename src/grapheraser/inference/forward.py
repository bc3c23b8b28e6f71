"""The forward pass of the built-in models in eval mode: posteriors ``[m, num_classes]``.

With the usual number of layers a pass is one compiled function, `gcn` and its like: it takes the
first layer's weights as ``inputs`` and all other tensors as ``others``. With any other number
`deep` composes the same compiled pieces layer by layer, to the same bits; on a single node, where
calls from Python weigh most, it takes two to three times as long. A layer is computed for the nodes
that the next one looks at, so that a node's posterior is a function of its own neighbourhood, bit
for bit.
"""

from __future__ import annotations

from grapheraser.arrays import Ints32
from grapheraser.inference.hops import attend, convolve, mean, with_own
from grapheraser.inference.rows import (
    Field,
    Hop,
    InputLayer,
    Matrix,
    activate,
    add,
    matmul,
    normalise,
    normalise_rows,
    project,
    softmax,
)
from grapheraser.inference.weights import WeightsByRole
from grapheraser.kernels.compiled import compiled
from grapheraser.models import ModelSpec
from grapheraser.models.constants import RELU


def gcn(spec: ModelSpec, w: WeightsByRole, field: Field) -> Matrix:
    """Return the posteriors of GCN."""
    others = w.of("bias1", "weight2", "bias2")
    return _gcn(field, w.inputs, others, spec.self_loops, w.activation)


@compiled
def _gcn(
    field: Field, inputs: InputLayer, others: tuple[Matrix, ...], self_loops: bool, act: int
) -> Matrix:
    bias1, weight2, bias2 = others
    h = convolve(field.outer, self_loops, project(field, len(field.rows), inputs, 0))
    h = activate(add(h, bias1), act)
    z = convolve(field.inner, self_loops, matmul(h, weight2))
    return softmax(add(z, bias2))


def sage(spec: ModelSpec, w: WeightsByRole, field: Field) -> Matrix:
    """Return the posteriors of GraphSAGE."""
    del spec
    return _sage(field, w.inputs, w.of("bias1", "weight2", "bias2"), w.activation)


@compiled
def _sage(field: Field, inputs: InputLayer, others: tuple[Matrix, ...], act: int) -> Matrix:
    """Take the second layer's weights as a pair: for the neighbours' mean, and for the node."""
    bias1, left2, right2, bias2 = others
    h = mean(field.outer, project(field, len(field.rows), inputs, 0))
    h += project(field, len(h), inputs, 1)
    h = activate(add(h, bias1), act)
    z = mean(field.inner, matmul(h, left2))
    z += matmul(h[: len(z)], right2)
    return softmax(add(z, bias2))


def gat(spec: ModelSpec, w: WeightsByRole, field: Field) -> Matrix:
    """Return the posteriors of GAT."""
    first, second = ("att_src1", "att_dst1", "bias1"), ("att_src2", "att_dst2", "bias2")
    weight2, *skip2 = w.of("weight2")
    others = (*w.of(*first), weight2, *w.of(*second))
    return _gat(field, w.inputs, others, tuple(skip2), spec.heads, spec.self_loops, w.activation)


@compiled
def _gat(
    field: Field,
    inputs: InputLayer,
    others: tuple[Matrix, ...],
    skip2: tuple[Matrix, ...],
    heads: int,
    self_loops: bool,
    act: int,
) -> Matrix:
    """Add a node's own part in both layers where ``skip2`` is not empty."""
    source1, target1, bias1, weight2, source2, target2, bias2 = others
    z = project(field, len(field.rows), inputs, 0)
    h = add(attend(field.outer, self_loops, heads, source1, target1, z), bias1)
    if len(skip2) > 0:
        h += project(field, len(h), inputs, 1)
    h = activate(h, act)
    z = add(attend(field.inner, self_loops, 1, source2, target2, matmul(h, weight2)), bias2)
    if len(skip2) > 0:
        z += matmul(h[: len(z)], skip2[0])
    return softmax(z)


def gin(spec: ModelSpec, w: WeightsByRole, field: Field) -> Matrix:
    """Return the posteriors of GIN."""
    others = w.of("bias1", "weight2", "bias2", "weight3", "bias3", "weight4", "bias4")
    norms = (w.of("scale1", "shift1", "mean1", "var1"), w.of("scale2", "shift2", "mean2", "var2"))
    head = w.of("head", "head_bias") if spec.linear_head else ()
    return _gin(field, w.inputs, others, norms, head, spec.mean, w.activation)


@compiled
def _gin(
    field: Field,
    inputs: InputLayer,
    others: tuple[Matrix, ...],
    norms: tuple[tuple[Matrix, ...], ...],
    head: tuple[Matrix, ...],
    averaged: bool,
    act: int,
) -> Matrix:
    bias1, inner1, inner_bias1, weight2, bias2, inner2, inner_bias2 = others
    z = project(field, len(field.rows), inputs, 0)
    h = activate(add(with_own(field.outer, averaged, z), bias1), RELU)
    h = activate(normalise(add(matmul(h, inner1), inner_bias1), norms[0]), act)
    h = activate(add(with_own(field.inner, averaged, matmul(h, weight2)), bias2), RELU)
    h = add(matmul(h, inner2), inner_bias2)
    if len(head) == 0:
        return softmax(h)
    h = activate(normalise(h, norms[1]), act)
    return softmax(add(matmul(h, head[0]), head[1]))


def mlp(spec: ModelSpec, w: WeightsByRole, field: Field) -> Matrix:
    """Return the posteriors of the MLP."""
    del spec
    others = w.of("bias1", "weight2", "bias2", "weight3", "bias3")
    return _mlp(field, w.inputs, others, w.activation)


@compiled
def _mlp(field: Field, inputs: InputLayer, others: tuple[Matrix, ...], act: int) -> Matrix:
    bias1, weight2, bias2, weight3, bias3 = others
    h = activate(add(project(field, len(field.rows), inputs, 0), bias1), act)
    h = activate(add(matmul(h, weight2), bias2), act)
    return softmax(add(matmul(h, weight3), bias3))


def deep(spec: ModelSpec, w: WeightsByRole, field: Field) -> Matrix:
    """Return the posteriors ``[m, num_classes]`` of a model with any number of layers."""
    return softmax(scores(spec, w, field))


def scores(spec: ModelSpec, w: WeightsByRole, field: Field) -> Matrix:
    """Return the outputs ``[m, num_classes]`` of a model: log-odds of labels, or numbers."""
    ends = _ring_ends(field, spec.hops)
    layer = {
        "gcn": _gcn_layer,
        "sage": _sage_layer,
        "gat": _gat_layer,
        "gin": _gin_layer,
        "mlp": _mlp_layer,
    }[spec.kind]
    x = _Input(w, field, ends[min(spec.depth, spec.hops)])
    for number in range(1, spec.depth + 1):
        # Around the wanted nodes, so many rings are still looked at by the layers that follow.
        left = spec.depth - number if spec.hops else 0
        hop = field.outer._replace(indptr=field.outer.indptr[: ends[left] + 1])
        h = layer(spec, w, hop, number, x)
        if number < spec.depth:
            x = _Input(w, field, len(h), activate(_normalised(spec, w, number, h), w.activation))
    if spec.kind == "gin" and spec.linear_head:
        head, bias = w.of("head", "head_bias")
        h = add(matmul(activate(_normalised(spec, w, spec.depth, h), w.activation), head), bias)
    return h


class _Input:
    """The input of a layer: the features, or what the layer before gave."""

    def __init__(self, w: WeightsByRole, field: Field, count: int, h: Matrix | None = None) -> None:
        self._w, self._field, self._count, self._h = w, field, count, h

    def times(self, number: int, which: int = 0, count: int | None = None) -> Matrix:
        """Multiply its first rows, or all of them, with one of a layer's weights."""
        rows = self._count if count is None else count
        if self._h is None:
            return project(self._field, rows, self._w.inputs, which)
        return matmul(self._h[:rows], self._w.of(f"weight{number}")[which])


def _gcn_layer(spec: ModelSpec, w: WeightsByRole, hop: Hop, number: int, x: _Input) -> Matrix:
    h = add(convolve(hop, spec.self_loops, x.times(number)), *w.of(f"bias{number}"))
    if spec.skip:
        h += x.times(number, 1, len(h))
    return h


def _sage_layer(spec: ModelSpec, w: WeightsByRole, hop: Hop, number: int, x: _Input) -> Matrix:
    h = mean(hop, x.times(number))
    h += x.times(number, 1, len(h))
    return add(h, *w.of(f"bias{number}"))


def _gat_layer(spec: ModelSpec, w: WeightsByRole, hop: Hop, number: int, x: _Input) -> Matrix:
    source, target, bias = w.of(f"att_src{number}", f"att_dst{number}", f"bias{number}")
    heads = spec.heads if number < spec.depth else 1
    h = add(attend(hop, spec.self_loops, heads, source, target, x.times(number)), bias)
    if spec.skip:
        h += x.times(number, 1, len(h))
    return h


def _gin_layer(spec: ModelSpec, w: WeightsByRole, hop: Hop, number: int, x: _Input) -> Matrix:
    first, second = 2 * number - 1, 2 * number
    bias, inner, inner_bias = w.of(f"bias{first}", f"weight{second}", f"bias{second}")
    h = activate(add(with_own(hop, spec.mean, x.times(first)), bias), RELU)
    return add(matmul(h, inner), inner_bias)


def _mlp_layer(spec: ModelSpec, w: WeightsByRole, hop: Hop, number: int, x: _Input) -> Matrix:
    return add(x.times(number), *w.of(f"bias{number}"))


def _normalised(spec: ModelSpec, w: WeightsByRole, number: int, h: Matrix) -> Matrix:
    if spec.layer_norm:
        return normalise_rows(h, *w.of(f"scale{number}", f"shift{number}"))
    return normalise(h, w.of(*(f"{part}{number}" for part in ("scale", "shift", "mean", "var"))))


def _ring_ends(field: Field, hops: int) -> list[int]:
    """Count the nodes that are at most 0, 1, ... hops away; they are numbered in rings."""
    indptr, indices = field.outer.indptr, field.outer.indices
    ends = [len(field.inner.indptr) - 1 if hops else len(field.rows)]
    for _ in range(hops):
        if ends[-1] >= len(indptr):
            raise ValueError(f"fewer than {hops} rings were gathered")
        seen: Ints32 = indices[: indptr[ends[-1]]]
        ends.append(max(ends[-1], int(seen.max()) + 1 if len(seen) else 0))
    return ends
