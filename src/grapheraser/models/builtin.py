"""The built-in models, a declaration each: gcn, sage, gat, gin and mlp.

Nothing here imports torch until a PyG module is made.
"""

from __future__ import annotations

import math
from functools import lru_cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from grapheraser.kernels.hashing import keyed_uniform
from grapheraser.models.declaration import (
    ONES,
    ZEROS,
    Architecture,
    Declaration,
    Module,
    Parameter,
    Units,
    fan_in,
    glorot,
    layers_of,
    matrix,
    vector,
)
from grapheraser.models.spec import KINDS, ModelSpec
from grapheraser.seeding import derive

# -- GCN: graph convolutions


def _gcn(spec: ModelSpec, num_features: int, num_classes: int) -> Architecture:
    """A weight per layer (with ``skip``, a node's own beside it), with a bias where wanted."""
    others: list[Parameter] = []
    for layer, inner, out in layers_of(spec, num_features, num_classes):
        name = f"conv{layer}"
        weights = (f"{name}.lin.weight", *([f"own{layer}.weight"] if spec.skip else []))
        others += [
            matrix(f"weight{layer}", weights, out, inner, glorot),
            vector(f"bias{layer}", f"{name}.bias", out, ZEROS, trained=spec.bias),
        ]
    return _normed(spec, others)


def _normed(spec: ModelSpec, parameters: list[Parameter], norms: int | None = None) -> Architecture:
    """Add the norms, after every layer but the last unless a number is given."""
    norms, units = spec.depth - 1 if norms is None else norms, parameters[0].out
    if not (spec.batch_norm or spec.layer_norm):
        norms = 0
    for number in range(1, norms + 1):
        parameters.append(vector(f"scale{number}", f"norm{number}.weight", units, ONES))
        parameters.append(vector(f"shift{number}", f"norm{number}.bias", units, ZEROS))
    running = [f"norm{number}" for number in range(1, norms + 1)] if spec.batch_norm else []
    return Architecture(parameters[0], tuple(parameters[1:]), tuple(running))


def _gcn_module(spec: ModelSpec, num_features: int, num_classes: int) -> Module:
    """``GCNConv`` layers."""
    from torch import nn
    from torch_geometric.nn import GCNConv

    from grapheraser.models.modules import Convolutions

    options = {"add_self_loops": spec.self_loops, "bias": spec.bias}
    layers = layers_of(spec, num_features, num_classes)
    own = layers if spec.skip else []
    return Convolutions(
        spec,
        [GCNConv(inner.count, out.count, **options) for _, inner, out in layers],
        own=[nn.Linear(inner.count, out.count, bias=False) for _, inner, out in own],
    )


_GCN = Declaration(
    preset=ModelSpec("gcn", hidden=16),
    paper=ModelSpec("gcn", hidden=16, self_loops=False, bias=False, all_columns=True),
    architecture=_gcn,
    module=_gcn_module,
    weighing=lambda spec: "normalised",
    self_loops=lambda spec: spec.self_loops,
    weighs_edges=True,
)


# -- GraphSAGE: layers, each a mean over neighbours beside the node's own row


def _sage(spec: ModelSpec, num_features: int, num_classes: int) -> Architecture:
    """Pairs of weights, of the neighbours' mean and of the node itself, with one bias each."""
    others: list[Parameter] = []
    for layer, inner, out in layers_of(spec, num_features, num_classes):
        name = f"conv{layer}"
        weights = (f"{name}.lin_l.weight", f"{name}.lin_r.weight")
        others += [
            matrix(f"weight{layer}", weights, out, inner),
            vector(f"bias{layer}", f"{name}.lin_l.bias", out, fan_in(inner.count)),
        ]
    return _normed(spec, others)


def _sage_module(spec: ModelSpec, num_features: int, num_classes: int) -> Module:
    """``SAGEConv`` layers."""
    from torch_geometric.nn import SAGEConv

    from grapheraser.models.modules import Convolutions

    layers = layers_of(spec, num_features, num_classes)
    return Convolutions(spec, [SAGEConv(inner.count, out.count) for _, inner, out in layers])


_SAGE = Declaration(
    preset=ModelSpec("sage", hidden=64),
    paper=ModelSpec("sage", hidden=256, all_columns=True),
    architecture=_sage,
    module=_sage_module,
    weighing=lambda spec: "mean",
)


# -- GAT: layers of several attention heads, the last of a single head


def _gat(spec: ModelSpec, num_features: int, num_classes: int) -> Architecture:
    """Weights (with ``skip``, a node's own beside them), attention vectors and a bias per layer."""
    others: list[Parameter] = []
    for layer, inner, out in layers_of(spec, num_features, num_classes, heads=spec.heads):
        name = f"conv{layer}"
        others += [
            matrix(f"weight{layer}", _gat_weights(spec, layer), out, inner, glorot),
            _attention(f"att_src{layer}", f"{name}.att_src", out),
            _attention(f"att_dst{layer}", f"{name}.att_dst", out),
            vector(f"bias{layer}", f"{name}.bias", out, ZEROS),
        ]
    return _normed(spec, others)


def _gat_weights(spec: ModelSpec, layer: int) -> tuple[str, ...]:
    own = (f"conv{layer}.res.weight",) if spec.skip else ()
    return (f"conv{layer}.lin.weight", *own)


def _attention(role: str, name: str, out: Units) -> Parameter:
    shape = (1, out.heads, out.size)
    return Parameter(role, (name,), shape, glorot(shape), out)


def _gat_module(spec: ModelSpec, num_features: int, num_classes: int) -> Module:
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


_GAT = Declaration(
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
    architecture=_gat,
    module=_gat_module,
    self_loops=lambda spec: spec.self_loops,
)


# -- GIN: each layer adds a node's neighbours to it, then applies a two-layer perceptron


def _gin(spec: ModelSpec, num_features: int, num_classes: int) -> Architecture:
    """A perceptron per layer; batch norms and a linear head where the spec says so."""
    h, c, depth = Units(spec.hidden), Units(num_classes), spec.depth
    bound, others = fan_in(spec.hidden), list[Parameter]()
    for layer in range(1, depth + 1):
        name, role = f"conv{layer}.nn", 2 * layer - 1
        inner = Units(num_features) if layer == 1 else h
        out = c if layer == depth and not spec.linear_head else h
        others += [
            matrix(f"weight{role}", f"{name}.0.weight", h, inner),
            vector(f"bias{role}", f"{name}.0.bias", h, fan_in(inner.count)),
            matrix(f"weight{role + 1}", f"{name}.2.weight", out, h),
            vector(f"bias{role + 1}", f"{name}.2.bias", out, bound),
        ]
    if not spec.linear_head:
        return _normed(spec, others)
    others += [matrix("head", "head.weight", c, h), vector("head_bias", "head.bias", c, bound)]
    return _normed(spec, others, depth)


def _gin_module(spec: ModelSpec, num_features: int, num_classes: int) -> Module:
    """``GINConv`` layers, with what comes after each of them."""
    from torch import nn
    from torch_geometric.nn import GINConv

    from grapheraser.models.modules import Convolutions

    def perceptron(width_in: int, width_out: int) -> nn.Sequential:
        linear = nn.Linear(width_in, spec.hidden)
        return nn.Sequential(linear, nn.ReLU(), nn.Linear(spec.hidden, width_out))

    def convolution(width_in: int, width_out: int) -> nn.Module:
        return GINConv(perceptron(width_in, width_out), aggr="mean" if spec.mean else "add")

    last = spec.hidden if spec.linear_head else num_classes
    widths = [num_features, *[spec.hidden] * (spec.depth - 1), last]
    layers = [convolution(inner, out) for inner, out in pairwise(widths)]
    head = nn.Linear(spec.hidden, num_classes) if spec.linear_head else None
    return Convolutions(spec, layers, head=head)


_GIN = Declaration(
    preset=ModelSpec("gin", hidden=32, mean=True),
    paper=ModelSpec("gin", hidden=32, batch_norm=True, linear_head=True, all_columns=True),
    architecture=_gin,
    module=_gin_module,
    weighing=lambda spec: "mean" if spec.mean else "sum",
    self_loops=lambda spec: True,
)


# -- MLP: linear layers that never look at the edges, the baseline without structure


def _mlp(spec: ModelSpec, num_features: int, num_classes: int) -> Architecture:
    """A weight with its bias per layer."""
    widths = [num_features, *_hidden_widths(spec), num_classes]
    others: list[Parameter] = []
    for layer in range(1, spec.depth + 1):
        inner, out = Units(widths[layer - 1]), Units(widths[layer])
        weight = matrix(f"weight{layer}", f"lin{layer}.weight", out, inner)
        others += [weight, vector(f"bias{layer}", f"lin{layer}.bias", out, fan_in(inner.count))]
    return Architecture(others[0], tuple(others[1:]))


def _hidden_widths(spec: ModelSpec) -> list[int]:
    """The widths of the hidden layers."""
    return [spec.hidden, *[spec.second_hidden or spec.hidden] * spec.depth][: spec.depth - 1]


def _mlp_module(spec: ModelSpec, num_features: int, num_classes: int) -> Module:
    """Linear layers."""
    from grapheraser.models.modules import Perceptron

    return Perceptron(spec, [num_features, *_hidden_widths(spec), num_classes])


_MLP = Declaration(
    preset=ModelSpec("mlp", hidden=64),
    paper=ModelSpec(
        "mlp", hidden=250, second_hidden=100, activation="none", dropout=0.0, all_columns=True
    ),
    architecture=_mlp,
    module=_mlp_module,
)


_DECLARATIONS = {"gcn": _GCN, "sage": _SAGE, "gat": _GAT, "gin": _GIN, "mlp": _MLP}
GNNS = tuple(kind for kind in KINDS if _DECLARATIONS[kind].preset.hops)
PRESETS: dict[str, ModelSpec] = {
    **{kind: declaration.preset for kind, declaration in _DECLARATIONS.items()},
    **{f"{kind}:paper": declaration.paper for kind, declaration in _DECLARATIONS.items()},
}


def declaration_of(kind: str) -> Declaration:
    """Return the declaration of a kind of model."""
    return _DECLARATIONS[kind]


@lru_cache(maxsize=256)
def architecture_of(spec: ModelSpec, num_features: int, num_classes: int) -> Architecture:
    """Return the tensors of a model."""
    return _DECLARATIONS[spec.kind].architecture(spec, num_features, num_classes)


# Distributions are those of the PyG layers. Every entry depends on the key, the parameter's name,
# and its own row and column: leaving out feature columns or deleting nodes changes no other entry.
def initial_weights(
    spec: ModelSpec, num_features: int, num_classes: int, columns: NDArray[np.integer], key: int
) -> dict[str, NDArray[np.float32]]:
    """Initial weights, with the input parameters restricted to the given feature columns."""
    architecture = architecture_of(spec, num_features, num_classes)
    weights: dict[str, NDArray[np.float32]] = {}
    for parameter in (architecture.inputs, *architecture.others):
        initial, shape = parameter.initial, parameter.shape
        for name in parameter.names if parameter.trained else ():
            if initial.bound == 0:
                weights[name] = np.full(shape, initial.constant, dtype=np.float32)
                continue
            if parameter is architecture.inputs:
                rows = columns
            else:
                rows = np.arange(1 if parameter.inner is None else shape[1])
            width = math.prod(shape) if parameter.inner is None else shape[0]
            uniform = keyed_uniform(rows, width, derive(key, "init", name))
            values = (2 * uniform - 1) * np.float32(initial.bound)
            if parameter.inner is None:
                weights[name] = values.reshape(shape)
            else:
                weights[name] = np.ascontiguousarray(values.T)
    return weights
