"""The part of a graph that a user's module sees, as tensors: all of it, or nodes' surroundings.

A module that looks h hops far needs the features of the nodes within h hops. Some (GCN) also divide
by the degrees of all of these, which takes the neighbours one hop further on. The features of what
is further away than h hops must not matter: they are NaN, so that a module that does look at them
gives itself away.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple
from weakref import finalize

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray
from torch import Tensor

from grapheraser.engines.batches import edge_tensors, shard_tensors, with_types
from grapheraser.engines.graph_checks import CARRIED
from grapheraser.graph import Graph
from grapheraser.graph.edge_values import PLAIN
from grapheraser.kernels.paged import INCOMING, feature_rows, neighbour_rows

Positions = NDArray[np.int64]
Ids = NDArray[np.int64]

# Surroundings of more than this share of all nodes and edges cost as much as the whole graph.
_LARGE_SHARE = 0.7
# Dense features of a whole graph are kept up to this many bytes; larger ones are made anew.
_KEPT_BYTES = 2**28
_KEPT: dict[int, Surroundings] = {}


class Surroundings(NamedTuple):
    """A part of a graph, as a module takes it."""

    x: Tensor  # float32 ``[num_nodes, num_features]``, nodes in the order of their positions
    edge_index: Tensor  # int64 ``[2, num_edges]``, in PyG's order
    places: Tensor  # int64, the rows of ``x`` that are asked for
    # ``edge_weight`` and ``edge_attr`` of ``edge_index``, where edges have them.
    carried: Mapping[str, Tensor]


def whole_graph(graph: Graph, positions: Positions) -> Surroundings:
    """Return all nodes and edges; the tensors live as long as the graph, unless too large."""
    kept = _KEPT.get(id(graph))
    if kept is None:
        columns = np.arange(graph.num_features, dtype=np.int32)
        tensors = shard_tensors(graph, columns)
        kept = Surroundings(*tensors, torch.empty(0), edge_tensors(graph))
        if kept.x.nbytes <= _KEPT_BYTES:
            _KEPT[id(graph)] = kept
            finalize(graph, _KEPT.pop, id(graph), None)
    return kept._replace(places=torch.from_numpy(positions))


def surroundings_of(
    graph: Graph, positions: Positions, hops: int, *, degrees: bool = True
) -> Surroundings:
    """Return what is within the hops (with all ``degrees``), or all where that costs no more."""
    asked = graph.ids_at(positions)
    inner = _within(graph, asked, hops if degrees else hops - 1)
    sources, targets = _edges_of(graph, inner)
    nodes = np.union1d(np.union1d(inner, targets), asked)
    if len(nodes) + len(sources) > _LARGE_SHARE * (graph.num_nodes + 2 * graph.num_edges):
        return whole_graph(graph, positions)
    known = inner if degrees else nodes
    sources, targets = np.searchsorted(nodes, sources), np.searchsorted(nodes, targets)
    count = len(nodes)
    if not degrees:
        # One more node stands for all that is further away.
        rim = np.flatnonzero(~np.isin(nodes, inner, assume_unique=True))
        sources, targets = np.append(sources, rim), np.append(targets, np.full(len(rim), count))
        count += 1
    x = np.full((count, graph.num_features), np.nan, dtype=np.float32)
    ends, columns, values = feature_rows(graph.table, graph.places(known))
    rows = sp.csr_array((values, columns, ends), shape=(len(known), graph.num_features))
    x[np.searchsorted(nodes, known)] = rows.toarray()
    seen = torch.from_numpy(with_types(graph, nodes, x))
    places = torch.from_numpy(np.searchsorted(nodes, asked))
    edges = _both_ways(sources, targets, count)
    if graph.edge_kind == PLAIN:
        return Surroundings(seen, torch.from_numpy(edges), places, {})
    edges, carried = _edges_between(graph, nodes, edges)
    return Surroundings(seen, torch.from_numpy(edges), places, carried)


def _within(graph: Graph, nodes: Ids, hops: int) -> Ids:
    """Return sorted ids at most so many hops away; none for a negative number."""
    if hops < 0:
        return nodes[:0]
    reached = frontier = np.unique(nodes)
    for _ in range(hops):
        frontier = np.setdiff1d(graph.around(frontier), reached, assume_unique=True)
        reached = np.union1d(reached, frontier)
    return reached


def _edges_of(graph: Graph, nodes: Ids) -> tuple[Ids, Ids]:
    """Return sources and targets of all edges from these nodes, node after node."""
    indptr, targets = neighbour_rows(graph.table, graph.places(nodes))
    return np.repeat(nodes, np.diff(indptr)), targets


def _both_ways(sources: Ids, targets: Ids, count: int) -> Ids:
    """Return edges and their reverses ``[2, m]``, each once, sorted by source and target."""
    keys = np.unique(np.concatenate([sources * count + targets, targets * count + sources]))
    return np.stack(np.divmod(keys, count))


def _edges_between(graph: Graph, nodes: Ids, edges: Ids) -> tuple[Ids, dict[str, Tensor]]:
    """Return those of ``edges`` (places in ``nodes``) that lead this way, and what they carry.

    The node that stands for all that is further away comes after ``nodes``: its edges lead both
    ways and carry NaN, as it does.
    """
    known: NDArray[np.bool_] = (edges < len(nodes)).all(axis=0)  # type: ignore[assignment]
    values = np.full((len(known), graph.edge_kind.width), np.nan, dtype=np.float32)
    sources, targets = nodes[edges[:, known]]
    values[known] = graph.values_between(targets, sources)
    there = ~known
    there[known] = graph.edge_kind.directions(values[known]) & INCOMING != 0
    values = values[there]
    parts = graph.edge_kind.weights(values), graph.edge_kind.features(values)
    carried = {
        name: torch.from_numpy(np.ascontiguousarray(part))
        for name, part in zip(CARRIED, parts, strict=True)
        if part is not None
    }
    return edges[:, there], carried
