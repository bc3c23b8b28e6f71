"""GAT: layers of several attention heads, the last of a single head."""

from __future__ import annotations

from grapheraser.models.declaration import (
    ZEROS,
    Architecture,
    Declaration,
    Module,
    Parameter,
    Units,
    glorot,
    layers_of,
    matrix,
    vector,
)
from grapheraser.models.spec import ModelSpec


def architecture(spec: ModelSpec, num_features: int, num_classes: int) -> Architecture:
    """Of each layer: weights, attention vectors of sources and of targets, a bias.

    With ``skip``, the weights of a node's own row lie beside the others.
    """
    others: list[Parameter] = []
    for layer, inner, out in layers_of(spec, num_features, num_classes, heads=spec.heads):
        name = f"conv{layer}"
        others += [
            matrix(f"weight{layer}", _names(spec, layer), out, inner, glorot),
            _attention(f"att_src{layer}", f"{name}.att_src", out),
            _attention(f"att_dst{layer}", f"{name}.att_dst", out),
            vector(f"bias{layer}", f"{name}.bias", out, ZEROS),
        ]
    return Architecture(others[0], tuple(others[1:]))


def _names(spec: ModelSpec, layer: int) -> tuple[str, ...]:
    own = (f"conv{layer}.res.weight",) if spec.skip else ()
    return (f"conv{layer}.lin.weight", *own)


def _attention(role: str, name: str, out: Units) -> Parameter:
    shape = (1, out.heads, out.size)
    return Parameter(role, (name,), shape, glorot(shape), out)


def module(spec: ModelSpec, num_features: int, num_classes: int) -> Module:
    """``GATConv`` layers."""
    from torch_geometric.nn import GATConv

    from grapheraser.models.modules import Convolutions

    def convolution(inner: Units, out: Units) -> GATConv:
        return GATConv(
            inner.count,
            out.size,
            out.heads,
            dropout=spec.attention_dropout,
            add_self_loops=spec.self_loops,
            residual=spec.skip,
        )

    layers = layers_of(spec, num_features, num_classes, heads=spec.heads)
    return Convolutions(spec, [convolution(inner, out) for _, inner, out in layers])


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
