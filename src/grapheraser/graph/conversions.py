"""A graph from other formats, and back: what `Graph` inherits, so that its own module stays short.

Each format has a module of its own, which turns it into arrays or is handed them.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, cast

import scipy.sparse as sp
from numpy.typing import ArrayLike

from grapheraser.graph import build, npz, pyg
from grapheraser.graph.edge_input import EdgeInput
from grapheraser.graph.edge_values import PLAIN

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
            y: class per node ``[n]``, -1 where it is not known.
            ids: the node ids of the rows, or their names; default ``0 .. n-1``.
            train: ids of the training nodes; default all labelled nodes that are neither in
                ``test`` nor in ``validation``.
            test: ids of the test nodes; default none.
            validation: ids of the validation nodes; default none.
            num_classes: default the largest label + 1.
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
            x, edge_index, y, ids, (train, test, validation), num_classes, given
        )
        if fields["edge_kind"] != PLAIN:
            _warn_of(fields["notes"], name)
        return cls._of_fields(fields, name)

    @classmethod
    def from_npz(cls, path: str | Path, *, name: str | None = None) -> Self:
        """Read the compact format: CSR features, every edge once, labels; ids are ``0 .. n-1``.

        Keys: ``x_data x_indices x_indptr x_shape edge_index y``, and where edges have them
        ``edge_weight``, ``edge_attr`` and ``directed`` (a single 0 or 1).
        """
        arrays = npz.read_npz(Path(path))
        return cls.from_arrays(**arrays, each_edge_once=True, name=name or Path(path).stem)

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
