"""The graph: an immutable value whose node ids never change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import InitVar, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from grapheraser.checks import real, whole
from grapheraser.errors import GraphError, ParameterError, UnknownNodeError
from grapheraser.graph import build, npz, pyg
from grapheraser.graph import fingerprint as fp
from grapheraser.graph.arrays import as_ids, fresh, owned, owned_csr, read_only
from grapheraser.graph.csr import (
    csr_from_pairs,
    kept_adjacency,
    kept_rows,
    row_pointers,
    slices_of,
    zero_rows,
)
from grapheraser.graph.requests import Removal, Request, coalesce
from grapheraser.graph.roles import TEST, TRAIN, UNLABELLED
from grapheraser.seeding import generator


@dataclass(frozen=True, eq=False)
class Graph:
    """An undirected graph with sparse features and labels, sorted by node id.

    Nodes are named by ids that survive every deletion. Arrays are indexed by *position*, the rank
    of an id among those present; `positions` translates. Build one with `Graph.from_arrays`,
    `from_pyg` or `from_npz`, which check the data; this constructor trusts its arguments. It copies
    arrays that can be written to, and shares those that are read-only.

    Attributes:
        ids: int64 ``[n]``, sorted, unique.
        indptr, indices: symmetric CSR adjacency over positions, no self-loops, no duplicates.
        x: float32 CSR ``[n, num_features]``, canonical (sorted columns, no explicit zeros).
        y: int64 ``[n]``, a class in ``[0, num_classes)``, or -1 where it is not known.
        role: int8 ``[n]``, 1 for training nodes, 2 for test nodes, 0 for neither.
        num_classes: part of the schema; deleting the last node of a class does not change it.
        name: for people; no part of the fingerprint.
        notes: what was put right while the graph was built.
        known_leaves: what ``leaves`` would compute, where the maker of the graph knows it already;
            `dataclasses.replace` drops it.
    """

    ids: NDArray[np.int64]
    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]
    x: sp.csr_array
    y: NDArray[np.int64]
    role: NDArray[np.int8]
    num_classes: int
    name: str = "graph"
    notes: tuple[str, ...] = ()
    known_leaves: InitVar[NDArray[np.uint8] | None] = None

    def __post_init__(self, known_leaves: NDArray[np.uint8] | None) -> None:
        for name in ("ids", "indptr", "indices", "y", "role"):
            object.__setattr__(self, name, owned(getattr(self, name)))
        object.__setattr__(self, "x", owned_csr(self.x))
        if known_leaves is not None:
            object.__setattr__(self, "leaves", owned(known_leaves))

    def __repr__(self) -> str:
        return (
            f"Graph({self.name!r}, nodes={self.num_nodes:,}, edges={self.num_edges:,}, "
            f"features={self.num_features:,}, classes={self.num_classes}, "
            f"train={len(self.train_nodes):,}, test={len(self.test_nodes):,})"
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Graph) and self.fingerprint == other.fingerprint

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    @property
    def num_nodes(self) -> int:
        return len(self.ids)

    @property
    def num_edges(self) -> int:
        """Undirected edges, each counted once."""
        return len(self.indices) // 2

    @property
    def num_features(self) -> int:
        return int(self.x.shape[1])

    @cached_property
    def train_nodes(self) -> NDArray[np.int64]:
        """Ids of the training nodes."""
        return read_only(self.ids[self.role == TRAIN])

    @cached_property
    def test_nodes(self) -> NDArray[np.int64]:
        """Ids of the test nodes."""
        return read_only(self.ids[self.role == TEST])

    @cached_property
    def degree(self) -> NDArray[np.int64]:
        """Number of neighbours by position."""
        return read_only(np.diff(self.indptr))

    @cached_property
    def sources(self) -> NDArray[np.int32]:
        """Position of the node that each entry of ``indices`` is a neighbour of."""
        return read_only(np.repeat(np.arange(self.num_nodes, dtype=np.int32), self.degree))

    @property
    def edge_index(self) -> NDArray[np.int64]:
        """``[2, 2 * num_edges]`` positions, both directions, PyG's order."""
        return np.stack([self.sources, self.indices]).astype(np.int64)

    @property
    def edges(self) -> NDArray[np.int64]:
        """``[num_edges, 2]`` ids, u < v."""
        once = self.sources < self.indices
        return np.stack([self.ids[self.sources[once]], self.ids[self.indices[once]]], axis=1)

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of the content; the same however the graph came to be."""
        return fp.combine((self.num_nodes, self.num_features, self.num_classes), self.leaves)

    @cached_property
    def leaves(self) -> NDArray[np.uint8]:
        """Digest of every node ``[n, 32]``, by position: what the fingerprint is made of."""
        return read_only(fp.leaves(self, np.arange(self.num_nodes)))

    # -- from and to other formats ------------------------------------------------------------

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
        num_classes: int | None = None,
        each_edge_once: bool = False,
        name: str = "graph",
    ) -> Graph:
        """Build a graph from arrays, checking all of them.

        Args:
            x: features ``[n, num_features]``, dense or scipy sparse.
            edge_index: ``[2, m]`` node ids; one direction or both, the graph is undirected.
            y: class per node ``[n]``, -1 where it is not known.
            ids: the node ids of the rows; default ``0 .. n-1``.
            train: ids of the training nodes; default all labelled nodes that are not in ``test``.
            test: ids of the test nodes; default none.
            num_classes: default the largest label + 1.
            each_edge_once: the input lists every undirected edge once; no note is made of missing
                reverses.
            name: for people.
        """
        fields = build.checked_fields(
            x, edge_index, y, ids, train, test, num_classes, each_edge_once
        )
        return cls(**fields, name=name)

    @classmethod
    def from_npz(cls, path: str | Path, *, name: str | None = None) -> Graph:
        """Read the compact format: CSR features, every edge once, labels; ids are ``0 .. n-1``.

        Keys: ``x_data x_indices x_indptr x_shape edge_index y``.
        """
        x, edge_index, y = npz.read_npz(Path(path))
        return cls.from_arrays(x, edge_index, y, each_edge_once=True, name=name or Path(path).stem)

    @classmethod
    def from_pyg(cls, data: Any, *, num_classes: int | None = None, name: str = "graph") -> Graph:
        """Build a graph from a PyG ``Data`` with ``x``, ``edge_index`` and ``y``.

        ``node_id`` gives the ids where it is present. ``train_mask`` and ``test_mask`` give the
        split; without them every labelled node is a training node (see `with_split`). Everything
        else is ignored; ``notes`` names ignored edge weights and validation nodes.
        """
        graph = cls.from_arrays(**pyg.arrays_of(data), num_classes=num_classes, name=name)
        return replace(graph, notes=graph.notes + pyg.notes_on(data))

    def to_pyg(self) -> Any:
        """A PyG ``Data`` with dense ``x``, ``node_id`` and the split as masks."""
        return pyg.data_of(self)

    # -- looking things up ------------------------------------------------------------------

    def contains(self, nodes: ArrayLike) -> NDArray[np.bool_]:
        """Whether each id is a node of this graph."""
        return self._found(as_ids(nodes))[1]

    def positions(self, nodes: ArrayLike) -> NDArray[np.int64]:
        """Row of each id; unknown ids are an error."""
        ids = as_ids(nodes)
        at, known = self._found(ids)
        if not known.all():
            raise UnknownNodeError(
                f"node {ids[~known][0]} is not in the graph "
                f"({int((~known).sum())} of {len(ids)} ids are unknown).",
                hint="it was never in the graph, or it has been forgotten already.",
            )
        return at

    def has_edges(self, pairs: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Whether each pair of (known) ids ``[m, 2]`` is an edge."""
        ends = self.positions(pairs.ravel()).reshape(-1, 2)
        return self._entries(ends) >= 0

    def neighbours(self, node: int) -> NDArray[np.int64]:
        """Ids of the neighbours of one node, sorted."""
        (row,) = self.positions([node])
        return self.ids[self.indices[self.indptr[row] : self.indptr[row + 1]]]

    def within_hops(self, positions: NDArray[np.int64], hops: int) -> NDArray[np.int64]:
        """Sorted positions that are at most ``hops`` edges away from any of the given ones."""
        reached = np.zeros(self.num_nodes, dtype=bool)
        frontier = np.unique(positions)
        reached[frontier] = True
        for _ in range(hops):
            around = np.zeros(self.num_nodes, dtype=bool)
            around[self.indices[slices_of(self.indptr, frontier)]] = True
            frontier = np.flatnonzero(around & ~reached)
            reached[frontier] = True
        return np.flatnonzero(reached)

    # -- making other graphs ----------------------------------------------------------------

    def subgraph(self, nodes: ArrayLike) -> Graph:
        """The graph on these nodes and the edges between them; ids stay the same."""
        rows = np.unique(self.positions(nodes))
        renumber = np.full(self.num_nodes, -1, dtype=np.int32)
        renumber[rows] = np.arange(len(rows), dtype=np.int32)
        # Only the rows asked for are read: a shard is a hundredth of the graph.
        targets = renumber[self.indices[slices_of(self.indptr, rows)]]
        sources = np.repeat(np.arange(len(rows)), self.degree[rows])
        inside = targets >= 0
        return self._with(
            ids=self.ids[rows],
            indptr=row_pointers(sources[inside], len(rows)),
            indices=targets[inside],
            x=self.x[rows],
            y=self.y[rows],
            role=self.role[rows],
        )

    @cached_property
    def training_graph(self) -> Graph:
        """The training nodes and the edges between them: all that a partitioner sees."""
        return self._keep(self.role == TRAIN)

    def without(self, request: Request | Sequence[Request] | Removal) -> Graph:
        """A new graph without the data that the request names."""
        removal = request if isinstance(request, Removal) else coalesce(self, request)
        touched = np.zeros(self.num_nodes, dtype=bool)
        gone = self.positions(removal.nodes)
        touched[self.indices[slices_of(self.indptr, gone)]] = True

        rest = self
        if len(removal.edges):
            ends = self.positions(removal.edges.ravel()).reshape(-1, 2)
            touched[ends.ravel()] = True
            rest = rest._drop_edges(ends)
        if len(removal.features):
            rows = self.positions(removal.features)
            touched[rows] = True
            rest = rest._with(x=zero_rows(rest.x, rows))
        keep = np.ones(self.num_nodes, dtype=bool)
        keep[gone] = False
        rest = rest._keep(keep) if len(gone) else rest
        return self._with_known_leaves(rest, keep, touched[keep])

    def with_node(
        self, node: int, features: ArrayLike | sp.sparray, label: int, neighbours: ArrayLike
    ) -> Graph:
        """A new graph with one more training node."""
        if as_ids([node]).shape != (1,):
            raise ParameterError.of("node", "Graph.with_node", "one node id", node)
        if self.contains([node])[0]:
            raise GraphError(f"node {node} is in the graph already.")
        row = build.check_new_row(node, features, label, self.num_features, self.num_classes)
        others = np.unique(self.positions(neighbours))
        at = int(np.searchsorted(self.ids, node))
        shifted = np.where(others >= at, others + 1, others)
        sources = self.sources + (self.sources >= at)
        targets = self.indices + (self.indices >= at)
        indptr, indices = csr_from_pairs(
            np.concatenate([sources, np.full(len(others), at), shifted]),
            np.concatenate([targets, shifted, np.full(len(others), at)]),
            self.num_nodes + 1,
        )
        x = sp.vstack([self.x[:at], row, self.x[at:]], format="csr")
        return self._with(
            ids=np.insert(self.ids, at, node),
            indptr=indptr,
            indices=indices,
            x=sp.csr_array(x),
            y=np.insert(self.y, at, label),
            role=np.insert(self.role, at, TRAIN),
        )

    def with_split(self, *, test_share: float = 0.2, seed: int = 0) -> Graph:
        """The same graph with a random train/test split of its labelled nodes."""
        test_share = real("test_share", "Graph.with_split", test_share, 0, below=1)
        seed = whole("seed", "Graph.with_split", seed)
        labelled = np.flatnonzero(self.y != UNLABELLED)
        shuffled = generator(seed, "split").permutation(labelled)
        num_train = int(len(labelled) * (1 - test_share))
        role = np.zeros(self.num_nodes, dtype=np.int8)
        role[shuffled[:num_train]] = TRAIN
        role[shuffled[num_train:]] = TEST
        return self._with(role=role)

    def _found(self, ids: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """The position of each id, and whether the graph has that id at all."""
        if self.num_nodes == 0:
            return np.zeros(len(ids), dtype=np.int64), np.zeros(len(ids), dtype=bool)
        at = np.minimum(np.searchsorted(self.ids, ids), self.num_nodes - 1)
        return at, self.ids[at] == ids

    def _entries(self, ends: NDArray[np.int64]) -> NDArray[np.int64]:
        """Index into ``indices`` of each pair of positions ``[m, 2]``; -1 where no edge is."""
        found = np.full(len(ends), -1, dtype=np.int64)
        for i, (row, column) in enumerate(ends.tolist()):
            start, stop = self.indptr[row], self.indptr[row + 1]
            at = start + np.searchsorted(self.indices[start:stop], column)
            if at < stop and self.indices[at] == column:
                found[i] = at
        return found

    def _drop_edges(self, ends: NDArray[np.int64]) -> Graph:
        both = np.concatenate([ends, ends[:, ::-1]])
        lost = np.bincount(both[:, 0], minlength=self.num_nodes)
        return self._with(
            indptr=self.indptr - np.concatenate([[0], np.cumsum(lost)]),
            indices=np.delete(self.indices, self._entries(both)),
        )

    def _keep(self, keep: NDArray[np.bool_]) -> Graph:
        indptr, indices = kept_adjacency(self.indptr, self.indices, keep)
        parts = kept_rows(self.x.indptr, self.x.indices, self.x.data, keep)
        return self._with(
            ids=self.ids[keep],
            indptr=indptr,
            indices=indices,
            x=sp.csr_array(parts, shape=(len(indptr) - 1, self.num_features)),
            y=self.y[keep],
            role=self.role[keep],
        )

    def _with(self, **fields: Any) -> Graph:
        """This graph with fields that hold fresh arrays."""
        return replace(self, **fresh(**fields))

    def _with_known_leaves(
        self, rest: Graph, keep: NDArray[np.bool_], touched: NDArray[np.bool_]
    ) -> Graph:
        """``rest`` with the leaves of all nodes that the removal left as they were."""
        if rest is self or "leaves" not in self.__dict__:
            return rest
        leaves = self.leaves[keep]
        rows = np.flatnonzero(touched)
        leaves[rows] = fp.leaves(rest, rows)
        return rest._with(known_leaves=leaves)
