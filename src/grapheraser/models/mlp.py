"""MLP: three linear layers that never look at the edges, the baseline without structure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from grapheraser.models.declaration import (
    Architecture,
    Declaration,
    Units,
    by_fan_in,
    matrix,
    vector,
)
from grapheraser.models.spec import ModelSpec

if TYPE_CHECKING:
    from torch import nn


def architecture(spec: ModelSpec, num_features: int, num_classes: int) -> Architecture:
    """Three weights with their biases."""
    x, h, c = Units(num_features), Units(spec.hidden), Units(num_classes)
    second = Units(spec.second_hidden or spec.hidden)
    return Architecture(
        inputs=matrix("weight1", "lin1.weight", h, x),
        others=(
            vector("bias1", "lin1.bias", h, by_fan_in(num_features)),
            matrix("weight2", "lin2.weight", second, h),
            vector("bias2", "lin2.bias", second, by_fan_in(h.count)),
            matrix("weight3", "lin3.weight", c, second),
            vector("bias3", "lin3.bias", c, by_fan_in(second.count)),
        ),
        hidden=h,
        last=second,
        classes=c,
    )


def module(spec: ModelSpec, num_features: int, num_classes: int) -> nn.Module:
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
