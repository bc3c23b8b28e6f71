"""GCN: graph convolutions."""

from __future__ import annotations

from grapheraser.models.declaration import (
    ZEROS,
    Architecture,
    Declaration,
    Module,
    Parameter,
    glorot,
    layers_of,
    matrix,
    vector,
)
from grapheraser.models.spec import ModelSpec


def architecture(spec: ModelSpec, num_features: int, num_classes: int) -> Architecture:
    """A weight per layer, with a bias where the spec says so."""
    others: list[Parameter] = []
    for layer, inner, out in layers_of(spec, num_features, num_classes):
        name = f"conv{layer}"
        others += [
            matrix(f"weight{layer}", f"{name}.lin.weight", out, inner, glorot),
            vector(f"bias{layer}", f"{name}.bias", out, ZEROS, trained=spec.bias),
        ]
    return Architecture(others[0], tuple(others[1:]))


def module(spec: ModelSpec, num_features: int, num_classes: int) -> Module:
    """``GCNConv`` layers."""
    from torch_geometric.nn import GCNConv

    from grapheraser.models.modules import Convolutions

    options = {"add_self_loops": spec.self_loops, "bias": spec.bias}
    layers = layers_of(spec, num_features, num_classes)
    return Convolutions(
        spec, [GCNConv(inner.count, out.count, **options) for _, inner, out in layers]
    )


DECLARATION = Declaration(
    preset=ModelSpec("gcn", hidden=16),
    paper=ModelSpec("gcn", hidden=16, self_loops=False, bias=False, all_columns=True),
    architecture=architecture,
    module=module,
    weighing=lambda spec: "normalised",
    self_loops=lambda spec: spec.self_loops,
    weighs_edges=True,
)
