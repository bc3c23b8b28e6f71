"""GIN: each of two layers adds a node's neighbours to it, then applies a two-layer perceptron."""

from __future__ import annotations

from grapheraser.models.declaration import (
    ONES,
    ZEROS,
    Architecture,
    Declaration,
    Module,
    Parameter,
    Units,
    fan_in,
    matrix,
    vector,
)
from grapheraser.models.spec import ModelSpec


def architecture(spec: ModelSpec, num_features: int, num_classes: int) -> Architecture:
    """Two perceptrons; batch norms and a linear head where the spec says so."""
    x, h, c = Units(num_features), Units(spec.hidden), Units(num_classes)
    last, bound = (h if spec.linear_head else c), fan_in(spec.hidden)
    others = [
        vector("bias1", "conv1.nn.0.bias", h, fan_in(num_features)),
        matrix("weight2", "conv1.nn.2.weight", h, h),
        vector("bias2", "conv1.nn.2.bias", h, bound),
        matrix("weight3", "conv2.nn.0.weight", h, h),
        vector("bias3", "conv2.nn.0.bias", h, bound),
        matrix("weight4", "conv2.nn.2.weight", last, h),
        vector("bias4", "conv2.nn.2.bias", last, bound),
    ]
    norms: list[str] = []
    if spec.batch_norm:
        norms.append("norm1")
        others += _norm(1, h)
    if spec.linear_head:
        others += [matrix("head", "head.weight", c, h), vector("head_bias", "head.bias", c, bound)]
    if spec.batch_norm and spec.linear_head:
        norms.append("norm2")
        others += _norm(2, h)
    inputs = matrix("weight1", "conv1.nn.0.weight", h, x)
    return Architecture(inputs, tuple(others), tuple(norms))


def _norm(number: int, units: Units) -> list[Parameter]:
    return [
        vector(f"scale{number}", f"norm{number}.weight", units, ONES),
        vector(f"shift{number}", f"norm{number}.bias", units, ZEROS),
    ]


def module(spec: ModelSpec, num_features: int, num_classes: int) -> Module:
    """Two ``GINConv``, with what comes after each of them."""
    from torch import nn
    from torch_geometric.nn import GINConv

    from grapheraser.models.modules import BatchNorm, TwoConvolutions

    def perceptron(width_in: int, width_out: int) -> nn.Sequential:
        linear = nn.Linear(width_in, spec.hidden)
        return nn.Sequential(linear, nn.ReLU(), nn.Linear(spec.hidden, width_out))

    def norm() -> nn.Module | None:
        return BatchNorm(spec.hidden) if spec.batch_norm else None

    def convolution(width_in: int, width_out: int) -> nn.Module:
        return GINConv(perceptron(width_in, width_out), aggr="mean" if spec.mean else "add")

    first = convolution(num_features, spec.hidden)
    if not spec.linear_head:
        second = convolution(spec.hidden, num_classes)
        return TwoConvolutions(spec, first, second, norm1=norm())
    second = convolution(spec.hidden, spec.hidden)
    head = nn.Linear(spec.hidden, num_classes)
    return TwoConvolutions(spec, first, second, norm1=norm(), norm2=norm(), head=head)


DECLARATION = Declaration(
    preset=ModelSpec("gin", hidden=32, mean=True),
    paper=ModelSpec("gin", hidden=32, batch_norm=True, linear_head=True, all_columns=True),
    architecture=architecture,
    module=module,
    weighing=lambda spec: "mean" if spec.mean else "sum",
    self_loops=lambda spec: True,
)
