"""MLP: linear layers that never look at the edges, the baseline without structure."""

from __future__ import annotations

from grapheraser.models.declaration import (
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
    """A weight with its bias per layer."""
    widths = [num_features, *hidden_widths(spec), num_classes]
    others: list[Parameter] = []
    for layer in range(1, spec.depth + 1):
        inner, out = Units(widths[layer - 1]), Units(widths[layer])
        weight = matrix(f"weight{layer}", f"lin{layer}.weight", out, inner)
        others += [weight, vector(f"bias{layer}", f"lin{layer}.bias", out, fan_in(inner.count))]
    return Architecture(others[0], tuple(others[1:]))


def hidden_widths(spec: ModelSpec) -> list[int]:
    """The widths of the hidden layers."""
    return [spec.hidden, *[spec.second_hidden or spec.hidden] * spec.depth][: spec.depth - 1]


def module(spec: ModelSpec, num_features: int, num_classes: int) -> Module:
    """Linear layers."""
    from grapheraser.models.modules import Perceptron

    return Perceptron(spec, [num_features, *hidden_widths(spec), num_classes])


DECLARATION = Declaration(
    preset=ModelSpec("mlp", hidden=64),
    paper=ModelSpec(
        "mlp", hidden=250, second_hidden=100, activation="none", dropout=0.0, all_columns=True
    ),
    architecture=architecture,
    module=module,
)
