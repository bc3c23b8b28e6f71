"""Graphs as plain dictionaries and sets: slow, obvious, and independent of the package."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import grapheraser as ge
from grapheraser.graph import Request


@dataclass
class Plain:
    """Nodes with (features, label, role) by id, and edges as sets of two ids."""

    nodes: dict[int, tuple[tuple[float, ...], int, int]]
    edges: set[frozenset[int]]

    def without(self, requests: list[Request]) -> Plain:
        nodes, edges = dict(self.nodes), set(self.edges)
        for request in requests:
            if isinstance(request, ge.Edges):
                edges -= {frozenset(pair) for pair in request.pairs}
            elif isinstance(request, ge.Nodes):
                for node in request.ids:
                    nodes.pop(node, None)
                    edges = {edge for edge in edges if node not in edge}
            else:
                for node in set(request.ids) & nodes.keys():
                    features, label, role = nodes[node]
                    if isinstance(request, ge.Features):
                        nodes[node] = (0.0,) * len(features), label, role
                    else:
                        nodes[node] = features, -1, 0 if role == 1 else role
        return Plain(nodes, edges)

    def subgraph(self, ids: set[int]) -> Plain:
        return Plain(
            {node: data for node, data in self.nodes.items() if node in ids},
            {edge for edge in self.edges if edge <= ids},
        )


def plain(graph: ge.Graph) -> Plain:
    """Read a graph through its public arrays."""
    rows = graph.x.toarray()
    nodes = {
        int(graph.ids[p]): (tuple(rows[p].tolist()), int(graph.y[p]), int(graph.role[p]))
        for p in range(graph.num_nodes)
    }
    pairs = [
        (int(graph.ids[p]), int(graph.ids[q]))
        for p in range(graph.num_nodes)
        for q in graph.indices[graph.indptr[p] : graph.indptr[p + 1]]
    ]
    edges = {frozenset(pair) for pair in pairs}
    assert len(pairs) == 2 * len(edges), "each edge must be there once in each direction"
    assert all(len(edge) == 2 for edge in edges), "no self-loops"
    return Plain(nodes, edges)


def rebuilt(graph: ge.Graph, order: np.random.Generator | None = None) -> ge.Graph:
    """The same content through `Graph.from_arrays`, rows and edges in another order."""
    rows = np.arange(graph.num_nodes)
    edges = graph.edges
    if order is not None:
        rows = order.permutation(rows)
        edges = order.permutation(edges)
        flip = order.random(len(edges)) < 0.5
        edges[flip] = edges[flip, ::-1]
    return ge.Graph.from_arrays(
        graph.x.toarray()[rows],
        edges.T,
        graph.y[rows],
        ids=graph.ids[rows],
        train=graph.train_nodes,
        test=graph.test_nodes,
        validation=graph.validation_nodes,
        num_classes=graph.num_classes,
    )
