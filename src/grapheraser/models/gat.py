"""GAT: a layer of several attention heads and one of a single head."""

from __future__ import annotations

from grapheraser.models.declaration import (
    ZEROS,
    Architecture,
    Declaration,
    Module,
    Parameter,
    Units,
    glorot,
    matrix,
    vector,
)
from grapheraser.models.spec import ModelSpec


def architecture(spec: ModelSpec, num_features: int, num_classes: int) -> Architecture:
    """Of each layer: weights, attention vectors of sources and of targets, a bias."""
    x, h, c = Units(num_features), Units(spec.hidden, spec.heads), Units(num_classes)
    return Architecture(
        inputs=matrix("weight1", "conv1.lin.weight", h, x, glorot),
        others=(
            _attention("att_src1", "conv1.att_src", h),
            _attention("att_dst1", "conv1.att_dst", h),
            vector("bias1", "conv1.bias", h, ZEROS),
            matrix("weight2", "conv2.lin.weight", c, h, glorot),
            _attention("att_src2", "conv2.att_src", c),
            _attention("att_dst2", "conv2.att_dst", c),
            vector("bias2", "conv2.bias", c, ZEROS),
        ),
    )


def _attention(role: str, name: str, out: Units) -> Parameter:
    shape = (1, out.heads, out.size)
    return Parameter(role, (name,), shape, glorot(shape), out)


def module(spec: ModelSpec, num_features: int, num_classes: int) -> Module:
    """Two ``GATConv``."""
    from torch_geometric.nn import GATConv

    from grapheraser.models.modules import TwoConvolutions

    options = {"add_self_loops": spec.self_loops, "dropout": spec.attention_dropout}
    first = GATConv(num_features, spec.hidden, heads=spec.heads, **options)
    second = GATConv(spec.hidden * spec.heads, num_classes, heads=1, **options)
    return TwoConvolutions(spec, first, second)


DECLARATION = Declaration(
    preset=ModelSpec("gat", hidden=8, heads=8, activation="elu"),
    paper=ModelSpec(
        "gat",
        hidden=8,
        heads=8,
        dropout=0.6,
        input_dropout=0.6,
        attention_dropout=0.6,
        all_columns=True,
    ),
    architecture=architecture,
    module=module,
    self_loops=lambda spec: spec.self_loops,
)
