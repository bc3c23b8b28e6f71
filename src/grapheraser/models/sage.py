"""GraphSAGE: layers, each a mean over neighbours beside the node's own row."""

from __future__ import annotations

from grapheraser.models.declaration import (
    Architecture,
    Declaration,
    Module,
    Parameter,
    fan_in,
    layers_of,
    matrix,
    vector,
)
from grapheraser.models.spec import ModelSpec


def architecture(spec: ModelSpec, num_features: int, num_classes: int) -> Architecture:
    """Pairs of weights, of the neighbours' mean and of the node itself, with one bias each."""
    others: list[Parameter] = []
    for layer, inner, out in layers_of(spec, num_features, num_classes):
        name = f"conv{layer}"
        weights = (f"{name}.lin_l.weight", f"{name}.lin_r.weight")
        others += [
            matrix(f"weight{layer}", weights, out, inner),
            vector(f"bias{layer}", f"{name}.lin_l.bias", out, fan_in(inner.count)),
        ]
    return Architecture(others[0], tuple(others[1:]))


def module(spec: ModelSpec, num_features: int, num_classes: int) -> Module:
    """``SAGEConv`` layers."""
    from torch_geometric.nn import SAGEConv

    from grapheraser.models.modules import Convolutions

    layers = layers_of(spec, num_features, num_classes)
    return Convolutions(spec, [SAGEConv(inner.count, out.count) for _, inner, out in layers])


DECLARATION = Declaration(
    preset=ModelSpec("sage", hidden=64),
    paper=ModelSpec("sage", hidden=256, all_columns=True),
    architecture=architecture,
    module=module,
    weighing=lambda spec: "mean",
)
