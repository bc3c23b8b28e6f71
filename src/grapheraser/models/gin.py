"""GIN: each layer adds a node's neighbours to it, then applies a two-layer perceptron."""

from __future__ import annotations

from itertools import pairwise

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
    """A perceptron per layer; batch norms and a linear head where the spec says so."""
    h, c, depth = Units(spec.hidden), Units(num_classes), spec.depth
    bound, others = fan_in(spec.hidden), list[Parameter]()
    for layer in range(1, depth + 1):
        name, role = f"conv{layer}.nn", 2 * layer - 1
        inner = Units(num_features) if layer == 1 else h
        out = c if layer == depth and not spec.linear_head else h
        others += [
            matrix(f"weight{role}", f"{name}.0.weight", h, inner),
            vector(f"bias{role}", f"{name}.0.bias", h, fan_in(inner.count)),
            matrix(f"weight{role + 1}", f"{name}.2.weight", out, h),
            vector(f"bias{role + 1}", f"{name}.2.bias", out, bound),
        ]
    for layer in range(1, depth):
        others += _norm(spec, layer)
    norms = depth - 1
    if spec.linear_head:
        others += [matrix("head", "head.weight", c, h), vector("head_bias", "head.bias", c, bound)]
        others += _norm(spec, depth)
        norms = depth
    names = [f"norm{layer}" for layer in range(1, norms + 1)] if spec.batch_norm else []
    return Architecture(others[0], tuple(others[1:]), tuple(names))


def _norm(spec: ModelSpec, number: int) -> list[Parameter]:
    units = Units(spec.hidden)
    if not spec.batch_norm:
        return []
    return [
        vector(f"scale{number}", f"norm{number}.weight", units, ONES),
        vector(f"shift{number}", f"norm{number}.bias", units, ZEROS),
    ]


def module(spec: ModelSpec, num_features: int, num_classes: int) -> Module:
    """``GINConv`` layers, with what comes after each of them."""
    from torch import nn
    from torch_geometric.nn import GINConv

    from grapheraser.models.modules import Convolutions

    def perceptron(width_in: int, width_out: int) -> nn.Sequential:
        linear = nn.Linear(width_in, spec.hidden)
        return nn.Sequential(linear, nn.ReLU(), nn.Linear(spec.hidden, width_out))

    def convolution(width_in: int, width_out: int) -> nn.Module:
        return GINConv(perceptron(width_in, width_out), aggr="mean" if spec.mean else "add")

    last = spec.hidden if spec.linear_head else num_classes
    widths = [num_features, *[spec.hidden] * (spec.depth - 1), last]
    layers = [convolution(inner, out) for inner, out in pairwise(widths)]
    norms = len(layers) if spec.linear_head else len(layers) - 1
    return Convolutions(
        spec,
        layers,
        norms=[nn.BatchNorm1d(spec.hidden) for _ in range(norms)] if spec.batch_norm else (),
        head=nn.Linear(spec.hidden, num_classes) if spec.linear_head else None,
    )


DECLARATION = Declaration(
    preset=ModelSpec("gin", hidden=32, mean=True),
    paper=ModelSpec("gin", hidden=32, batch_norm=True, linear_head=True, all_columns=True),
    architecture=architecture,
    module=module,
    weighing=lambda spec: "mean" if spec.mean else "sum",
    self_loops=lambda spec: True,
)
