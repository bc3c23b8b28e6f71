"""What a user's module gets to see of a graph, as tensors: all of it, or some nodes' surroundings.

A module that looks h hops far needs the features of the nodes within h hops and their degrees, and
a degree takes the neighbours one hop further on. The features of those outermost nodes must not
matter: they are NaN, so that a module that does look at them says so.
"""

from __future__ import annotations

from typing import NamedTuple
from weakref import finalize

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from grapheraser.graph import Graph
from grapheraser.training import reference

Positions = NDArray[np.int64]

# Of the nodes and edges of a graph: surroundings of more than this share cost as much as all of it.
_LARGE_SHARE = 0.7
# Dense features of a whole graph are kept up to this many bytes; larger ones are made anew.
_KEPT_BYTES = 2**28
_KEPT: dict[int, Surroundings] = {}


class Surroundings(NamedTuple):
    """A part of a graph, as a module takes it.

    Attributes:
        x: float32 ``[num_nodes, num_features]``, nodes in the order of their positions.
        edge_index: int64 ``[2, num_edges]``, in PyG's order.
        places: int64, the rows of ``x`` that are asked for.
    """

    x: Tensor
    edge_index: Tensor
    places: Tensor


def whole_graph(graph: Graph, positions: Positions) -> Surroundings:
    """All nodes and edges; the tensors are kept as long as the graph lives, unless too large."""
    kept = _KEPT.get(id(graph))
    if kept is None:
        columns = np.arange(graph.num_features, dtype=np.int32)
        kept = Surroundings(*reference.shard_tensors(graph, columns), torch.empty(0))
        if kept.x.nbytes <= _KEPT_BYTES:
            _KEPT[id(graph)] = kept
            finalize(graph, _KEPT.pop, id(graph), None)
    return kept._replace(places=torch.from_numpy(positions))


def surroundings_of(graph: Graph, positions: Positions, hops: int) -> Surroundings:
    """What is within the hops of the positions, or the whole graph where that costs no more."""
    inner, nodes, sources, targets = _within(graph, positions, hops)
    if len(nodes) + len(sources) > _LARGE_SHARE * (graph.num_nodes + 2 * graph.num_edges):
        return whole_graph(graph, positions)
    return Surroundings(
        _features(graph, inner, nodes),
        _edge_index(np.searchsorted(nodes, sources), np.searchsorted(nodes, targets), len(nodes)),
        torch.from_numpy(np.searchsorted(nodes, positions)),
    )


def _within(
    graph: Graph, positions: Positions, hops: int
) -> tuple[Positions, Positions, Positions, Positions]:
    """The nodes within the hops, these and their neighbours, and all edges of the former."""
    inner = graph.within_hops(positions, hops)
    counts = graph.indptr[inner + 1] - graph.indptr[inner]
    skipped = graph.indptr[inner] - (np.cumsum(counts) - counts)
    targets = graph.indices[np.repeat(skipped, counts) + np.arange(counts.sum())].astype(np.int64)
    return inner, np.union1d(inner, targets), np.repeat(inner, counts), targets


def _features(graph: Graph, inner: Positions, nodes: Positions) -> Tensor:
    """Dense features of the nodes; NaN for those that are not inner ones."""
    x = torch.full((len(nodes), graph.num_features), torch.nan)
    x.numpy()[np.searchsorted(nodes, inner)] = graph.x[inner].toarray()
    return x


def _edge_index(sources: Positions, targets: Positions, count: int) -> Tensor:
    """These edges and their reverses, each once, sorted by source and target."""
    keys = np.unique(np.concatenate([sources * count + targets, targets * count + sources]))
    return torch.from_numpy(np.stack(np.divmod(keys, max(count, 1))))
