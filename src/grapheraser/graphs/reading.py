"""Graphs as networks read them: rows of a collection as numbers about nodes and edges.

A node has one column for its label and one for its degree, counts of the labels of its edges, and
its own columns. Nothing is counted to choose the columns, so what a network reads of one graph
does not depend on another: labels beyond the columns share them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from grapheraser.graph import Graph
from grapheraser.graphs.encoding import HEADER, numbers_of, spans
from grapheraser.kernels.paged import feature_rows

# Columns for labels of nodes, degrees and labels of edges.
LABELS, DEGREES, KINDS = 64, 16, 8

Ids = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Read:
    """Some graphs, one after the other; one without nodes has a blank one.

    Attributes:
        x: float32 ``[n, LABELS + DEGREES + KINDS + f]``.
        edges: ``[2, m]``, both ways unless they have directions; ends are ranks in their graph.
        edge_attr: float32 ``[m, KINDS + g]``.
        nodes: where the nodes of each graph begin, and where the last end.
        ends: likewise of the edges.
    """

    x: NDArray[np.float32]
    edges: Ids
    edge_attr: NDArray[np.float32]
    nodes: Ids
    ends: Ids

    @classmethod
    def of(cls, graph: Graph, places: Ids) -> Read:
        """Read the graphs at these places."""
        pointers, _, values = feature_rows(graph.table, places)
        numbers, starts = numbers_of(values), pointers[:-1]
        heads = numbers[starts[:, None] + np.arange(HEADER)]
        n, m = heads[:, 0], heads[:, 1]
        f, g, directed, per_unit = heads[0, 2:].tolist() if len(heads) else (0, 0, 0, 1)
        of_nodes = numbers[spans(starts + HEADER, n * (2 + f))].reshape(-1, 2 + f)
        first = starts + HEADER + n * (2 + f)
        of_edges = numbers[spans(first, m * (3 + g))].reshape(-1, 3 + g)
        nodes = np.append(0, np.cumsum(np.maximum(n, 1)))
        owner, turned = np.repeat(np.arange(len(n)), m), of_edges[:, 0] != of_edges[:, 1]
        there, back = np.arange(len(of_edges)), np.flatnonzero(turned)
        both = np.concatenate([there, back])
        ends = np.concatenate([of_edges[:, :2], of_edges[back, 1::-1]])
        counted = nodes[owner[both]] + ends[:, 0]
        if directed:
            counted_ends, both, ends = both, there, of_edges[:, :2]
        else:
            counted_ends = both
        order = np.argsort(owner[both], kind="stable")
        kinds = np.eye(KINDS, dtype=np.float32)[of_edges[:, 2] % KINDS]
        cells = (of_edges[:, 3:] / per_unit).astype(np.float32)
        edge_attr = np.hstack([kinds, cells])[both[order]]
        x = np.zeros((nodes[-1], LABELS + DEGREES + KINDS + f), dtype=np.float32)
        np.add.at(x[:, LABELS + DEGREES : LABELS + DEGREES + KINDS], counted, kinds[counted_ends])
        at = spans(nodes[:-1], n)
        degree = np.bincount(counted, minlength=nodes[-1])[at]
        x[at, of_nodes[:, 1] % LABELS] = 1.0
        x[at, LABELS + np.minimum(degree, DEGREES - 1)] = 1.0
        x[at, LABELS + DEGREES + KINDS :] = of_nodes[:, 2:] / per_unit
        counts = np.bincount(owner[both], minlength=len(n))
        return cls(x, ends[order].T, edge_attr, nodes, np.append(0, np.cumsum(counts)))

    def taken(self, graphs: Ids) -> tuple[NDArray[np.float32], Ids, Ids, NDArray[np.float32]]:
        """Return ``x``, ``edge_index``, whose each node is, and ``edge_attr`` of some graphs."""
        sizes, counts = (np.diff(part)[graphs] for part in (self.nodes, self.ends))
        shift = np.cumsum(sizes) - sizes
        edges = spans(self.ends[graphs], counts)
        edge_index = self.edges[:, edges] + np.repeat(shift, counts)
        owner = np.repeat(np.arange(len(graphs)), sizes)
        return self.x[spans(self.nodes[graphs], sizes)], edge_index, owner, self.edge_attr[edges]


def width_of(graph: Graph) -> int:
    """Return how many columns a node has in the graphs of a collection."""
    _, _, values = feature_rows(graph.table, graph.places(graph.ids[:1]))
    return LABELS + DEGREES + KINDS + int(numbers_of(values[2:3])[0])
