"""GraphSAGE: two layers, each a mean over neighbours beside the node's own row."""

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
    """Pairs of weights, of the neighbours' mean and of the node itself, with one bias each."""
    x, h, c = Units(num_features), Units(spec.hidden), Units(num_classes)
    return Architecture(
        inputs=matrix("weight1", ("conv1.lin_l.weight", "conv1.lin_r.weight"), h, x),
        others=(
            vector("bias1", "conv1.lin_l.bias", h, fan_in(num_features)),
            matrix("weight2", ("conv2.lin_l.weight", "conv2.lin_r.weight"), c, h),
            vector("bias2", "conv2.lin_l.bias", c, fan_in(spec.hidden)),
        ),
    )


def module(spec: ModelSpec, num_features: int, num_classes: int) -> Module:
    """Two ``SAGEConv``."""
    from torch_geometric.nn import SAGEConv

    from grapheraser.models.modules import TwoConvolutions

    first = SAGEConv(num_features, spec.hidden)
    return TwoConvolutions(spec, first, SAGEConv(spec.hidden, num_classes))


DECLARATION = Declaration(
    preset=ModelSpec("sage", hidden=64),
    paper=ModelSpec("sage", hidden=256, all_columns=True),
    architecture=architecture,
    module=module,
    weighing=lambda spec: "mean",
)
