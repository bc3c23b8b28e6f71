"""A small graph as one row of whole numbers, and back.

A collection is held as a `Graph` without edges whose nodes are the small graphs, and whose feature
rows are what is written here. So pages, fingerprints, receipts and the store carry small graphs
without knowing of them. A row holds::

    nodes, edges, columns of a node, columns of an edge, directed, cells
    of each node: its id, its label, its columns
    of each edge: the ranks of its ends, its label, its columns

Features of nodes and edges are counts of cells: multiples of ``1 / cells``. A number v is stored as
``2 v + 1``, or ``-2 v`` where it is negative, so that nothing is 0, which sparse rows leave out.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from grapheraser.errors import CorruptRunError, GraphError

HEADER = 6
# Numbers in a row are exact in float32; a row has room for graphs of some 100,000 nodes and edges.
LARGEST = 2**22
WIDTH = 2**20

Ids = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class SmallGraph:
    """One graph of a collection.

    Attributes:
        nodes: ids ``[n]``, ascending; they stay when others are forgotten.
        labels: of the nodes ``[n]``, at least 0.
        cells: features of the nodes ``[n, f]``, in cells of the grid.
        edges: pairs of ids ``[m, 2]``, the smaller one first unless they have directions; sorted.
        edge_labels: ``[m]``, at least 0.
        edge_cells: features of the edges ``[m, g]``, in cells of the grid.
        directed: edges lead from the first to the second.
        per_unit: cells of the grid in a unit.
    """

    nodes: Ids
    labels: Ids
    cells: Ids
    edges: Ids
    edge_labels: Ids
    edge_cells: Ids
    directed: bool
    per_unit: int

    @classmethod
    def of_row(cls, row: NDArray[np.float32]) -> SmallGraph:
        """Read a row, as `numbers` has written it.

        Args:
            row: what is stored of it.
        """
        found = numbers_of(row)
        if len(found) < HEADER or len(found) != row_length(found[:HEADER]):
            raise CorruptRunError("the row of a graph does not hold what it says.")
        n, m, f, g, directed, per_unit = found[:HEADER].tolist()
        end = HEADER + n * (2 + f)
        of_nodes = found[HEADER:end].reshape(n, 2 + f)
        of_edges = found[end:].reshape(m, 3 + g)
        nodes = of_nodes[:, 0]
        return cls(
            nodes,
            of_nodes[:, 1],
            of_nodes[:, 2:],
            nodes[of_edges[:, :2]],
            of_edges[:, 2],
            of_edges[:, 3:],
            bool(directed),
            per_unit,
        )

    @property
    def schema(self) -> list[int]:
        """Columns of a node, columns of an edge, whether edges have directions, cells."""
        found = self.cells.shape[1], self.edge_cells.shape[1], int(self.directed), self.per_unit
        return list(found)

    @property
    def numbers(self) -> Ids:
        """The row, before it is stored."""
        ends = np.searchsorted(self.nodes, self.edges)
        of_nodes = np.column_stack([self.nodes, self.labels, self.cells])
        of_edges = np.column_stack([ends, self.edge_labels, self.edge_cells])
        header = [len(self.nodes), len(self.edges), *self.schema]
        return np.concatenate([header, of_nodes.ravel(), of_edges.ravel()])

    def without(self, nodes: Ids, pairs: Ids) -> SmallGraph:
        """Return the graph without some nodes, with their edges, and without some more edges.

        Args:
            nodes: ids; those that are not there are left out.
            pairs: ids of both ends ``[m, 2]``, in any order; likewise.
        """
        kept = ~np.isin(self.nodes, nodes)
        left = ~np.isin(self.edges, nodes).any(axis=1) & ~self.has_edges(pairs, of_these=True)
        return replace(
            self,
            nodes=self.nodes[kept],
            labels=self.labels[kept],
            cells=self.cells[kept],
            edges=self.edges[left],
            edge_labels=self.edge_labels[left],
            edge_cells=self.edge_cells[left],
        )

    def has_edges(self, pairs: Ids, *, of_these: bool = False) -> NDArray[np.bool_]:
        """Tell of each pair of ends whether it is an edge.

        Args:
            pairs: ids of both ends ``[m, 2]``, in any order.
            of_these: tell of each edge whether it is among the pairs instead.
        """
        own, asked = ({*map(tuple, np.sort(part, axis=1).tolist())} for part in (self.edges, pairs))
        ends, known = (self.edges, asked) if of_these else (pairs, own)
        return np.array(
            [tuple(pair) in known for pair in np.sort(ends, axis=1).tolist()], dtype=np.bool_
        )


def numbers_of(row: NDArray[np.float32]) -> Ids:
    """Return the numbers of stored rows."""
    found = np.asarray(row, dtype=np.int64)
    return np.where(found % 2 == 1, found // 2, -found // 2)


def row_length(header: Any) -> int:
    """Return how many numbers a row with this header has."""
    n, m, f, g = (int(value) for value in header[:4])
    return HEADER + n * (2 + f) + m * (3 + g)


def rows_of(numbers: NDArray[np.int64], lengths: NDArray[np.int64]) -> sp.csr_array:
    """Return the feature rows of graphs from their numbers, one graph after the other."""
    if len(lengths) and lengths.max() > WIDTH:
        raise GraphError(
            f"graph {int(lengths.argmax())} of the collection needs {int(lengths.max())} numbers: "
            f"a collection holds graphs of at most {WIDTH}.",
            hint="a graph of that size is a Graph of its own: ge.GraphEraser.",
        )
    if len(numbers) and max(-int(numbers.min()), int(numbers.max())) > LARGEST:
        raise GraphError(
            f"ids, labels and features of nodes and edges must be at most {LARGEST} in magnitude, "
            f"in cells of the grid (found {int(numbers[np.abs(numbers).argmax()])})."
        )
    pointers = np.append(0, np.cumsum(lengths))
    columns = np.arange(len(numbers)) - np.repeat(pointers[:-1], lengths)
    stored = np.where(numbers < 0, -2 * numbers, 2 * numbers + 1).astype(np.float32)
    return sp.csr_array((stored, columns, pointers), shape=(len(lengths), WIDTH))


def spans(starts: Ids, counts: Ids) -> Ids:
    """Return whole numbers from each start on, so many each, one after the other."""
    before = np.cumsum(counts) - counts
    found: Ids = np.repeat(starts - before, counts) + np.arange(int(counts.sum()))
    return found
