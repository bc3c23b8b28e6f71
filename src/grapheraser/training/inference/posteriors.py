"""Posteriors of any nodes under every shard model, from sparse features, row by row.

A node's posterior is a function of the weights and of its own two-hop neighbourhood. Every sum
runs over one row in the order of node positions, so the bits of a row do not depend on which
other rows are asked for, on their order or on the number of threads.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from grapheraser.graph import Graph
from grapheraser.models import CustomModel, Model, ModelSpec, declaration_of
from grapheraser.training.inference import forward
from grapheraser.training.inference.rows import Field, Hop, ring
from grapheraser.training.inference.weights import by_role
from grapheraser.training.task import ShardWeights


def shard_posteriors(
    model: Model,
    weights: Sequence[ShardWeights],
    graph: Graph,
    positions: NDArray[np.int64],
) -> NDArray[np.float32]:
    """Posteriors of all shard models on the current graph.

    Returns: float32 ``[len(weights), len(positions), num_classes]``. For built-in models a node's
    posterior has the same bits whatever other nodes are asked for with it.
    """
    if isinstance(model, CustomModel):
        from grapheraser.training.inference.module import module_posteriors

        return module_posteriors(model, weights, graph, positions)
    return posteriors(model, weights, graph, positions)


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
        field = _field(graph, wanted, edges=declaration_of(spec.kind).hops > 0)
        passed = getattr(forward, spec.kind)
        for shard, shard_weights in enumerate(weights):
            out[shard] = passed(spec, by_role(spec, shard_weights), field)
    return out[:, back]


def _field(graph: Graph, wanted: NDArray[np.int64], *, edges: bool) -> Field:
    hops, rows = [], wanted
    for _ in range(2):
        rows, indptr, indices = ring(graph.indptr, graph.indices, rows, edges)
        hops.append(Hop(indptr, indices, graph.degree[rows].astype(np.float32)))
    place = np.full(graph.num_features, -1, dtype=np.int32)
    x = graph.x
    return Field(hops[1], hops[0], rows, x.indptr, x.indices, x.data, place)
