"""Posteriors of any nodes under every shard model, from sparse features, row by row.

A node's posterior is a function of the weights and of its own two-hop neighbourhood. Every sum
runs over one row in the order of node positions, so the bits of a row do not depend on which
other rows are asked for, on their order or on the number of threads.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from grapheraser.graph import Graph
from grapheraser.kernels.vectors import tile_for
from grapheraser.models import ModelSpec, input_parameters
from grapheraser.models.spec import ACTIVATION_CODES
from grapheraser.training.inference import forward
from grapheraser.training.inference.forward import Field, Hop, Matrix
from grapheraser.training.task import ShardWeights


def posteriors(
    spec: ModelSpec,
    weights: Sequence[ShardWeights],
    graph: Graph,
    positions: NDArray[np.int64],
) -> NDArray[np.float32]:
    """Class probabilities in eval mode, on the whole graph.

    Args:
        spec: the architecture of every shard model.
        weights: one entry per shard.
        graph: the whole current graph; all of its edges count, also those between shards.
        positions: int64 ``[m]``, rows of ``graph``; any order, repeats allowed.

    Returns: float32 ``[len(weights), m, num_classes]``.
    """
    wanted, back = np.unique(np.asarray(positions, dtype=np.int64), return_inverse=True)
    out = np.empty((len(weights), len(wanted), graph.num_classes), dtype=np.float32)
    if len(wanted):
        field = _field(graph, wanted, edges=spec.kind != "mlp")
        for shard, shard_weights in enumerate(weights):
            out[shard] = _posteriors(spec, shard_weights, field)
    return out[:, back]


def _field(graph: Graph, wanted: NDArray[np.int64], *, edges: bool) -> Field:
    hops, ring = [], wanted
    for _ in range(2):
        ring, indptr, indices = forward.ring(graph.indptr, graph.indices, ring, edges)
        hops.append(Hop(indptr, indices, graph.degree[ring].astype(np.float32)))
    place = np.full(graph.num_features, -1, dtype=np.int32)
    x = graph.x
    return Field(hops[1], hops[0], ring, x.indptr, x.indices, x.data, place)


@dataclass(frozen=True, eq=False)
class _Layout:
    """Weights as the kernels read them.

    Attributes:
        inputs: the first layer's matrices ``[columns, width]``, a feature's weights side by side.
        others: all other parameters, matrices as ``[in, out]``.
    """

    inputs: tuple[Matrix, ...]
    others: Mapping[str, Matrix]

    def named(self, *names: str) -> tuple[Matrix, ...]:
        """Parameters; no numbers at all where the model has none of that name."""
        return tuple(self.others.get(name, _NONE) for name in names)


_NONE = np.zeros(0, dtype=np.float32)
_LAYOUTS: WeakKeyDictionary[ShardWeights, _Layout] = WeakKeyDictionary()


def _layout_of(spec: ModelSpec, weights: ShardWeights) -> _Layout:
    """Kept as long as the weights themselves live, and not a moment longer."""
    known = _LAYOUTS.get(weights)
    if known is None:
        tensors = {
            name: np.ascontiguousarray(np.asarray(tensor, dtype=np.float32).T)
            if tensor.ndim == 2
            else np.ascontiguousarray(tensor, dtype=np.float32).reshape(-1)
            for name, tensor in weights.tensors.items()
        }
        inputs = tuple(tensors.pop(name) for name in input_parameters(spec))
        known = _LAYOUTS[weights] = _Layout(inputs, tensors)
    return known


def _posteriors(spec: ModelSpec, weights: ShardWeights, field: Field) -> Matrix:
    """What one shard says of the innermost ring ``[m, num_classes]``."""
    w, columns, act = _layout_of(spec, weights), weights.columns, ACTIVATION_CODES[spec.activation]
    loops, tile = spec.self_loops, tile_for(w.inputs[0].shape[1])
    match spec.kind:
        case "gcn":
            others = w.named("conv1.bias", "conv2.lin.weight", "conv2.bias")
            return forward.gcn(field, columns, w.inputs, others, loops, act, tile)
        case "sage":
            parts = ("conv1.lin_l.bias", "conv2.lin_l.weight", "conv2.lin_r.weight")
            others = w.named(*parts, "conv2.lin_l.bias")
            return forward.sage(field, columns, w.inputs, others, act, tile)
        case "gat":
            one, two = (
                w.named(*(f"conv{i}.{part}" for part in ("att_src", "att_dst", "bias")))
                for i in (1, 2)
            )
            others = (*one, *w.named("conv2.lin.weight"), *two)
            return forward.gat(field, columns, w.inputs, others, spec.heads, loops, act, tile)
        case "gin":
            others = w.named(*(f"conv{i}.nn.{part}" for i in (1, 2) for part in _GIN_LAYER))[1:]
            one, two = (w.named(*(f"norm{i}.{part}" for part in _NORM)) for i in (1, 2))
            head = w.named("head.weight", "head.bias") if spec.linear_head else ()
            return forward.gin(field, columns, w.inputs, others, one, two, head, act, tile)
        case _:
            others = w.named("lin1.bias", "lin2.weight", "lin2.bias", "lin3.weight", "lin3.bias")
            return forward.mlp(field, columns, w.inputs, others, act, tile)


_GIN_LAYER = ("0.weight", "0.bias", "2.weight", "2.bias")
_NORM = ("weight", "bias", "running_mean", "running_var")
