"""The graph: an immutable value whose node ids never change."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from grapheraser.checks import one_of, real, whole
from grapheraser.errors import UnknownNodeError
from grapheraser.graph import stored
from grapheraser.graph.arrays import fresh, owned, owned_csr, read_only
from grapheraser.graph.changes import GraphChange, one_training_node
from grapheraser.graph.conversions import Conversions
from grapheraser.graph.csr import reverse_of, slices_of
from grapheraser.graph.edge_values import NO_VALUES, PLAIN, EdgeKind, Values, converted
from grapheraser.graph.edit import Edit, edit_of, edited_pages
from grapheraser.graph.ids import as_given, ids_among, is_plain, one_id
from grapheraser.graph.induced import AdjacencyBlock, induced_edges, ranked_rows
from grapheraser.graph.merkle import MerkleTree
from grapheraser.graph.names import NO_NAMES, Names, check_new_names, names_of
from grapheraser.graph.packing import Rows
from grapheraser.graph.pages import Pages
from grapheraser.graph.requests import NOTHING, Removal, Request, coalesce
from grapheraser.graph.roles import (
    CONTEXT,
    DEFAULT_CONTEXT,
    SHARDED_ROLES,
    TEST,
    TRAIN,
    UNLABELLED,
    VALIDATION,
)
from grapheraser.kernels.paged import (
    NOWHERE,
    OUTGOING,
    ROOM,
    Table,
    edge_value_rows,
    entry_values,
    feature_rows,
    labels_at,
    located,
    neighbour_rows,
    nodes_at,
    roles_at,
)
from grapheraser.kernels.sets import ranks
from grapheraser.receipts.proof import Proof
from grapheraser.seeding import generator

_FORMAT, _FORMAT_WITH_VALUES = b"grapheraser-graph-2", b"grapheraser-graph-2-values"
_ARRAYS = ("ids", "y", "role", "indptr", "indices", "x", "edge_values", "names")
# By context and role: whether a node is in a shard.
_IN_SHARDS = {name: np.isin(np.arange(4), roles) for name, roles in SHARDED_ROLES.items()}
_NO_ROLES: NDArray[np.int8] = np.zeros(0, dtype=np.int8)
# What is remembered of a graph and follows from its `context`.
_OF_CONTEXT = ("sharded_nodes", "num_sharded", "training_graph")


@dataclass(frozen=True, eq=False)
class Graph(Conversions):
    """A graph with features and labels, sorted by node id; undirected unless it says otherwise.

    Nodes are named by ids that survive every deletion. Arrays are indexed by *position*, the rank
    of an id among those present; `positions` translates. Build one with `Graph.from_arrays`,
    `from_pyg` or `from_npz`, which check the data; this constructor trusts its arguments. It copies
    arrays that can be written to, and shares those that are read-only.

    A graph that came out of a change is held in `pages`, most of which it shares with the graph
    before, and puts an array together when it is first asked for it. What has to be quick on large
    graphs reads the pages, through `table` and by place (see `kernels.paged`).

    Attributes:
        ids: int64 ``[n]``, sorted, unique.
        indptr, indices: symmetric CSR adjacency over positions, no self-loops, no duplicates.
        x: float32 CSR ``[n, num_features]``, canonical (sorted columns, no explicit zeros).
        y: int64 ``[n]``, a class in ``[0, num_classes)``, or -1 where it is not known.
        role: int8 ``[n]``, 1 for training nodes, 2 for test nodes, 3 for validation nodes, 0 for
            context nodes, which are none of these.
        num_classes: part of the schema; deleting the last node of a class does not change it.
        name: for people; no part of the fingerprint.
        notes: what was put right while the graph was built; gone after a change.
        edge_kind: whether edges have directions, weights and features of their own.
        edge_values: float32 ``[len(indices), edge_kind.width]``, what each entry of ``indices``
            carries (see `graph.edge_values`); `edge_weight` and `edge_attr` take it apart.
        context: which nodes are in shards beside the training nodes: ``none``, ``unlabelled`` (the
            context nodes) or ``all``; see `with_context`. No part of the fingerprint.
        names: str ``[n]``, dtype object: the names of the nodes, whose ids follow from them; None
            where nodes have ids alone.
        class_names: of all classes, in their order, where labels were given as words.
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
    edge_kind: EdgeKind = PLAIN
    edge_values: Values = field(default_factory=lambda: NO_VALUES)
    context: str = DEFAULT_CONTEXT
    names: Names | None = field(default_factory=lambda: None)
    class_names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.names is not None:
            object.__setattr__(self, "names", owned(self.names))
        for name in ("ids", "indptr", "indices", "y", "role", "edge_values"):
            object.__setattr__(self, name, owned(getattr(self, name)))
        object.__setattr__(self, "x", owned_csr(self.x))

    @classmethod
    def of_pages(
        cls,
        pages: Pages,
        num_classes: int,
        *,
        name: str = "graph",
        notes: tuple[str, ...] = (),
        context: str = DEFAULT_CONTEXT,
        class_names: tuple[str, ...] = (),
        tree: MerkleTree | None = None,
        **arrays: Any,
    ) -> Graph:
        """A graph that is held in pages; with its Merkle tree and arrays, where they are known."""
        graph = object.__new__(cls)
        graph.__dict__.update(pages=pages, num_classes=num_classes, name=name, notes=notes)
        graph.__dict__.update(
            context=context, class_names=class_names, edge_kind=pages.edge_kind, **fresh(**arrays)
        )
        if tree is not None:
            graph.__dict__["tree"] = tree
        return graph

    def __getattr__(self, name: str) -> Any:
        """Put together an array of a graph that is held in pages."""
        if name in _ARRAYS and "pages" in self.__dict__:
            self.__dict__.update(fresh(**self._arrays(name)))
            return self.__dict__[name]
        if name in _ARRAYS and "_origin" in self.__dict__:
            places, origin = self._origin.places(self.ids), self._origin
            part = origin._features(places) if name == "x" else origin._between(self.ids, places)
            self.__dict__.update(fresh(**part))
            return self.__dict__[name]
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def _arrays(self, name: str) -> dict[str, Any]:
        """The array of a name, with those that come with it."""
        places = self._all_places
        if name == "x":
            return self._features(places)
        if name in ("indptr", "indices"):
            indptr, around = neighbour_rows(self.table, places)
            ids = self.ids
            consecutive = len(ids) == 0 or ids[-1] == len(ids) - 1
            at = around if consecutive else np.searchsorted(ids, around)
            return {"indptr": indptr, "indices": at.astype(np.int32)}
        if name == "edge_values":
            plain = self.edge_kind == PLAIN
            return {"edge_values": NO_VALUES if plain else edge_value_rows(self.table, places)}
        if name == "names":
            return {"names": self.pages.names() if self.pages.named else None}
        ids, y, role = self.pages.nodes()
        return {"ids": ids, "y": y, "role": role}

    @cached_property
    def pages(self) -> Pages:
        """The pages that hold the graph."""
        rows = (self.ids, self.y, self.role, self.indptr, self.ids[self.indices], self.x)
        names = NO_NAMES if self.names is None else self.names
        return Pages.of(Rows(*rows, self.edge_values, names), self.edge_kind)

    @property
    def table(self) -> Table:
        """The pages as compiled code reads them; they live as long as this graph."""
        return self.pages.table

    @cached_property
    def _before(self) -> NDArray[np.int64]:
        """The number of nodes in the pages before each."""
        counts = self.pages.directory.counts
        return np.cumsum(counts) - counts

    @property
    def _all_places(self) -> NDArray[np.int64]:
        counts = self.pages.directory.counts
        rows = np.arange(self.num_nodes) - np.repeat(self._before, counts)
        return np.repeat(np.arange(len(counts)) * ROOM, counts) + rows

    def __repr__(self) -> str:
        return (
            f"Graph({self.name!r}, nodes={self.num_nodes:,}, edges={self.num_edges:,}, "
            f"features={self.num_features:,}, classes={self.num_classes}, "
            f"train={len(self.train_nodes):,}, test={len(self.test_nodes):,}"
            + (", directed" if self.directed else "")
            + (", weighted" if self.edge_kind.weighted else "")
            + (f", edge features={self.edge_kind.columns:,}" if self.edge_kind.columns else "")
            + (", named" if self.named else "")
            + f"{self._others})"
        )

    @property
    def _others(self) -> str:
        counts = {"validation": self.validation_nodes, "context": self.context_nodes}
        return "".join(f", {name}={len(ids):,}" for name, ids in counts.items() if len(ids))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Graph) and self.fingerprint == other.fingerprint

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    @cached_property
    def num_nodes(self) -> int:
        return len(self.ids) if "ids" in self.__dict__ else self.pages.num_nodes

    @property
    def num_edges(self) -> int:
        """Edges, each counted once; in a directed graph, pairs of nodes with an edge or two."""
        if "indices" in self.__dict__ or "_origin" in self.__dict__:
            return len(self.indices) // 2
        return self.pages.num_entries // 2

    @property
    def num_features(self) -> int:
        if "_origin" in self.__dict__:
            return int(self._origin.num_features)
        known = self.__dict__.get("x")
        return self.pages.num_features if known is None else int(known.shape[1])

    @property
    def named(self) -> bool:
        """Whether nodes have names; see `names`."""
        known = self.__dict__.get("names")
        return known is not None or ("pages" in self.__dict__ and self.pages.named)

    @cached_property
    def train_nodes(self) -> NDArray[np.int64]:
        """Ids of the training nodes."""
        return read_only(self.ids[self.role == TRAIN])

    @cached_property
    def test_nodes(self) -> NDArray[np.int64]:
        """Ids of the test nodes."""
        return read_only(self.ids[self.role == TEST])

    @property
    def labelled_test_nodes(self) -> NDArray[np.int64]:
        """Ids of the test nodes whose label is known: those that a score is made of."""
        return self.ids[(self.role == TEST) & (self.y != UNLABELLED)]

    @cached_property
    def validation_nodes(self) -> NDArray[np.int64]:
        """Ids of the validation nodes."""
        return read_only(self.ids[self.role == VALIDATION])

    @cached_property
    def context_nodes(self) -> NDArray[np.int64]:
        """Ids of the nodes that are neither training, validation nor test nodes."""
        return read_only(self.ids[self.role == CONTEXT])

    @cached_property
    def sharded_nodes(self) -> NDArray[np.int64]:
        """Ids of the nodes that shards hold: the training nodes and those that ``context`` adds."""
        if self.context == "all":
            return self.ids
        return read_only(self.ids[np.isin(self.role, SHARDED_ROLES[self.context])])

    @cached_property
    def num_train(self) -> int:
        """The number of training nodes."""
        return len(self.train_nodes)

    @cached_property
    def num_sharded(self) -> int:
        """The number of nodes that shards hold."""
        return len(self.sharded_nodes)

    @cached_property
    def degree(self) -> NDArray[np.int64]:
        """Number of neighbours by position."""
        return read_only(np.diff(self.indptr))

    @cached_property
    def sources(self) -> NDArray[np.int32]:
        """Position of the node that each entry of ``indices`` is a neighbour of."""
        return read_only(np.repeat(np.arange(self.num_nodes, dtype=np.int32), self.degree))

    @property
    def directed(self) -> bool:
        """Whether edges lead from one node to another; see `from_arrays`."""
        return self.edge_kind.directed

    @property
    def edge_index(self) -> NDArray[np.int64]:
        """Positions of sources and targets, PyG's order.

        ``[2, 2 * num_edges]``, both directions; in a directed graph those that there are.
        """
        both = np.stack([self.sources, self.indices]).astype(np.int64)
        return both[:, self._leading_out] if self.directed else both

    @property
    def edge_weight(self) -> NDArray[np.float32] | None:
        """The weight of each edge of `edge_index`; None where edges have none."""
        return self.edge_kind.weights(self._by_edge) if self.edge_kind.weighted else None

    @property
    def edge_attr(self) -> NDArray[np.float32] | None:
        """The feature row of each edge of `edge_index`; None where edges have none."""
        return self.edge_kind.features(self._by_edge) if self.edge_kind.columns else None

    @property
    def incoming_weights(self) -> NDArray[np.float32] | None:
        """The weight with which each entry of ``indices`` comes into its row; None: all 1."""
        return self.edge_kind.incoming_weights(self.edge_values)

    @property
    def _leading_out(self) -> NDArray[np.bool_]:
        """Whether there is an edge from the row to the column of each entry."""
        return self.edge_kind.directions(self.edge_values) & OUTGOING != 0

    @property
    def _by_edge(self) -> Values:
        """What each edge of `edge_index` carries: a row holds what comes in, not what leads out."""
        if not self.directed:
            return self.edge_values
        back = reverse_of(self.indptr.copy(), self.indices.copy())
        return self.edge_values[back[self._leading_out]]

    @property
    def edges(self) -> NDArray[np.int64]:
        """``[num_edges, 2]`` ids, u < v, whatever their direction."""
        once = self.sources < self.indices
        return np.stack([self.ids[self.sources[once]], self.ids[self.indices[once]]], axis=1)

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of the content; the same however the graph came to be."""
        plain, header = self.edge_kind == PLAIN, [self.num_nodes, self.num_features]
        header += [self.num_classes, *(() if plain else self.edge_kind)]
        content = np.array(header, dtype="<i8").tobytes() + self.tree.root
        return hashlib.sha256((_FORMAT if plain else _FORMAT_WITH_VALUES) + content).hexdigest()

    @cached_property
    def tree(self) -> MerkleTree:
        """The Merkle tree over all nodes, whose root the fingerprint is made of."""
        return MerkleTree.of(self.pages)

    def proof(self, node: int | str) -> Proof:
        """That a node is in the graph, or that it is not; ``proof.root()`` must be `tree`'s."""
        return self.tree.proof(int(one_id(node, "node", "Graph.proof")))

    # -- building --------------------------------------------------------------------------------

    @classmethod
    def open(cls, folder: str | Path) -> Graph:
        """The graph of a graph store, which `grapheraser import` makes; read where it lies.

        Every byte is checked against its digest once. After that the system reads the pages that
        are touched, and takes their memory back when it needs it.
        """
        return stored.open_graph(cls, Path(folder))

    @classmethod
    def _of_fields(cls, fields: dict[str, Any], name: str) -> Graph:
        """A graph of checked fields; dense features go straight into pages."""
        if sp.issparse(fields["x"]):
            return cls(**fields, name=name)
        dense, around = fields.pop("x"), fields["ids"][fields["indices"]]
        known = {part: fields[part] for part in ("ids", "y", "role", "indptr")}
        names = NO_NAMES if fields["names"] is None else fields["names"]
        rows = Rows(**known, neighbours=around, x=dense, values=fields["edge_values"], names=names)
        return cls.of_pages(Pages.of(rows, fields.pop("edge_kind")), name=name, **fields)

    # -- looking things up ------------------------------------------------------------------

    def ids_of(self, nodes: ArrayLike) -> NDArray[np.int64]:
        """The ids of what names nodes: ids, names, or a mask over all nodes of this graph.

        In a list, range, array, tensor, or pandas index or series. The index of a boolean series
        names its nodes, unless it only counts rows.
        """
        return ids_among(nodes, lambda: self.ids)

    def names_of(self, nodes: ArrayLike) -> Names:
        """What these nodes are called: their names, or their ids where they have none."""
        ids = self.ids_of(nodes)
        return self.pages.names_at(self.places(ids)) if self.named else names_of(ids.tolist())

    def contains(self, nodes: ArrayLike) -> NDArray[np.bool_]:
        """Whether each id is a node of this graph."""
        ids = nodes if is_plain(nodes) else self.ids_of(nodes)
        found: NDArray[np.bool_] = located(self.table, ids) != NOWHERE
        return found

    def places(self, nodes: ArrayLike) -> NDArray[np.int64]:
        """Where each id lies in the pages; unknown ids are an error."""
        ids = nodes if is_plain(nodes) else self.ids_of(nodes)
        if len(ids) == 0:
            return ids
        places: NDArray[np.int64] = located(self.table, ids)
        if places[places.argmin()] == NOWHERE:  # all others are larger
            gone = np.unique(ids[places == NOWHERE]).tolist()
            raise UnknownNodeError.of(as_given(nodes, gone), len(ids))
        return places

    def positions(self, nodes: ArrayLike) -> NDArray[np.int64]:
        """Row of each id; unknown ids are an error."""
        places = self.places(nodes)
        return self._before[places // ROOM] + places % ROOM

    def places_at(self, positions: NDArray[np.int64]) -> NDArray[np.int64]:
        """Where the nodes of these rows lie in the pages."""
        pages = np.searchsorted(self._before, positions, side="right") - 1
        return pages * ROOM + positions - self._before[pages]

    def ids_at(self, positions: NDArray[np.int64]) -> NDArray[np.int64]:
        """The ids of the nodes of these rows."""
        ids: NDArray[np.int64] = nodes_at(self.table, self.places_at(positions))
        return ids

    def labels(self, nodes: ArrayLike) -> NDArray[np.int64]:
        """The class of each id, -1 where it is not known."""
        labels: NDArray[np.int64] = labels_at(self.table, self.places(nodes))
        return labels

    def roles(self, nodes: ArrayLike) -> NDArray[np.int8]:
        """The role of each id."""
        places = self.places(nodes)
        roles: NDArray[np.int8] = roles_at(self.table, places) if len(places) else _NO_ROLES
        return roles

    def has_edges(self, pairs: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Whether each pair of (known) ids ``[m, 2]`` is an edge."""
        self.places(pairs.ravel())
        indptr, around = neighbour_rows(self.table, self.places(pairs[:, 0]))
        found = np.zeros(len(pairs), dtype=bool)
        for row, other in enumerate(pairs[:, 1].tolist()):
            near = around[indptr[row] : indptr[row + 1]]
            at = int(np.searchsorted(near, other))
            found[row] = at < len(near) and near[at] == other
        return found

    def values_between(self, nodes: NDArray[np.int64], others: NDArray[np.int64]) -> Values:
        """What the entries of ``others`` in the rows of ``nodes`` carry, all by id."""
        if not self.edge_kind.width:
            return NO_VALUES
        values: Values = entry_values(self.table, self.places(nodes), others)
        return values

    def neighbours(self, node: int | str) -> NDArray[np.int64]:
        """Ids of the neighbours of one node, sorted."""
        return self.around([node])

    def around(self, nodes: ArrayLike) -> NDArray[np.int64]:
        """Ids of the neighbours of some nodes, sorted, each once."""
        return np.unique(neighbour_rows(self.table, self.places(nodes))[1])

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
        inner = self._induced(nodes)
        return replace(inner, **fresh(names=self.names_of(inner.ids))) if self.named else inner

    def _induced(self, nodes: ArrayLike) -> Graph:
        """The same, without names."""
        ids = np.unique(self.ids_of(nodes))
        places = self.places(ids)
        fields = fresh(
            ids=ids,
            **self._between(ids, places),
            **self._features(places),
            y=labels_at(self.table, places),
            role=roles_at(self.table, places),
        )
        return Graph(**fields, **self._schema, edge_kind=self.edge_kind)

    def _between(self, ids: NDArray[np.int64], places: NDArray[np.int64]) -> dict[str, Any]:
        """The edges between sorted ids, which lie at these places."""
        indptr, indices = induced_edges(self.table, places, ids)
        if not self.edge_kind.width:
            return {"indptr": indptr, "indices": indices, "edge_values": NO_VALUES}
        carried = self.values_between(np.repeat(ids, np.diff(indptr)), ids[indices])
        return {"indptr": indptr, "indices": indices, "edge_values": carried}

    def _features(self, places: NDArray[np.int64]) -> dict[str, Any]:
        indptr, columns, values = feature_rows(self.table, places)
        kind = np.int32 if len(columns) < 2**31 else np.int64
        parts, shape = (values, columns, indptr.astype(kind)), (len(places), self.num_features)
        return {"x": sp.csr_array(parts, shape=shape)}

    def trained_subgraph(self, nodes: ArrayLike) -> Graph:
        """The subgraph on these nodes as shards see it: only training nodes have labels."""
        inner = self._induced(nodes)
        trained = inner.role == TRAIN
        if trained.all():
            return inner
        return replace(inner, **fresh(y=np.where(trained, inner.y, UNLABELLED)))

    @cached_property
    def training_graph(self) -> Graph:
        """The nodes that shards hold and the edges between them: all that a partitioner sees."""
        return self.trained_subgraph(self.sharded_nodes)

    def training_view(self) -> Graph:
        """The `training_graph` with edges and features that are put together when asked for.

        It holds on to this graph, so nothing that lasts should hold it.
        """
        if "training_graph" in self.__dict__:
            return self.training_graph
        view = object.__new__(Graph)
        ids = self.sharded_nodes
        places = self.places(ids)
        y, role = labels_at(self.table, places), roles_at(self.table, places)
        fields = fresh(ids=ids, y=np.where(role == TRAIN, y, UNLABELLED), role=role)
        schema = {**self._schema, "edge_kind": self.edge_kind, "names": None}
        view.__dict__.update(fields, **schema, _origin=self)
        return view

    def adjacency_blocks(self, size: int = 1 << 17) -> Iterator[AdjacencyBlock]:
        """The neighbours of all nodes by position, in blocks of so many rows.

        Of a `training_view` they are looked up block by block, and never held all at once.
        """
        origin: Graph | None = None if "indices" in self.__dict__ else self.__dict__.get("_origin")
        if origin is not None:
            ranks = np.full(len(origin.pages.pages) * ROOM, -1, dtype=np.int32)
            places = origin.places(self.ids)
            ranks[places] = np.arange(len(places), dtype=np.int32)
        for low in range(0, self.num_nodes, size):
            high = min(low + size, self.num_nodes)
            if origin is None:
                first, last = self.indptr[low], self.indptr[high]
                rows = self.indptr[low : high + 1] - first, self.indices[first:last]
            else:
                rows = ranked_rows(origin.table, places[low:high], ranks)
            yield AdjacencyBlock(low, *rows)

    def with_context(self, context: str) -> Graph:
        """The same data with other nodes in shards; `GraphEraser.fit` calls it with its argument.

        Args:
            context: ``"none"``: training nodes alone; ``"unlabelled"``: context nodes too;
                ``"all"``: validation and test nodes as well.
        """
        one_of("context", "Graph.with_context", context, tuple(SHARDED_ROLES))
        if context == self.context:
            return self
        made = object.__new__(Graph)
        kept = {k: v for k, v in self.__dict__.items() if k not in _OF_CONTEXT}
        made.__dict__.update(kept, context=context)
        return made

    def without(self, request: Request | Sequence[Request] | Removal) -> Graph:
        """A new graph without the data that the request names."""
        removal = request if isinstance(request, Removal) else coalesce(self, request)
        gone = self.places(removal.nodes)
        indptr, around = neighbour_rows(self.table, gone)
        near = np.stack([around, np.repeat(removal.nodes, indptr[1:] - indptr[:-1])], axis=1)
        near = near[ranks(around, removal.nodes) < 0]
        pairs = np.concatenate([near, removal.edges, removal.edges[:, ::-1]])
        touched = np.unique(np.concatenate([pairs[:, 0], removal.features, removal.labels]))
        entries = np.stack([self.places(pairs[:, 0]), pairs[:, 1]], axis=1)
        entries = entries[np.lexsort((entries[:, 1], entries[:, 0]))]
        pages = self.pages.without(gone, entries, self.places(removal.features))
        if len(removal.labels):
            places = located(pages.table, removal.labels)
            role = roles_at(pages.table, places)
            role[role == TRAIN] = CONTEXT
            pages = pages.with_labels(places, np.full(len(places), UNLABELLED), role)
        graph = self._changed(pages, touched)
        lost = self._sharded_among(removal.nodes)
        if self.context == "none":  # then a node without a label leaves its shard
            lost += self._sharded_among(removal.labels)
        return graph._counted(self, -self.trained_among(removal), -lost)

    def trained_among(self, removal: Removal) -> int:
        """How many training nodes a removal takes: nodes that go, and those without a label."""
        named = np.concatenate([removal.nodes, removal.labels])
        return int((self.roles(named) == TRAIN).sum())

    def with_node(
        self,
        node: int | str,
        features: ArrayLike | sp.sparray,
        label: int | str,
        neighbours: ArrayLike,
        *,
        edge_weight: ArrayLike | None = None,
        edge_attr: ArrayLike | None = None,
    ) -> Graph:
        """A new graph with one more training node.

        Args:
            node: its id, or its name where nodes have names.
            features: its feature row.
            label: its class, or the name of it.
            neighbours: ids of its neighbours; in a directed graph edges lead both ways.
            edge_weight: one number for each neighbour, where edges have weights.
            edge_attr: one row for each neighbour, where edges have features.
        """
        carried = {"edge_weight": edge_weight, "edge_attr": edge_attr}
        kind = self.edge_kind
        return self.updated(one_training_node(kind, node, features, label, neighbours, **carried))

    def updated(self, changes: GraphChange | Sequence[GraphChange] | Edit) -> Graph:
        """A new graph after additions, changes and deletions; the latter come first.

        Args:
            changes: any of `AddNodes`, `AddEdges`, `SetFeatures`, `SetLabels`, `Nodes`, `Edges`,
                `Features` and `Labels`, or a list of them.
        """
        edit = changes if isinstance(changes, Edit) else edit_of(self, changes)
        check_new_names(edit.nodes, edit.names, self.named)
        rest = self if edit.removal is NOTHING else self.without(edit.removal)
        named_first = int((rest.roles(edit.labels) == CONTEXT).sum())
        in_shards = int(np.isin(edit.role, SHARDED_ROLES[self.context]).sum())
        in_shards += named_first if self.context == "none" else 0
        graph = rest._changed(edited_pages(rest.pages, edit), edit.touched)
        return graph._counted(rest, int((edit.role == TRAIN).sum()) + named_first, in_shards)

    def without_weights(self) -> Graph:
        """The same graph, its edges without weights."""
        return self._of_kind(self.edge_kind._replace(weighted=False))

    def without_edge_attr(self) -> Graph:
        """The same graph, its edges without features of their own."""
        return self._of_kind(self.edge_kind._replace(columns=0))

    def undirected(self) -> Graph:
        """The same graph with edges that lead both ways.

        Where they did before with other weights or features, these get the mean.
        """
        return self._of_kind(self.edge_kind._replace(directed=False))

    def _of_kind(self, kind: EdgeKind) -> Graph:
        if kind == self.edge_kind:
            return self
        back = reverse_of(self.indptr.copy(), self.indices.copy())
        values = converted(self.edge_values, back, self.edge_kind, kind)
        if not self.pages.dense:
            return replace(self, edge_kind=kind, **fresh(edge_values=values))
        pages = Pages.of(self.pages.rows()._replace(values=values), kind)
        return Graph.of_pages(pages, **self._schema)

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
        if "pages" not in self.__dict__:
            return replace(self, **fresh(role=role))
        pages = self.pages.with_labels(self._all_places, self.y, role)
        return Graph.of_pages(pages, **self._schema)

    @property
    def _schema(self) -> dict[str, Any]:
        names = ("num_classes", "name", "notes", "context", "class_names")
        return {name: getattr(self, name) for name in names}

    def with_pages(self, pages: Pages, *, trained: int = 0, sharded: int = 0) -> Graph:
        """A graph of other pages, with so many more training nodes and nodes in shards."""
        return Graph.of_pages(pages, **self._schema)._counted(self, trained, sharded)

    def _changed(self, pages: Pages, touched: NDArray[np.int64]) -> Graph:
        """The graph of pages that differ from these in the touched nodes, and in nodes gone."""
        known = self.__dict__.get("tree")
        tree = None if known is None else known.changed(pages, touched)
        # Notes may speak of what is gone.
        return Graph.of_pages(pages, **{**self._schema, "notes": ()}, tree=tree)

    def _counted(self, before: Graph, trained: int, sharded: int) -> Graph:
        """This graph, which has so many training nodes and nodes in shards more than before."""
        for name, more in (("num_train", trained), ("num_sharded", sharded)):
            if name in before.__dict__:
                self.__dict__[name] = before.__dict__[name] + more
        return self

    def _sharded_among(self, nodes: NDArray[np.int64]) -> int:
        return int(_IN_SHARDS[self.context][self.roles(nodes)].sum())
