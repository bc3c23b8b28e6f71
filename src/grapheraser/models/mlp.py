"""MLP: three linear layers that never look at the edges, the baseline without structure."""

from __future__ import annotations

from grapheraser.models.declaration import (
    Architecture,
    Declaration,
    Module,
    Units,
    fan_in,
    matrix,
    vector,
)
from grapheraser.models.spec import ModelSpec


def architecture(spec: ModelSpec, num_features: int, num_classes: int) -> Architecture:
    """Three weights with their biases."""
    x, h, c = Units(num_features), Units(spec.hidden), Units(num_classes)
    second = Units(spec.second_hidden or spec.hidden)
    return Architecture(
        inputs=matrix("weight1", "lin1.weight", h, x),
        others=(
            vector("bias1", "lin1.bias", h, fan_in(num_features)),
            matrix("weight2", "lin2.weight", second, h),
            vector("bias2", "lin2.bias", second, fan_in(h.count)),
            matrix("weight3", "lin3.weight", c, second),
            vector("bias3", "lin3.bias", c, fan_in(second.count)),
        ),
    )


def module(spec: ModelSpec, num_features: int, num_classes: int) -> Module:
    """Three linear layers."""
    from grapheraser.models.modules import Perceptron

    return Perceptron(spec, num_features, num_classes)


DECLARATION = Declaration(
    preset=ModelSpec("mlp", hidden=64),
    paper=ModelSpec(
        "mlp", hidden=250, second_hidden=100, activation="none", dropout=0.0, all_columns=True
    ),
    architecture=architecture,
    module=module,
    hops=0,
)
