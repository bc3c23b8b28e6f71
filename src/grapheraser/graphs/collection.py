"""`Collection`: many small graphs, each with a label, each of which can be forgotten."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from grapheraser.checks import real
from grapheraser.datasets.load import data_root
from grapheraser.errors import GraphError, InputError, ParameterError
from grapheraser.graph import Graph
from grapheraser.graph.arrays import as_array
from grapheraser.graph.formats.npz import checked
from grapheraser.graph.pages.stored import is_stored, open_graph
from grapheraser.graphs.encoding import HEADER, SmallGraph, numbers_of, rows_of, spans
from grapheraser.graphs.formats import (
    arrays_of,
    of_networkx,
    of_pyg,
    of_smiles,
    of_tables,
    of_tu,
    several,
)
from grapheraser.kernels.paged import feature_rows
from grapheraser.store.graphs import write_graph

# Cells of the default grid in a unit of a feature.
GRID = 1 / 16
_NO_EDGES = np.zeros((2, 0), dtype=np.int64)
_NOTHING = dict.fromkeys(("node_label", "edge_label", "node_id", "x", "edge_attr"))

Ids = NDArray[np.int64]


@contextmanager
def calling_graphs() -> Iterator[None]:
    """Call the nodes that are refused graphs of a collection, which is what they stand for."""
    try:
        yield
    except InputError as error:
        said = re.sub(r"^node(?=s? )", "graph", error.message)
        said = said.replace("in the graph ", "in the collection ")
        error.message = re.sub(r"^the graph ", "the collection ", said)
        hint = re.sub(r"^change a node with .*", "correct it with SetGraphs.", error.hint or "")
        error.hint = hint.replace("in the graph,", "in the collection,") or None
        raise


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
        node_id: ArrayLike | None = None,
        x: ArrayLike | None = None,
        edge_attr: ArrayLike | None = None,
        grid: float = GRID,
        directed: bool = False,
        ids: ArrayLike | None = None,
        name: str = "collection",
        **schema: Any,
    ) -> Collection:
        """Build a collection from arrays over the nodes and edges of all graphs.

        Args:
            node_offset: ``[N + 1]``: graph g holds the nodes ``node_offset[g]`` up to
                ``node_offset[g + 1]``.
            edges: ``[m, 2]``, rows of nodes; both within one graph.
            y: the label of each graph, as in `Graph.from_arrays`.
            node_label: ``[n]``, whole numbers of at least 0; default 0 everywhere.
            edge_label: ``[m]``, likewise.
            node_id: ``[n]``, ids within each graph, ascending; default 0, 1, 2 and so on.
            x: features of the nodes ``[n, f]``; rounded to the grid.
            edge_attr: features of the edges ``[m, g]``; likewise.
            grid: the size of a cell that features are rounded to; ``1 / grid`` is a whole number.
            directed: keep the directions of the edges.
            ids: of the graphs; default their positions.
            name: for people.
            schema: as in `Graph.from_arrays`: ``train``, ``test`` and ``validation``, ids;
                ``num_classes``, ``class_names``, ``labels``, ``target_names``, ``label_range``.
        """
        parts = (node_label, edge_label, node_id, x, edge_attr)
        rows = _encoded(node_offset, edges, *parts, per_unit=cells_of(grid), directed=directed)
        return cls(Graph.from_arrays(rows, _NO_EDGES, y, ids=ids, name=name, **schema))

    @classmethod
    def from_npz(cls, path: str | Path, **options: Any) -> Collection:
        """Read ``node_offset``, ``edges``, ``y`` and what else `from_arrays` takes from a file.

        An array ``targets`` names the columns of ``y``; ``fold`` is left for you to read.

        Args:
            path: of the file.
            options: further arguments of `from_arrays`.
        """
        known = ("node_offset", "edges", "y", *_NOTHING, "ids")
        try:
            with open(path, "rb") as file, np.load(checked(file), allow_pickle=False) as arrays:
                found = {key: arrays[key] for key in known if key in arrays.files}
                over = sorted(set(arrays.files) - set(known) - {"fold", "targets"})
                if "targets" in arrays.files and "y" not in options:
                    options = {"target_names": arrays["targets"].tolist(), **options}
        except (OSError, ValueError, zipfile.BadZipFile) as error:
            raise GraphError(
                f"{path}: no collection can be read from it ({error}).",
                hint="Collection.from_tables and from_smiles read others; save what they make.",
            ) from error
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
            graphs: or batches of them; each with ``edge_index``, and ``x``, ``z`` or
                ``node_label``, ``edge_attr`` and ``y`` as far as it has them. Whole numbers in a
                single column of ``x`` or ``edge_attr`` are labels; anything else is rounded to the
                grid.
            y: labels of the graphs; default that of each.
            options: further arguments of `from_arrays`.
        """
        return cls.from_arrays(**of_pyg(several(graphs), y), **options)

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
        return cls.from_arrays(**of_networkx(several(graphs), label, edge_label), y=y, **options)

    @classmethod
    def from_smiles(cls, smiles: Sequence[str], y: ArrayLike, **options: Any) -> Collection:
        """Build a collection from molecules; needs the extra ``molecules``.

        Labels of nodes are atomic numbers, labels of edges twice the order of bonds (3: aromatic).

        Args:
            smiles: one a molecule.
            y: labels of the molecules.
            options: further arguments of `from_arrays`.
        """
        return cls.from_arrays(**of_smiles(several(smiles)), y=y, **options)

    @classmethod
    def from_tu(cls, folder: str | Path, **options: Any) -> Collection:
        """Build a collection from a folder in the format of the TU data sets.

        Args:
            folder: with ``NAME_A.txt``, ``NAME_graph_indicator.txt``, ``NAME_graph_labels.txt``,
                and labels and attributes of nodes and edges as far as there are any.
            options: further arguments of `from_arrays`.
        """
        return cls.from_arrays(**{**of_tu(Path(folder)), **options})

    @classmethod
    def from_tables(
        cls, graphs: Any, nodes: Any, edges: Any, *, label: str = "y", **options: Any
    ) -> Collection:
        """Build a collection from three tables: frames, mappings of columns, or paths of files.

        Args:
            graphs: with columns ``graph`` (ids) and the label.
            nodes: with columns ``graph``, ``node`` (ids within the graph) and ``label`` if there
                are any; further columns are features.
            edges: with columns ``graph``, ``source``, ``target`` and ``label`` if there are any;
                further columns likewise.
            label: the column with the labels of the graphs.
            options: further arguments of `from_arrays`.
        """
        return cls.from_arrays(**{**of_tables(graphs, nodes, edges, label), **options})

    @classmethod
    def load(cls, folder: str | Path) -> Collection:
        """Read a collection that `save` has written; its pages are read when they are used.

        Args:
            folder: of the store.
        """
        return cls(open_graph(Graph, folder))

    def save(self, folder: str | Path, *, replace: bool = False) -> None:
        """Write the collection to a folder, in pages.

        Args:
            folder: to write to.
            replace: whether a collection that is there may go.
        """
        write_graph(self.graph, Path(folder), replace=replace)

    def rows_of(self, graphs: Any) -> sp.csr_array:
        """Return other graphs as rows of this collection; see `graphs.encoding`.

        Args:
            graphs: a `Collection`, or a list of PyG ``Data``, NetworkX graphs, SMILES strings or
                mappings with ``node_label``, ``edges``, ``edge_label``, ``x``, ``edge_attr``.
        """
        first = feature_rows(self.graph.table, self.graph.places(self.graph.ids[:1]))[2]
        known = SmallGraph.of_row(first) if len(first) else None
        if isinstance(graphs, Collection):
            rows = graphs.graph.x
        else:
            arrays = {**_NOTHING, **arrays_of(several(graphs))}
            arrays.pop("y", None)
            arrays["directed"] = arrays.get("directed", False) if known is None else known.directed
            rows = _encoded(**arrays, per_unit=known.per_unit if known else cells_of(GRID))
        heads = numbers_of(rows[:, :HEADER].toarray())[:, 2:] if rows.shape[0] else None
        if known is not None and heads is not None and (heads != known.schema).any():
            raise GraphError(
                "these graphs have other columns, another grid or other directions than the "
                f"collection (found {heads[(heads != known.schema).any(axis=1)][0].tolist()}, not "
                f"{known.schema})."
            )
        return sp.csr_array(rows)

    # -- looking -----------------------------------------------------------------------------------

    def __len__(self) -> int:
        return self.graph.num_nodes

    @calling_graphs()
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


def read_collection(source: str) -> Collection:
    """Read what the command line names: an npz file, a TU folder, a saved collection.

    A name alone is a file of ``tasks/graphs`` of the data sets. Its fold 0 are test graphs.
    """
    path = Path(source)
    if not path.suffix and not path.exists():
        path = data_root() / "tasks" / "graphs" / f"{source}.npz"
    if path.is_dir():
        return Collection.load(path) if is_stored(path) else Collection.from_tu(path)
    collection = Collection.from_npz(path)
    with open(path, "rb") as file, np.load(checked(file), allow_pickle=False) as arrays:
        fold = arrays["fold"] if "fold" in arrays.files else None
    if fold is None or len(fold) != len(collection):
        return collection
    return Collection.from_npz(path, test=collection.ids[fold == 0])


def cells_of(grid: float) -> int:
    """Return the cells in a unit of a grid."""
    per_unit = 1 / real("grid", "Collection", grid, above=0)
    if abs(per_unit - round(per_unit)) > 1e-9 * per_unit:
        raise ParameterError.of("grid", "Collection", "1 divided by a whole number", grid)
    return round(per_unit)


def _labels(given: ArrayLike | None, count: int, name: str) -> Ids:
    if given is None:
        return np.zeros(count, dtype=np.int64)
    labels = as_array(given, name)
    labels = labels if labels.size else labels.astype(np.int64)
    if labels.ndim != 1 or labels.dtype.kind not in "iub":
        raise GraphError(
            f"'{name}' must be a flat array of whole numbers (found {labels.dtype}).",
            hint="number words yourself, the same way for all graphs: {'C': 6, 'O': 8}[word].",
        )
    if len(labels) and labels.min() < 0:
        raise GraphError(f"'{name}' must be at least 0 (found {labels.min()}).")
    if len(labels) != count:
        raise GraphError(f"'{name}' must have {count} entries (found {len(labels)}).")
    return labels.astype(np.int64)


def _encoded(
    node_offset: ArrayLike,
    edges: ArrayLike,
    node_label: ArrayLike | None,
    edge_label: ArrayLike | None,
    node_id: ArrayLike | None,
    x: ArrayLike | None,
    edge_attr: ArrayLike | None,
    *,
    per_unit: int,
    directed: bool,
) -> sp.csr_array:
    """Check arrays over all nodes and edges, and write each graph into its row."""
    offset = as_array(node_offset, "node_offset")
    if offset.ndim != 1 or len(offset) < 1 or offset.dtype.kind not in "iu" or offset[0] != 0:
        raise GraphError("'node_offset' must be whole numbers from 0 on, one more than graphs.")
    offset = offset.astype(np.int64)
    if (np.diff(offset) < 0).any():
        raise GraphError("'node_offset' must not fall.")
    n = int(offset[-1])
    edges = _checked_pairs(as_array(edges, "edges").reshape(-1, 2), n)
    owner = np.repeat(np.arange(len(offset) - 1), np.diff(offset))
    graph_of_edge = owner[edges[:, 0]]
    if (graph_of_edge != owner[edges[:, 1]]).any():
        wrong = int(np.flatnonzero(graph_of_edge != owner[edges[:, 1]])[0])
        raise GraphError(f"an edge joins two graphs (edge {wrong}: {edges[wrong].tolist()}).")
    labels = _labels(node_label, n, "node_label")
    kinds = _labels(edge_label, len(edges), "edge_label")
    cells = _cells(x, n, per_unit, "x")
    edge_cells = _cells(edge_attr, len(edges), per_unit, "edge_attr")
    if not directed:
        edges = np.sort(edges, axis=1)
    carried = np.column_stack([graph_of_edge, edges, kinds, edge_cells])
    # Both directions of an edge are one; sorted by graph and ends.
    carried = np.unique(carried, axis=0)
    _refuse_parallel(carried)
    counts = np.bincount(carried[:, 0], minlength=len(offset) - 1)
    names = _labels(node_id, n, "node_id") if node_id is not None else np.arange(n) - offset[owner]
    if (np.diff(names)[np.diff(owner) == 0] <= 0).any():
        raise GraphError("'node_id' must ascend within each graph.")
    carried[:, 1:3] -= offset[carried[:, :1]]
    f, g = cells.shape[1], edge_cells.shape[1]
    heads = np.tile(np.array([0, 0, f, g, int(directed), per_unit]), (len(counts), 1))
    heads[:, 0], heads[:, 1] = np.diff(offset), counts
    parts = (heads, np.column_stack([names, labels, cells]), carried[:, 1:])
    sizes = [np.full(len(counts), HEADER), np.diff(offset) * (2 + f), counts * (3 + g)]
    lengths = np.sum(sizes, axis=0)
    numbers, start = np.empty(int(lengths.sum()), dtype=np.int64), np.cumsum(lengths) - lengths
    for part, size in zip(parts, sizes, strict=True):
        numbers[spans(start, size)] = part.ravel()
        start = start + size
    return rows_of(numbers, lengths)


def _checked_pairs(edges: NDArray[Any], n: int) -> Ids:
    if edges.size and edges.dtype.kind not in "iu":
        raise GraphError(f"'edges' must be whole numbers (found {edges.dtype}).")
    edges = edges.astype(np.int64)
    if edges.size and (edges.min() < 0 or edges.max() >= n):
        raise GraphError(f"'edges' must name nodes from 0 to {n - 1} (found {edges.max()}).")
    return edges


def _cells(given: ArrayLike | None, count: int, per_unit: int, name: str) -> Ids:
    """Round features to the grid, half to even."""
    if given is None:
        return np.zeros((count, 0), dtype=np.int64)
    values = np.atleast_2d(as_array(given, name))
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
