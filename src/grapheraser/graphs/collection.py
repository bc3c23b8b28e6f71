"""`Collection`: many small graphs, each with a label, each of which can be forgotten."""

from __future__ import annotations

import zipfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from grapheraser.checks import real
from grapheraser.errors import GraphError, ParameterError
from grapheraser.graph import Graph
from grapheraser.graph.arrays import as_array
from grapheraser.graph.formats.npz import checked
from grapheraser.graphs.encoding import HEADER, SmallGraph, rows_of
from grapheraser.kernels.paged import feature_rows

# Cells of the default grid in a unit of a feature.
GRID = 1 / 16
_NO_EDGES = np.zeros((2, 0), dtype=np.int64)

Ids = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Collection:
    """Graphs with labels, by id: a `Graph` without edges whose nodes they are.

    Build one with `from_arrays`, `from_pyg`, `from_networkx`, `from_smiles`, `from_tu` or
    `from_npz`. Ids are positions in what was given; they stay when others are forgotten.

    Attributes:
        graph: the graphs as nodes, with their labels and roles; see `graphs.encoding`.
    """

    graph: Graph

    # -- building --------------------------------------------------------------------------------

    @classmethod
    def from_arrays(
        cls,
        node_offset: ArrayLike,
        edges: ArrayLike,
        y: ArrayLike,
        *,
        node_label: ArrayLike | None = None,
        edge_label: ArrayLike | None = None,
        x: ArrayLike | None = None,
        edge_attr: ArrayLike | None = None,
        grid: float = GRID,
        directed: bool = False,
        ids: ArrayLike | None = None,
        train: ArrayLike | None = None,
        test: ArrayLike | None = None,
        validation: ArrayLike | None = None,
        num_classes: int | None = None,
        class_names: Sequence[str] | None = None,
        name: str = "collection",
    ) -> Collection:
        """Build a collection from arrays over the nodes and edges of all graphs.

        Args:
            node_offset: ``[N + 1]``: graph g holds the nodes ``node_offset[g]`` up to
                ``node_offset[g + 1]``.
            edges: ``[m, 2]``, rows of nodes; both within one graph.
            y: the label of each graph, as in `Graph.from_arrays`.
            node_label: ``[n]``, whole numbers of at least 0; default 0 everywhere.
            edge_label: ``[m]``, likewise.
            x: features of the nodes ``[n, f]``; rounded to the grid.
            edge_attr: features of the edges ``[m, g]``; likewise.
            grid: the size of a cell that features are rounded to; ``1 / grid`` is a whole number.
            directed: keep the directions of the edges.
            ids: of the graphs; default their positions.
            train: ids of the graphs to learn from; default all with a label that are in no other.
            test: ids of the test graphs; default none.
            validation: ids of the validation graphs; default none.
            num_classes: as in `Graph.from_arrays`.
            class_names: likewise.
            name: for people.
        """
        rows = _encoded(
            as_array(node_offset, "node_offset"),
            as_array(edges, "edges").reshape(-1, 2),
            _labels(node_label, "node_label"),
            _labels(edge_label, "edge_label"),
            *(
                None if part is None else np.atleast_2d(as_array(part, "x"))
                for part in (x, edge_attr)
            ),
            per_unit=cells_of(grid),
            directed=directed,
        )
        split: dict[str, Any] = {"train": train, "test": test, "validation": validation}
        schema: dict[str, Any] = {
            "num_classes": num_classes,
            "class_names": class_names,
            "name": name,
        }
        return cls(Graph.from_arrays(rows, _NO_EDGES, y, ids=ids, **split, **schema))

    @classmethod
    def from_npz(cls, path: str | Path, **options: Any) -> Collection:
        """Read ``node_offset``, ``edges``, ``y`` and what else `from_arrays` takes from a file.

        Args:
            path: of the file.
            options: further arguments of `from_arrays`.
        """
        known = ("node_offset", "edges", "y", "node_label", "edge_label", "x", "edge_attr", "ids")
        try:
            with open(path, "rb") as file, np.load(checked(file), allow_pickle=False) as arrays:
                found = {key: arrays[key] for key in known if key in arrays.files}
                over = sorted(set(arrays.files) - set(known) - {"fold", "targets"})
        except (OSError, ValueError, zipfile.BadZipFile) as error:
            raise GraphError(f"{path}: no collection can be read from it ({error}).") from error
        missing = [key for key in known[:3] if key not in found and key not in options]
        if missing or over:
            what = f"no array '{missing[0]}'" if missing else f"an unknown array '{over[0]}'"
            raise GraphError(f"{Path(path).name} has {what}: a collection has {', '.join(known)}.")
        return cls.from_arrays(**{"name": Path(path).stem, **found, **options})

    @classmethod
    def from_pyg(
        cls, graphs: Iterable[Any], y: ArrayLike | None = None, **options: Any
    ) -> Collection:
        """Build a collection from PyG ``Data`` objects, or a PyG data set of them.

        Args:
            graphs: each with ``edge_index``, and ``x``, ``z`` or ``node_label``, ``edge_attr`` and
                ``y`` as far as it has them. Whole numbers in a single column of ``x`` or
                ``edge_attr`` are labels; anything else is rounded to the grid.
            y: labels of the graphs; default that of each.
            options: further arguments of `from_arrays`.
        """
        from grapheraser.graphs.formats import of_pyg

        return cls.from_arrays(**of_pyg(list(graphs), y), **options)

    @classmethod
    def from_networkx(
        cls,
        graphs: Iterable[Any],
        y: ArrayLike,
        *,
        label: str = "label",
        edge_label: str = "label",
        **options: Any,
    ) -> Collection:
        """Build a collection from NetworkX graphs.

        Args:
            graphs: all directed, or none.
            y: labels of the graphs.
            label: attribute of nodes with their label, a whole number; 0 where there is none.
            edge_label: likewise of edges.
            options: further arguments of `from_arrays`.
        """
        from grapheraser.graphs.formats import of_networkx

        return cls.from_arrays(**of_networkx(list(graphs), label, edge_label), y=y, **options)

    @classmethod
    def from_smiles(cls, smiles: Sequence[str], y: ArrayLike, **options: Any) -> Collection:
        """Build a collection from molecules; needs the extra ``molecules``.

        Labels of nodes are atomic numbers, labels of edges twice the order of bonds (3: aromatic).

        Args:
            smiles: one a molecule.
            y: labels of the molecules.
            options: further arguments of `from_arrays`.
        """
        from grapheraser.graphs.formats import of_smiles

        return cls.from_arrays(**of_smiles(smiles), y=y, **options)

    @classmethod
    def from_tu(cls, folder: str | Path, **options: Any) -> Collection:
        """Build a collection from a folder in the format of the TU data sets.

        Args:
            folder: with ``NAME_A.txt``, ``NAME_graph_indicator.txt``, ``NAME_graph_labels.txt``,
                and labels and attributes of nodes and edges as far as there are any.
            options: further arguments of `from_arrays`.
        """
        from grapheraser.graphs.formats import of_tu

        return cls.from_arrays(**{**of_tu(Path(folder)), **options})

    @classmethod
    def of_graph(cls, graph: Graph) -> Collection:
        """Read a graph whose rows are small graphs, such as that of a fitted eraser."""
        return cls(graph)

    # -- looking -----------------------------------------------------------------------------------

    def __len__(self) -> int:
        return self.graph.num_nodes

    def __getitem__(self, graph: int | str) -> SmallGraph:
        """Return one graph, by its id."""
        (place,) = self.graph.places(self.graph.ids_of([graph]))
        _, _, values = feature_rows(self.graph.table, np.array([place]))
        return SmallGraph.of_row(values)

    def __iter__(self) -> Iterator[SmallGraph]:
        return (self[node] for node in self.graph.ids.tolist())

    @property
    def ids(self) -> Ids:
        """Ids of the graphs, sorted."""
        return self.graph.ids

    @property
    def y(self) -> NDArray[Any]:
        """Labels of the graphs, in the order of their ids."""
        return self.graph.y

    @property
    def train_graphs(self) -> Ids:
        """Ids of the graphs that are learned from."""
        return self.graph.train_nodes

    @property
    def test_graphs(self) -> Ids:
        """Ids of the test graphs."""
        return self.graph.test_nodes

    def __repr__(self) -> str:
        learned = self.graph.num_train
        return f"Collection({self.graph.name}: {len(self)} graphs, {learned} to learn from)"


def cells_of(grid: float) -> int:
    """Return the cells in a unit of a grid."""
    per_unit = 1 / real("grid", "Collection", grid, above=0)
    if abs(per_unit - round(per_unit)) > 1e-9 * per_unit:
        raise ParameterError.of("grid", "Collection", "1 divided by a whole number", grid)
    return round(per_unit)


def _labels(given: ArrayLike | None, name: str) -> Ids | None:
    if given is None:
        return None
    labels = as_array(given, name)
    if labels.ndim != 1 or labels.dtype.kind not in "iub":
        raise GraphError(f"'{name}' must be a flat array of whole numbers (found {labels.dtype}).")
    if len(labels) and labels.min() < 0:
        raise GraphError(f"'{name}' must be at least 0 (found {labels.min()}).")
    return labels.astype(np.int64)


def _encoded(
    offset: NDArray[Any],
    edges: NDArray[Any],
    node_label: Ids | None,
    edge_label: Ids | None,
    x: NDArray[Any] | None,
    edge_attr: NDArray[Any] | None,
    *,
    per_unit: int,
    directed: bool,
) -> sp.csr_array:
    """Check arrays over all nodes and edges, and write each graph into its row."""
    if offset.ndim != 1 or len(offset) < 1 or offset.dtype.kind not in "iu" or offset[0] != 0:
        raise GraphError("'node_offset' must be whole numbers from 0 on, one more than graphs.")
    offset = offset.astype(np.int64)
    if (np.diff(offset) < 0).any():
        raise GraphError("'node_offset' must not fall.")
    n = int(offset[-1])
    edges = _checked_pairs(edges, n)
    owner = np.repeat(np.arange(len(offset) - 1), np.diff(offset))
    graph_of_edge = owner[edges[:, 0]]
    if (graph_of_edge != owner[edges[:, 1]]).any():
        wrong = int(np.flatnonzero(graph_of_edge != owner[edges[:, 1]])[0])
        raise GraphError(f"an edge joins two graphs (edge {wrong}: {edges[wrong].tolist()}).")
    labels = (
        np.zeros(n, np.int64) if node_label is None else _of_length(node_label, n, "node_label")
    )
    kinds = (
        np.zeros(len(edges), np.int64)
        if edge_label is None
        else _of_length(edge_label, len(edges), "edge_label")
    )
    cells, edge_cells = (
        _cells(x, n, per_unit, "x"),
        _cells(edge_attr, len(edges), per_unit, "edge_attr"),
    )
    if not directed:
        edges = np.sort(edges, axis=1)
    carried = np.column_stack([graph_of_edge, edges, kinds, edge_cells])
    # Both directions of an edge are one; sorted by graph and ends.
    carried = np.unique(carried, axis=0)
    _refuse_parallel(carried)
    counts = np.bincount(carried[:, 0], minlength=len(offset) - 1)
    f, g = cells.shape[1], edge_cells.shape[1]
    lengths = HEADER + np.diff(offset) * (2 + f) + counts * (3 + g)
    start = np.append(0, np.cumsum(lengths))[:-1]
    numbers = np.empty(int(lengths.sum()), dtype=np.int64)
    header = np.array([0, 0, f, g, int(directed), per_unit])
    heads = np.tile(header, (len(start), 1))
    heads[:, 0], heads[:, 1] = np.diff(offset), counts
    numbers[start[:, None] + np.arange(HEADER)] = heads
    rank = np.arange(n) - offset[owner]
    at = (start + HEADER)[owner] + rank * (2 + f)
    numbers[at[:, None] + np.arange(2 + f)] = np.column_stack([rank, labels, cells])
    first = np.append(0, np.cumsum(counts))[:-1]
    of = carried[:, 0]
    rank_of_edge = np.arange(len(carried)) - first[of]
    at = (start + HEADER + np.diff(offset) * (2 + f))[of] + rank_of_edge * (3 + g)
    ends = carried[:, 1:3] - offset[of][:, None]
    numbers[at[:, None] + np.arange(3 + g)] = np.column_stack([ends, carried[:, 3:]])
    return rows_of(numbers, lengths)


def _checked_pairs(edges: NDArray[Any], n: int) -> Ids:
    if edges.size and edges.dtype.kind not in "iu":
        raise GraphError(f"'edges' must be whole numbers (found {edges.dtype}).")
    edges = edges.astype(np.int64)
    if edges.size and (edges.min() < 0 or edges.max() >= n):
        raise GraphError(f"'edges' must name nodes from 0 to {n - 1} (found {edges.max()}).")
    return edges


def _of_length(values: Ids, count: int, name: str) -> Ids:
    if len(values) != count:
        raise GraphError(f"'{name}' must have {count} entries (found {len(values)}).")
    return values


def _cells(values: NDArray[Any] | None, count: int, per_unit: int, name: str) -> Ids:
    """Round features to the grid, half to even."""
    if values is None:
        return np.zeros((count, 0), dtype=np.int64)
    if len(values) != count:
        raise GraphError(f"'{name}' must have {count} rows (found {len(values)}).")
    if not np.isfinite(values.astype(np.float64)).all():
        raise GraphError(f"'{name}' must be finite.")
    return np.rint(values.astype(np.float64) * per_unit).astype(np.int64)


def _refuse_parallel(carried: Ids) -> None:
    same = (np.diff(carried[:, :3], axis=0) == 0).all(axis=1)
    if same.any():
        graph, u, v = carried[:-1][same][0, :3].tolist()
        raise GraphError(
            f"two edges between nodes {u} and {v} (graph {graph}) differ in what they carry.",
            hint="one edge with a label for both, or directed=True where they lead both ways.",
        )
