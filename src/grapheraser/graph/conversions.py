"""A graph from other formats, and back: what `Graph` inherits, so that its own module stays short.

Each format has a module of its own, which turns it into arrays or is handed them.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, cast

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from grapheraser.graph import build, formats, from_tables, networks, npz, ogb, pyg, sparse
from grapheraser.graph.edge_input import EdgeInput
from grapheraser.graph.edge_values import PLAIN
from grapheraser.graph.roles import UNLABELLED

if TYPE_CHECKING:
    from grapheraser.graph.graph import Graph


class Conversions:
    """The ``from_*`` and ``to_*`` of a `Graph`."""

    @classmethod
    def _of_fields(cls, fields: dict[str, Any], name: str) -> Self:
        """A graph of the fields that `build.checked_fields` returns."""
        raise NotImplementedError

    @classmethod
    def from_arrays(
        cls,
        x: ArrayLike | sp.sparray | sp.spmatrix,
        edge_index: ArrayLike,
        y: ArrayLike,
        *,
        ids: ArrayLike | None = None,
        train: ArrayLike | None = None,
        test: ArrayLike | None = None,
        validation: ArrayLike | None = None,
        num_classes: int | None = None,
        class_names: Sequence[str] | None = None,
        each_edge_once: bool = False,
        edge_weight: ArrayLike | None = None,
        edge_attr: ArrayLike | None = None,
        directed: bool = False,
        name: str = "graph",
    ) -> Self:
        """Build a graph from arrays, checking all of them.

        Args:
            x: features ``[n, num_features]``, dense or scipy sparse.
            edge_index: ``[2, m]`` node ids or names, sources and targets; one direction or both,
                unless the graph is ``directed``.
            y: class per node ``[n]``, -1 where it is not known; or words, None where not known.
            ids: the node ids of the rows, or their names; default ``0 .. n-1``.
            train: ids of the training nodes; default all labelled nodes that are neither in
                ``test`` nor in ``validation``.
            test: ids of the test nodes; default none.
            validation: ids of the validation nodes; default none.
            num_classes: default the largest label + 1.
            class_names: of the classes, in their order; default all words in ``y``, sorted.
            each_edge_once: the input lists every undirected edge once; no note is made of missing
                reverses.
            edge_weight: ``[m]``, finite; duplicate edges, and in an undirected graph both
                directions of an edge, get the mean of theirs, with a warning.
            edge_attr: features of the edges ``[m, d]``, finite; likewise.
            directed: keep the directions of the edges.
            name: for people.
        """
        given = EdgeInput(edge_weight, edge_attr, directed, each_edge_once)
        fields = build.checked_fields(
            x, edge_index, y, ids, (train, test, validation), num_classes, given, class_names
        )
        if fields["edge_kind"] != PLAIN:
            _warn_of(fields["notes"], name)
        return cls._of_fields(fields, name)

    @classmethod
    def from_npz(cls, path: str | Path, *, name: str | None = None) -> Self:
        """Read the compact format, a file of arrays; see `graph.npz` for its keys.

        A file that says nothing of a split has all labelled nodes for training.
        """
        arrays = npz.read_npz(Path(path))
        return cls.from_arrays(**arrays, each_edge_once=True, name=name or Path(path).stem)

    def to_npz(self, path: str | Path) -> None:
        """Write the compact format with all that the graph has; its name is that of the file."""
        npz.write_npz(cast("Graph", self), Path(path))

    @classmethod
    def from_tables(
        cls,
        nodes: Any,
        edges: Any,
        *,
        id: str | None = None,
        label: str | None = None,
        split: str | None = None,
        features: Sequence[str] | None = None,
        source: str | None = None,
        target: str | None = None,
        weight: str | None = None,
        edge_features: Sequence[str] | None = None,
        names: bool | None = None,
        num_classes: int | None = None,
        class_names: Sequence[str] | None = None,
        directed: bool = False,
        name: str = "graph",
    ) -> Self:
        """Build a graph from a table of nodes and a table of edges.

        Each is the path of a CSV file (with a header; also ``.gz``) or of a Parquet file, a frame
        of pandas, polars or Arrow, or a mapping from columns to values. A CSV file of edges that
        lists two known nodes on its first line, with or without a weight, needs no header.

        Args:
            nodes: a row per node; None: the ends of the edges, without features and labels.
            edges: a row per edge; every undirected edge once, or both ways.
            id: the column of ids: whole numbers, or names; default ``id``.
            label: of classes, whole numbers or words, empty where not known; default ``label``, if
                there is one.
            split: of train, validation, test or nothing; default ``split``, if there is one.
            features: columns of numbers, or of rows of them; default all others.
            source: the column of the first ends; default ``source``.
            target: the column of the second ends; default ``target``.
            weight: of weights; default ``weight``, if there is one.
            edge_features: columns of the edges' own features; default none.
            names: whether ids are names; None: unless all are whole numbers.
            num_classes: default the largest label + 1, or the number of words.
            class_names: of the classes, in their order; default all words, sorted.
            directed: keep the directions of the edges.
            name: for people.
        """
        parts = (id, label, split, features, source, target, weight, edge_features)
        arrays = from_tables.arrays_of(nodes, edges, from_tables.Columns(*parts), names)
        return cls.from_arrays(
            **arrays,
            num_classes=num_classes,
            class_names=class_names,
            each_edge_once=not directed,
            directed=directed,
            name=name,
        )

    def to_tables(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """The nodes and the edges as columns, for `from_tables` or a frame of any library.

        Nodes have ``id``, ``label``, ``split``, ``x0``, ``x1``, ...; edges ``source``, ``target``,
        and where they have them ``weight``, ``e0``, ``e1``, ...
        """
        return from_tables.tables_of(cast("Graph", self))

    @classmethod
    def from_networkx(cls, network: Any, *, name: str = "graph", **options: Any) -> Self:
        """Build a graph from a NetworkX graph, whose attributes are columns; see `from_tables`.

        Nodes are integers or strings. Features are numbers, one attribute per column, or rows of
        numbers. The edges of a ``DiGraph`` keep their directions, unless ``directed`` is False.
        """
        nodes, edges = networks.tables_in(network)
        options.setdefault("directed", bool(network.is_directed()))
        return cls.from_tables(nodes, edges, name=name, **options)

    def to_networkx(self) -> Any:
        """A NetworkX graph; nodes have ``x``, ``label`` and ``split``, edges what they carry."""
        return networks.network_of(cast("Graph", self))

    @classmethod
    def from_scipy(
        cls,
        adjacency: Any,
        x: Any = None,
        y: ArrayLike | None = None,
        *,
        ids: ArrayLike | None = None,
        weighted: bool | None = None,
        **options: Any,
    ) -> Self:
        """Build a graph from a sparse adjacency matrix.

        Args:
            adjacency: ``[n, n]``; an entry in row i and column j is an edge from i to j.
            x: features ``[n, num_features]``; default none.
            y: classes ``[n]``; default unknown.
            ids: of the rows; default ``0 .. n-1``.
            weighted: whether its values are weights; None: where one of them is not 1.
            options: those of `from_arrays`.
        """
        edges = sparse.edges_of(adjacency, ids, weighted)
        n = int(adjacency.shape[0])
        x = np.zeros((n, 0)) if x is None else x
        y = np.full(n, UNLABELLED) if y is None else y
        return cls.from_arrays(x, y=y, ids=ids, **edges, **options)

    def to_scipy(self) -> sp.csr_array:
        """The adjacency ``[n, n]`` by position, from sources to targets, with weights or 1."""
        return sparse.adjacency_of(cast("Graph", self))

    @classmethod
    def from_ogb(
        cls,
        folder: str | Path,
        *,
        split: str | None = None,
        directed: bool = False,
        num_classes: int | None = None,
        name: str | None = None,
    ) -> Self:
        """Read the folder of one of OGB's graphs from its raw files, without pickles.

        Args:
            folder: with ``raw/edge.csv.gz`` and so on; see `graph.ogb`.
            split: the folder of its split; default the only one there is.
            directed: keep the directions of the edges.
            num_classes: default the largest label + 1.
            name: for people; default that of the folder.
        """
        arrays = ogb.arrays_of(Path(folder), split)
        return cls.from_arrays(
            **arrays, directed=directed, num_classes=num_classes, name=name or Path(folder).name
        )

    @classmethod
    def from_file(
        cls,
        source: str | Path,
        *,
        format: str | None = None,
        edges: str | Path | None = None,
        **options: Any,
    ) -> Self:
        """Read a graph from a file or folder in any of the formats.

        Args:
            source: a compact npz, a table of nodes, a folder of tables (``nodes.csv`` and
                ``edges.csv``) or of OGB, a GraphML or GML file, a sparse adjacency saved by SciPy,
                or a PyG ``Data`` saved by ``torch.save``.
            format: npz, tables, ogb, networkx, scipy or pyg; default: what it looks like.
            edges: the table of edges, where ``source`` is a table of nodes.
            options: those of the format's own ``from_*``.
        """
        other = None if edges is None else Path(edges)
        return formats.read_graph(cls, Path(source), format, other, **options)  # type: ignore[arg-type, return-value]

    @classmethod
    def from_pyg(
        cls,
        data: Any,
        *,
        num_classes: int | None = None,
        directed: bool = False,
        name: str = "graph",
    ) -> Self:
        """Build a graph from a PyG ``Data`` with ``x``, ``edge_index`` and ``y``.

        ``edge_weight`` and ``edge_attr`` stay with their edges. ``node_id`` gives the ids where it
        is present, or the names as a list of strings. ``train_mask``, ``val_mask`` and
        ``test_mask`` give the split; nodes in none of them are context nodes. Without a
        ``train_mask`` every labelled node of no other mask is a training node (see `with_split`).
        A Python warning names every other field, and all that was put right: edges made symmetric,
        merged or dropped.

        Args:
            data: the ``Data``, which is left unchanged.
            num_classes: default the largest label + 1.
            directed: keep the directions of the edges.
            name: for people.
        """
        arrays = pyg.arrays_of(data)
        given = EdgeInput(arrays.pop("edge_weight"), arrays.pop("edge_attr"), directed)
        fields = build.checked_fields(**arrays, num_classes=num_classes, given=given)
        fields["notes"] += pyg.notes_on(data)
        _warn_of(fields["notes"], name)
        return cls._of_fields(fields, name)

    def to_pyg(self) -> Any:
        """A PyG ``Data`` with dense ``x``, ``node_id``, what edges carry and the split as masks."""
        return pyg.data_of(cast("Graph", self))


def _warn_of(notes: Sequence[str], name: str) -> None:
    for note in notes:
        warnings.warn(f"graph '{name}': {note}.", stacklevel=3)
