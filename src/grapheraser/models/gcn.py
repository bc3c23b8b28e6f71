"""GCN: two graph convolutions."""

from __future__ import annotations

from grapheraser.models.declaration import (
    ZEROS,
    Architecture,
    Declaration,
    Module,
    Units,
    glorot,
    matrix,
    vector,
)
from grapheraser.models.spec import ModelSpec


def architecture(spec: ModelSpec, num_features: int, num_classes: int) -> Architecture:
    """Two weights, each with a bias where the spec says so."""
    x, h, c = Units(num_features), Units(spec.hidden), Units(num_classes)
    return Architecture(
        inputs=matrix("weight1", "conv1.lin.weight", h, x, glorot),
        others=(
            vector("bias1", "conv1.bias", h, ZEROS, trained=spec.bias),
            matrix("weight2", "conv2.lin.weight", c, h, glorot),
            vector("bias2", "conv2.bias", c, ZEROS, trained=spec.bias),
        ),
    )


def module(spec: ModelSpec, num_features: int, num_classes: int) -> Module:
    """Two ``GCNConv``."""
    from torch_geometric.nn import GCNConv

    from grapheraser.models.modules import TwoConvolutions

    options = {"add_self_loops": spec.self_loops, "bias": spec.bias}
    first = GCNConv(num_features, spec.hidden, **options)
    return TwoConvolutions(spec, first, GCNConv(spec.hidden, num_classes, **options))


DECLARATION = Declaration(
    preset=ModelSpec("gcn", hidden=16),
    paper=ModelSpec("gcn", hidden=16, self_loops=False, bias=False, all_columns=True),
    architecture=architecture,
    module=module,
    weighing=lambda spec: "normalised",
    self_loops=lambda spec: spec.self_loops,
    weighs_edges=True,
)
