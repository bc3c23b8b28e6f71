"""The forward pass of every kind of model in eval mode: a function of the name of each kind.

It takes the options, the weights and the rows that the wanted posteriors depend on, and gives
posteriors ``[m, num_classes]``. The compiled part takes the first layer's weights as ``inputs``,
all other tensors as ``others``.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from grapheraser.kernels.compiled import compiled
from grapheraser.kernels.vectors import Tile
from grapheraser.models import ModelSpec
from grapheraser.models.constants import RELU
from grapheraser.training.inference.hops import attend, convolve, mean, with_own
from grapheraser.training.inference.rows import (
    Field,
    Matrix,
    activate,
    add,
    matmul,
    normalise,
    project,
    softmax,
)
from grapheraser.training.inference.weights import WeightsByRole


def gcn(spec: ModelSpec, w: WeightsByRole, field: Field) -> Matrix:
    """Posteriors of GCN."""
    others = w.of("bias1", "weight2", "bias2")
    return _gcn(field, w.columns, w.inputs, others, spec.self_loops, w.activation, w.tile)


@compiled
def _gcn(
    field: Field,
    columns: NDArray[np.int32],
    inputs: tuple[Matrix, ...],
    others: tuple[Matrix, ...],
    self_loops: bool,
    act: int,
    tile: Tile,
) -> Matrix:
    """``others``: first bias, second weight and bias."""
    bias1, weight2, bias2 = others
    h = convolve(field.outer, self_loops, project(field, len(field.rows), columns, inputs[0], tile))
    h = activate(add(h, bias1), act)
    z = convolve(field.inner, self_loops, matmul(h, weight2))
    return softmax(add(z, bias2))


def sage(spec: ModelSpec, w: WeightsByRole, field: Field) -> Matrix:
    """Posteriors of GraphSAGE."""
    del spec
    others = w.of("bias1", "weight2", "bias2")
    return _sage(field, w.columns, w.inputs, others, w.activation, w.tile)


@compiled
def _sage(
    field: Field,
    columns: NDArray[np.int32],
    inputs: tuple[Matrix, ...],
    others: tuple[Matrix, ...],
    act: int,
    tile: Tile,
) -> Matrix:
    """``others``: first bias, second weights (two) and bias."""
    left1, right1 = inputs
    bias1, left2, right2, bias2 = others
    h = mean(field.outer, project(field, len(field.rows), columns, left1, tile))
    h += project(field, len(h), columns, right1, tile)
    h = activate(add(h, bias1), act)
    z = mean(field.inner, matmul(h, left2))
    z += matmul(h[: len(z)], right2)
    return softmax(add(z, bias2))


def gat(spec: ModelSpec, w: WeightsByRole, field: Field) -> Matrix:
    """Posteriors of GAT."""
    first, second = ("att_src1", "att_dst1", "bias1"), ("att_src2", "att_dst2", "bias2")
    (weight2, *skip2), loops = w.of("weight2"), spec.self_loops
    others, skips = (*w.of(*first), weight2, *w.of(*second)), (*w.inputs[1:], *skip2)
    inputs = (w.columns, w.inputs[0], others, skips)
    return _gat(field, *inputs, spec.heads, loops, w.activation, w.tile)


@compiled
def _gat(
    field: Field,
    columns: NDArray[np.int32],
    weight1: Matrix,
    others: tuple[Matrix, ...],
    skips: tuple[Matrix, ...],
    heads: int,
    self_loops: bool,
    act: int,
    tile: Tile,
) -> Matrix:
    """``others``: first scores and bias, second weight, scores, bias; ``skips``: none or two."""
    source1, target1, bias1, weight2, source2, target2, bias2 = others
    z = project(field, len(field.rows), columns, weight1, tile)
    h = add(attend(field.outer, self_loops, heads, source1, target1, z), bias1)
    if len(skips) > 0:
        h += project(field, len(h), columns, skips[0], tile)
    h = activate(h, act)
    z = add(attend(field.inner, self_loops, 1, source2, target2, matmul(h, weight2)), bias2)
    if len(skips) > 0:
        z += matmul(h[: len(z)], skips[1])
    return softmax(z)


def gin(spec: ModelSpec, w: WeightsByRole, field: Field) -> Matrix:
    """Posteriors of GIN."""
    others = w.of("bias1", "weight2", "bias2", "weight3", "bias3", "weight4", "bias4")
    norms = (w.of("scale1", "shift1", "mean1", "var1"), w.of("scale2", "shift2", "mean2", "var2"))
    head = w.of("head", "head_bias") if spec.linear_head else ()
    return _gin(field, w.columns, w.inputs, others, *norms, head, spec.mean, w.activation, w.tile)


@compiled
def _gin(
    field: Field,
    columns: NDArray[np.int32],
    inputs: tuple[Matrix, ...],
    others: tuple[Matrix, ...],
    norm1: tuple[Matrix, ...],
    norm2: tuple[Matrix, ...],
    head: tuple[Matrix, ...],
    averaged: bool,
    act: int,
    tile: Tile,
) -> Matrix:
    """``others``: the layers' networks but for the first weight."""
    bias1, inner1, inner_bias1, weight2, bias2, inner2, inner_bias2 = others
    z = project(field, len(field.rows), columns, inputs[0], tile)
    h = activate(add(with_own(field.outer, averaged, z), bias1), RELU)
    h = activate(normalise(add(matmul(h, inner1), inner_bias1), norm1), act)
    h = activate(add(with_own(field.inner, averaged, matmul(h, weight2)), bias2), RELU)
    h = add(matmul(h, inner2), inner_bias2)
    if len(head) == 0:
        return softmax(h)
    h = activate(normalise(h, norm2), act)
    return softmax(add(matmul(h, head[0]), head[1]))


def mlp(spec: ModelSpec, w: WeightsByRole, field: Field) -> Matrix:
    """Posteriors of the MLP."""
    del spec
    others = w.of("bias1", "weight2", "bias2", "weight3", "bias3")
    return _mlp(field, w.columns, w.inputs, others, w.activation, w.tile)


@compiled
def _mlp(
    field: Field,
    columns: NDArray[np.int32],
    inputs: tuple[Matrix, ...],
    others: tuple[Matrix, ...],
    act: int,
    tile: Tile,
) -> Matrix:
    """``others``: first bias, then weights and biases."""
    bias1, weight2, bias2, weight3, bias3 = others
    h = activate(add(project(field, len(field.rows), columns, inputs[0], tile), bias1), act)
    h = activate(add(matmul(h, weight2), bias2), act)
    return softmax(add(matmul(h, weight3), bias3))
