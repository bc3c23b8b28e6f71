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
    """Of each layer: weights, attention vectors of sources and of targets, a bias.

    With ``skip``, the weights of a node's own row lie beside the others.
    """
    x, h, c = Units(num_features), Units(spec.hidden, spec.heads), Units(num_classes)
    return Architecture(
        inputs=matrix("weight1", _names(spec, 1), h, x, glorot),
        others=(
            _attention("att_src1", "conv1.att_src", h),
            _attention("att_dst1", "conv1.att_dst", h),
            vector("bias1", "conv1.bias", h, ZEROS),
            matrix("weight2", _names(spec, 2), c, h, glorot),
            _attention("att_src2", "conv2.att_src", c),
            _attention("att_dst2", "conv2.att_dst", c),
            vector("bias2", "conv2.bias", c, ZEROS),
        ),
    )


def _names(spec: ModelSpec, layer: int) -> tuple[str, ...]:
    own = (f"conv{layer}.res.weight",) if spec.skip else ()
    return (f"conv{layer}.lin.weight", *own)


def _attention(role: str, name: str, out: Units) -> Parameter:
    shape = (1, out.heads, out.size)
    return Parameter(role, (name,), shape, glorot(shape), out)


def module(spec: ModelSpec, num_features: int, num_classes: int) -> Module:
    """Two ``GATConv``."""
    from torch_geometric.nn import GATConv

    from grapheraser.models.modules import TwoConvolutions

    def convolution(width_in: int, width_out: int, heads: int) -> GATConv:
        return GATConv(
            width_in,
            width_out,
            heads,
            dropout=spec.attention_dropout,
            add_self_loops=spec.self_loops,
            residual=spec.skip,
        )

    first = convolution(num_features, spec.hidden, spec.heads)
    return TwoConvolutions(spec, first, convolution(first.heads * spec.hidden, num_classes, 1))


DECLARATION = Declaration(
    preset=ModelSpec("gat", hidden=8, heads=8, activation="elu", skip=True),
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
