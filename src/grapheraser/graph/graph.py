"""The graph: an immutable value whose node ids never change."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from grapheraser.checks import one_of, real, whole
from grapheraser.errors import GraphError, UnknownNodeError
from grapheraser.graph import build
from grapheraser.graph.arrays import owned, owned_csr, read_only
from grapheraser.graph.build import ClassNames
from grapheraser.graph.changes.edit import Edit, edit_of, edited_pages, relearning
from grapheraser.graph.changes.requests import NOTHING, Removal, Request, coalesce
from grapheraser.graph.changes.updates import GraphChange, one_training_node
from grapheraser.graph.contents import AdjacencyBlock, Contents, PartContents
from grapheraser.graph.csr import reverse_of, slices_of
from grapheraser.graph.edge_values import NO_VALUES, PLAIN, EdgeKind, Values, converted
from grapheraser.graph.encoding import Encoding, means_of
from grapheraser.graph.formats import from_tables as tables
from grapheraser.graph.formats import known, networks, npz, ogb, pyg, typed
from grapheraser.graph.ids import (
    KEYED,
    Names,
    as_given,
    check_new_names,
    ids_among,
    is_plain,
    keyed_ids,
    listed,
    names_of,
    new_keyed_ids,
    one_id,
)
from grapheraser.graph.labels import NUMBERS, SEVERAL, Frame, LabelKind, moments_of
from grapheraser.graph.pages import stored
from grapheraser.graph.pages.pages import Pages
from grapheraser.graph.proof.merkle import MerkleTree
from grapheraser.graph.roles import (
    CONTEXT,
    DEFAULT_CONTEXT,
    SHARDED_ROLES,
    TEST,
    TRAIN,
    UNLABELLED,
    VALIDATION,
)
from grapheraser.graph.types import Types
from grapheraser.kernels.paged import (
    NOWHERE,
    OUTGOING,
    ROOM,
    Table,
    labels_at,
    located,
    neighbour_rows,
    nodes_at,
    roles_at,
    target_rows,
)
from grapheraser.kernels.sets import ranks
from grapheraser.receipts import secret
from grapheraser.receipts.tree import Proof
from grapheraser.seeding import generator

_FORMAT, _FORMAT_WITH_VALUES = b"grapheraser-graph-2", b"grapheraser-graph-2-values"
_TYPED = b"-typed"
_ARRAYS = ("ids", "indptr", "indices", "x", "y", "role", "edge_kind", "edge_values", "names")
_SCHEMA = ("label_kind", "name", "notes", "context", "inferred", "encoding", "types")
# By context and role: whether a node is in a shard.
_IN_SHARDS = {name: np.isin(np.arange(4), roles) for name, roles in SHARDED_ROLES.items()}
_NO_ROLES: NDArray[np.int8] = np.zeros(0, dtype=np.int8)
_NO_NODES: NDArray[np.int64] = np.zeros(0, dtype=np.int64)
# Cached properties that follow from `context`.
_OF_CONTEXT = ("sharded_nodes", "num_sharded", "training_graph")


@dataclass(frozen=True, eq=False, init=False)
class Graph:
    """A graph with features and labels, sorted by node id; undirected unless it says otherwise.

    Nodes are named by ids that survive every deletion. Arrays are indexed by *position*, the rank
    of an id among those present; `positions` translates. Build one with `Graph.from_arrays`,
    `from_pyg` or `from_npz`, which check the data; this constructor trusts its arguments. It copies
    arrays that can be written to, and shares those that are read-only.

    A graph that came out of a change is held in `pages`, most of which it shares with the graph
    before; an array is put together when it is first asked for (see `graph.contents`). What has to
    be quick on large graphs reads the pages, through `table` and by place (see `kernels.paged`).

    Attributes:
        ids, indptr, indices, x, y, role: arrays; see the properties of these names.
        edge_kind, edge_values: likewise, where edges carry anything.
        names: likewise, where nodes have names.
        label_kind: what labels are: classes, several labels per node, or numbers; part of the
            schema, so deleting the last node of a class does not change it.
        name: for people; no part of the fingerprint.
        notes: what was put right while the graph was built; gone after a change.
        context: which nodes are in shards beside the training nodes: ``none``, ``unlabelled`` (the
            context nodes) or ``all``; see `with_context`. No part of the fingerprint.
        inferred: the parts of the schema that were found in the data and not declared, such as
            ``classes``; receipts name them (see `receipts.claim`). No part of the fingerprint.
        encoding: the rule by which columns of a table became features; None without a table.
        types: the types of nodes and their relations; None where nodes have no types.
    """

    _contents: Contents
    label_kind: LabelKind
    name: str
    notes: tuple[str, ...]
    context: str
    inferred: tuple[str, ...]
    encoding: Encoding | None
    types: Types | None

    def __init__(
        self,
        ids: NDArray[np.int64],
        indptr: NDArray[np.int64],
        indices: NDArray[np.int32],
        x: sp.csr_array,
        y: NDArray[Any],
        role: NDArray[np.int8],
        num_classes: int = 1,
        name: str = "graph",
        notes: tuple[str, ...] = (),
        edge_kind: EdgeKind = PLAIN,
        edge_values: Values = NO_VALUES,
        context: str = DEFAULT_CONTEXT,
        names: Names | None = None,
        class_names: ClassNames = (),
        inferred: tuple[str, ...] = (),
        label_kind: LabelKind | None = None,
        encoding: Encoding | None = None,
        types: Types | None = None,
    ) -> None:
        kind = label_kind or LabelKind(count=num_classes, names=class_names)
        labels, targets = kind.encoded(y)
        nodes = {"ids": owned(ids), "y": owned(labels), "role": owned(role)}
        edges = {"indptr": owned(indptr), "indices": owned(indices)}
        carried = {
            "edge_values": owned(edge_values),
            "names": names if names is None else owned(names),
            "targets": owned(targets),
        }
        contents = Contents.of_arrays(edge_kind, owned_csr(x), **nodes, **edges, **carried)
        schema = (kind, name, notes, context, inferred, encoding, types)
        vars(self).update(_contents=contents, **dict(zip(_SCHEMA, schema, strict=True)))

    @classmethod
    def of_contents(cls, contents: Contents, label_kind: LabelKind, **known: Any) -> Graph:
        """Make a graph of contents; ``known`` is the rest of its schema, and cached properties."""
        graph = object.__new__(cls)
        schema: dict[str, Any] = {"name": "graph", "notes": (), "context": DEFAULT_CONTEXT}
        schema |= {"inferred": (), "encoding": None, "types": None}
        vars(graph).update(_contents=contents, label_kind=label_kind, **(schema | known))
        return graph

    @classmethod
    def of_pages(
        cls, pages: Pages, label_kind: LabelKind, *, tree: MerkleTree | None = None, **known: Any
    ) -> Graph:
        """Make a graph that is held in pages; with its Merkle tree, where that is known."""
        made = Contents.of_pages(pages) if tree is None else Contents.of_pages(pages, tree=tree)
        return cls.of_contents(made, label_kind, **known)

    def with_fields(self, **changes: Any) -> Graph:
        """Return the graph with other arrays or other parts of its schema, which are trusted."""
        fields = {name: getattr(self, name) for name in (*_ARRAYS, *_SCHEMA)}
        if "num_classes" in changes:
            fields["label_kind"] = None
        return Graph(**fields | changes)

    # -- from and to other formats: a module each ------------------------------------------------

    from_arrays = classmethod(build.from_arrays)
    from_npz = classmethod(npz.from_npz)
    to_npz = npz.to_npz
    from_tables = classmethod(tables.from_tables)
    to_tables = tables.to_tables
    from_networkx = classmethod(networks.from_networkx)
    to_networkx = networks.to_networkx
    from_scipy = classmethod(networks.from_scipy)
    to_scipy = networks.to_scipy
    from_pyg = classmethod(pyg.from_pyg)
    to_pyg = pyg.to_pyg
    from_typed_tables = classmethod(typed.from_typed_tables)
    from_facts = classmethod(typed.from_facts)
    facts = property(typed.facts)
    from_ogb = classmethod(ogb.from_ogb)
    from_file = classmethod(known.from_file)
    open = classmethod(stored.open_graph)

    # -- arrays, pages and what follows from them ------------------------------------------------

    @property
    def ids(self) -> NDArray[np.int64]:
        """Node ids ``[n]``, sorted, unique."""
        return self._contents.ids

    @property
    def indptr(self) -> NDArray[np.int64]:
        """Ends of the rows of `indices` ``[n + 1]``: neighbours of i are from ``indptr[i]`` on."""
        return self._contents.indptr

    @property
    def indices(self) -> NDArray[np.int32]:
        """Positions of neighbours: symmetric CSR, no self-loops, no duplicates."""
        return self._contents.indices

    @property
    def x(self) -> sp.csr_array:
        """Features, float32 CSR ``[n, num_features]``: sorted columns, no explicit zeros."""
        return self._contents.x

    @property
    def y(self) -> NDArray[Any]:
        """Labels as `label_kind` says.

        Classes ``[n]`` in ``[0, num_classes)``, -1 where they are not known; several labels
        ``[n, num_classes]`` of 0, 1, and -1 where they are not known; numbers likewise, or ``[n]``
        where there is one target, NaN where they are not known.
        """
        kind, contents = self.label_kind, self._contents
        return contents.y if kind.is_classes else kind.decoded(contents.y, contents.targets)

    @property
    def labelled(self) -> NDArray[np.bool_]:
        """Mask over all nodes of those with a label, or with any target that is known."""
        return self._contents.y != UNLABELLED

    @property
    def num_classes(self) -> int:
        """The number of classes, or of targets where labels are something else."""
        return self.label_kind.count

    @property
    def class_names(self) -> ClassNames:
        """Names of all classes or targets, in their order, where they have any."""
        return self.label_kind.names

    @property
    def role(self) -> NDArray[np.int8]:
        """Roles ``[n]``: 1 training, 2 test, 3 validation, 0 context nodes, which are no other."""
        return self._contents.role

    @property
    def edge_kind(self) -> EdgeKind:
        """Directions, weights and features of their own that edges have or lack."""
        return self._contents.edge_kind

    @property
    def edge_values(self) -> Values:
        """Values of the entries of `indices` ``[len(indices), edge_kind.width]``, float32.

        See `graph.edge_values`; `edge_weight` and `edge_attr` take it apart.
        """
        return self._contents.edge_values

    @property
    def names(self) -> Names | None:
        """Names of the nodes ``[n]``, which their ids follow from; None where they have none."""
        return self._contents.names

    @property
    def pages(self) -> Pages:
        """The pages that hold the graph."""
        return self._contents.pages

    @property
    def table(self) -> Table:
        """The pages as compiled code reads them; they live as long as this graph."""
        return self._contents.pages.table

    def __repr__(self) -> str:
        labels = {SEVERAL: "labels", NUMBERS: "numbers"}.get(self.label_kind.name, "classes")
        others = {"validation": self.validation_nodes, "context": self.context_nodes}
        parts = [
            f"nodes={self.num_nodes:,}, edges={self.num_edges:,}, features={self.num_features:,}",
            f"{labels}={self.num_classes}",
            f"train={len(self.train_nodes):,}, test={len(self.test_nodes):,}",
            *(["directed"] if self.directed else []),
            *(["weighted"] if self.edge_kind.weighted else []),
        ]
        if self.edge_kind.columns and self.types is None:
            parts.append(f"edge features={self.edge_kind.columns:,}")
        parts += ["named"] if self.named else []
        parts += [] if self.types is None else [f"types={'|'.join(self.types.names)}"]
        parts += [f"{name}={len(ids):,}" for name, ids in others.items() if len(ids)]
        return f"Graph({self.name!r}, {', '.join(parts)})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Graph) and self.fingerprint == other.fingerprint

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    @property
    def num_nodes(self) -> int:
        return self._contents.num_nodes

    @property
    def num_edges(self) -> int:
        """Edges, each counted once; in a directed graph, pairs of nodes with an edge or two."""
        return self._contents.num_entries // 2

    @property
    def num_features(self) -> int:
        return self._contents.num_features

    @property
    def named(self) -> bool:
        """True where nodes have names; see `names`."""
        return self._contents.named

    @property
    def called_by_text(self) -> bool:
        """True where text stands for nodes: names, or numbers with their type."""
        return self.named or self.types is not None

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
        return self.ids[(self.role == TEST) & self.labelled]

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
    def label_moments(self) -> NDArray[np.int64]:
        """Exact sums over the targets of the training nodes; see `labels.moments_of`."""
        return self._moments_among(self.train_nodes)

    @cached_property
    def label_frame(self) -> Frame:
        """Where the targets of the training nodes lie."""
        return Frame.of(self.label_moments)

    def _moments_among(self, nodes: NDArray[np.int64]) -> NDArray[np.int64]:
        """Sum the targets of those of the nodes (ids) that are there and are trained on."""
        places = located(self.table, nodes)
        places = places[places != NOWHERE]
        places = places[roles_at(self.table, places) == TRAIN]
        return moments_of(self.label_kind.fixed(self.labels_at(places)))

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
        """True where edges lead from one node to another; see `from_arrays`."""
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
        """Mask of the entries with an edge from the row to the column."""
        return self.edge_kind.directions(self.edge_values) & OUTGOING != 0

    @property
    def _by_edge(self) -> Values:
        """Values of the edges of `edge_index`: a row holds what comes in, not what leads out."""
        if not self.directed:
            return self.edge_values
        back = reverse_of(self.indptr, self.indices)
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
        header += [self.num_classes, *(() if plain else self.edge_kind), *self.label_kind.exponents]
        content = np.array(header, dtype="<i8").tobytes() + self.tree.root
        form = _FORMAT if plain else _FORMAT_WITH_VALUES
        if not self.label_kind.is_classes:
            form += b"-" + self.label_kind.name.encode()
        if self.types is not None:
            form += _TYPED + hashlib.sha256(self.types.content).digest()
        return hashlib.sha256(form + content).hexdigest()

    @property
    def tree(self) -> MerkleTree:
        """The Merkle tree over all nodes, whose root the fingerprint is made of."""
        return self._contents.tree

    def proof(self, node: int | str) -> Proof:
        """Prove that a node is in the graph, or not; ``proof.root()`` must be `tree`'s."""
        (inside,) = self.inside([one_id(node, "node", "Graph.proof")])
        return self.tree.proof(int(inside))

    # -- looking things up ------------------------------------------------------------------

    def ids_of(self, nodes: ArrayLike) -> NDArray[np.int64]:
        """Return the ids of nodes, from ids, names, or a mask over all nodes of this graph.

        In a list, range, array, tensor, or pandas index or series. The index of a boolean series
        names its nodes, unless it only counts rows.
        """
        if self.types is not None and getattr(nodes, "dtype", np.dtype(object)).kind not in "iu":
            given = listed(nodes, "node ids")
            if not isinstance(given, np.ndarray):
                return np.array(self.inside(given), dtype=np.int64)
        found = ids_among(nodes, lambda: self.ids)
        return np.array(self.inside(found.tolist()), dtype=np.int64) if self.keyed else found

    @cached_property
    def keyed(self) -> bool:
        """True where ids stand for numbers; see `with_keyed_ids`."""
        none = self.named or not self.num_nodes or self.types is not None
        return not none and int(self.ids_at(np.zeros(1, dtype=np.int64))[0]) >= KEYED

    def inside(self, nodes: Sequence[int]) -> Sequence[int]:
        """Return the ids of nodes that are given by keyed numbers or with their types."""
        if self.types is not None:
            return [self.types.resolved(node, named=self.named) for node in nodes]
        if not self.keyed or not secret.secret_file(secret.IDS).exists():
            return nodes
        return keyed_ids(nodes, secret.secret_of(secret.IDS))

    def with_keyed_ids(self) -> Graph:
        """Return the graph with ids that stand for its own under a secret of the folder of keys.

        Numbers mean the same nodes as before wherever nodes are asked about, forgotten and added;
        what is listed and kept are keyed ids, and they show no gaps. Without the secret nobody can
        tell which number an id stands for, whoever lost it included.
        """
        if self.named:
            raise GraphError("only numbers get keyed ids (found names, which have no gaps).")
        if self.types is not None:
            raise GraphError("the nodes of typed graphs have no keyed ids.")
        ids = new_keyed_ids(self.ids, secret.secret_of(secret.IDS))
        order = np.argsort(ids)
        if (np.diff(ids[order]) == 0).any():
            raise GraphError("two numbers have the same keyed id.", hint="use another secret.")
        rank = np.empty(len(ids), dtype=np.int32)
        rank[order] = np.arange(len(ids))
        rows, columns = rank[self.sources], rank[self.indices]
        entries = np.lexsort((columns, rows))
        carried = self.edge_values[entries] if self.edge_kind.width else self.edge_values
        ends = np.cumsum(np.bincount(rows, minlength=len(ids)))
        return self.with_fields(
            ids=ids[order],
            x=self.x[order],
            y=self.y[order],
            role=self.role[order],
            indptr=np.concatenate([[0], ends]).astype(np.int64),
            indices=columns[entries],
            edge_values=carried,
        )

    def names_of(self, nodes: ArrayLike) -> Names:
        """Return the names of these nodes, or their ids where they have none."""
        ids = self.ids_of(nodes)
        if self.types is not None and not self.named:
            return self.types.spelled(ids)
        return self.pages.names_at(self.places(ids)) if self.named else names_of(ids.tolist())

    def contains(self, nodes: ArrayLike) -> NDArray[np.bool_]:
        """Mark the ids that are nodes of this graph."""
        ids = nodes if is_plain(nodes) else self.ids_of(nodes)
        found: NDArray[np.bool_] = self._located(ids) != NOWHERE
        return found

    def _located(self, ids: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the place of each id, or of the number that it stands for, or `NOWHERE`."""
        places: NDArray[np.int64] = located(self.table, ids)
        # The least of all numbers is `NOWHERE`.
        if len(places) and places[places.argmin()] == NOWHERE and self.keyed:
            inside = np.array(self.inside(ids.tolist()), dtype=np.int64)
            places = located(self.table, inside)
        return places

    def places(self, nodes: ArrayLike) -> NDArray[np.int64]:
        """Return the place of each id in the pages; unknown ids are an error."""
        ids = nodes if is_plain(nodes) else self.ids_of(nodes)
        if len(ids) == 0:
            return ids
        places = self._located(ids)
        if places[places.argmin()] == NOWHERE:  # all others are larger
            gone = np.unique(ids[places == NOWHERE]).tolist()
            raise UnknownNodeError.of(as_given(nodes, gone), len(ids))
        return places

    def positions(self, nodes: ArrayLike) -> NDArray[np.int64]:
        """Return the position of each id; unknown ids are an error."""
        places = self.places(nodes)
        return self._contents.starts[places // ROOM] + places % ROOM

    def places_at(self, positions: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the places of these positions in the pages."""
        pages = np.searchsorted(self._contents.starts, positions, side="right") - 1
        return pages * ROOM + positions - self._contents.starts[pages]

    def ids_at(self, positions: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the ids at these positions."""
        ids: NDArray[np.int64] = nodes_at(self.table, self.places_at(positions))
        return ids

    def labels(self, nodes: ArrayLike) -> NDArray[Any]:
        """Return the class of each id, -1 where it is not known; or its targets, as in `y`."""
        return self.labels_at(self.places(nodes))

    def labels_at(self, places: NDArray[np.int64]) -> NDArray[Any]:
        """Return the labels of some nodes.

        Args:
            places: where the nodes lie in the pages.
        """
        labels: NDArray[np.int64] = labels_at(self.table, places)
        kind = self.label_kind
        if kind.is_classes:
            return labels
        return kind.decoded(labels, target_rows(self.table, places, kind.row_bytes))

    def roles(self, nodes: ArrayLike) -> NDArray[np.int8]:
        """Return the role of each id."""
        places = self.places(nodes)
        roles: NDArray[np.int8] = roles_at(self.table, places) if len(places) else _NO_ROLES
        return roles

    def has_edges(self, pairs: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Mark the pairs of (known) ids ``[m, 2]`` that are edges."""
        self.places(pairs.ravel())
        indptr, around = neighbour_rows(self.table, self.places(pairs[:, 0]))
        found = np.zeros(len(pairs), dtype=bool)
        for row, other in enumerate(pairs[:, 1].tolist()):
            near = around[indptr[row] : indptr[row + 1]]
            at = int(np.searchsorted(near, other))
            found[row] = at < len(near) and near[at] == other
        return found

    def values_between(self, nodes: NDArray[np.int64], others: NDArray[np.int64]) -> Values:
        """Return the values of the entries of ``others`` in the rows of ``nodes``, all by id."""
        return self._contents.values_between(self.places(nodes), others)

    def neighbours(self, node: int | str) -> NDArray[np.int64]:
        """Return the ids of the neighbours of one node, sorted."""
        return self.around([node])

    def around(self, nodes: ArrayLike) -> NDArray[np.int64]:
        """Return the ids of the neighbours of some nodes, sorted, each once."""
        return np.unique(neighbour_rows(self.table, self.places(nodes))[1])

    def within_hops(self, positions: NDArray[np.int64], hops: int) -> NDArray[np.int64]:
        """Return the sorted positions at most ``hops`` edges away from any of the given ones."""
        reached = frontier = np.unique(positions)
        for _ in range(hops):
            around = self.indices[slices_of(self.indptr, frontier)]
            frontier = np.setdiff1d(around, reached)
            reached = np.union1d(reached, frontier)
        return reached

    # -- making other graphs ----------------------------------------------------------------

    def subgraph(self, nodes: ArrayLike) -> Graph:
        """Return the graph on these nodes and the edges between them; ids stay the same."""
        ids = np.unique(self.ids_of(nodes))
        return self._induced(ids, self.names_of(ids) if self.named else None)

    def _induced(
        self, ids: NDArray[np.int64], names: Names | None = None, *, trained: bool = False
    ) -> Graph:
        """Return the graph on sorted ids; with ``trained``, only training nodes have labels."""
        places, whole = self.places(ids), self._contents
        indptr, indices = whole.adjacency_between(ids, places)
        carried = whole.values_between(np.repeat(places, np.diff(indptr)), ids[indices])
        y, role, targets = self._labels_between(places, trained=trained)
        contents = Contents.of_arrays(
            self.edge_kind,
            whole.features_at(places),
            ids=ids,
            y=y,
            targets=targets,
            role=role,
            indptr=indptr,
            indices=indices,
            edge_values=carried,
            names=names,
        )
        # Shards learn numbers in the frame of the whole graph.
        made = Graph.of_contents(contents, **self._schema)
        if trained and self.label_kind.is_numbers:
            vars(made)["label_frame"] = self.label_frame
        return made

    def _labels_between(
        self, places: NDArray[np.int64], *, trained: bool
    ) -> tuple[NDArray[np.int64], NDArray[np.int8], NDArray[np.uint8]]:
        """Return labels, roles and targets (bytes); with ``trained``, of training nodes alone."""
        y, role = labels_at(self.table, places), roles_at(self.table, places)
        targets = target_rows(self.table, places, self.label_kind.row_bytes)
        if trained:
            y = np.where(role == TRAIN, y, UNLABELLED)
            if targets.shape[1]:
                bare = self.label_kind.decoded(y, targets).copy()
                bare[role != TRAIN] = self.label_kind.unknown
                y, targets = self.label_kind.encoded(bare)
        return y, role, targets

    def trained_subgraph(self, nodes: ArrayLike) -> Graph:
        """Return the subgraph as shards see it: no names, labels of training nodes only."""
        return self._induced(np.unique(self.ids_of(nodes)), trained=True)

    @cached_property
    def training_graph(self) -> Graph:
        """The nodes that shards hold and the edges between them: all that a partitioner sees."""
        return self.trained_subgraph(self.sharded_nodes)

    def training_view(self) -> Graph:
        """Return the `training_graph` with edges and features put together when asked for.

        It holds on to this graph, so nothing that lasts should hold it.
        """
        if "training_graph" in vars(self):
            return self.training_graph
        ids = self.sharded_nodes
        places = self.places(ids)
        y, role, targets = self._labels_between(places, trained=True)
        part = PartContents(self._contents, ids, y, role, targets)
        return Graph.of_contents(part, **self._schema)

    def adjacency_blocks(self, size: int = 1 << 17) -> Iterator[AdjacencyBlock]:
        """Yield the neighbours of all nodes by position, in blocks of so many rows.

        Of a `training_view` they are looked up block by block, and never held all at once.
        """
        return self._contents.adjacency_blocks(size)

    def with_context(self, context: str) -> Graph:
        """Return the graph with other nodes in shards; `GraphEraser.fit` passes its argument on.

        Args:
            context: ``"none"``: training nodes alone; ``"unlabelled"``: context nodes too;
                ``"all"``: validation and test nodes as well.
        """
        one_of("context", "Graph.with_context", context, tuple(SHARDED_ROLES))
        if context == self.context:
            return self
        kept = {name: value for name, value in vars(self).items() if name not in _OF_CONTEXT}
        return Graph.of_contents(kept.pop("_contents"), **kept | {"context": context})

    def with_encoding(self, encoding: Encoding | None) -> Graph:
        """Return the graph with the rule by which its features were made."""
        return Graph.of_contents(self._contents, **self._schema | {"encoding": encoding})

    @cached_property
    def means(self) -> NDArray[np.float32]:
        """The means in place of gaps, one for each of ``encoding.means``."""
        rule = self.encoding
        return means_of(rule, self.x) if rule and rule.means else np.zeros(0, np.float32)

    def without(self, request: Request | Sequence[Request] | Removal) -> Graph:
        """Return a new graph without the data that the request names."""
        removal = request if isinstance(request, Removal) else coalesce(self, request)
        edit = relearning(self, removal)
        return self.bare_without(removal) if edit is None else self.updated(edit)

    def bare_without(self, removal: Removal) -> Graph:
        """Return the graph without some data, and with means as they were before."""
        gone = self.places(removal.nodes)
        indptr, around = neighbour_rows(self.table, gone)
        near = np.stack([around, np.repeat(removal.nodes, indptr[1:] - indptr[:-1])], axis=1)
        near = near[ranks(around, removal.nodes) < 0]
        pairs = np.concatenate([near, removal.edges, removal.edges[:, ::-1]])
        lose = removal.relabelled
        touched = np.unique(np.concatenate([pairs[:, 0], removal.features, lose]))
        entries = np.stack([self.places(pairs[:, 0]), pairs[:, 1]], axis=1)
        entries = entries[np.lexsort((entries[:, 1], entries[:, 0]))]
        pages = self.pages.without(gone, entries, self.places(removal.features))
        if len(lose):
            places = located(pages.table, lose)
            y, targets = self.label_kind.encoded(removal.labels_left(self))
            role = roles_at(pages.table, places)
            role[(role == TRAIN) & (y == UNLABELLED)] = CONTEXT
            pages = pages.with_labels(places, y, role, targets)
        lost = self._sharded_among(removal.nodes)
        if self.context == "none":  # then a node without a label leaves its shard
            lost += self._sharded_among(removal.unlabelled(self))
        counts = -self.trained_among(removal), -lost
        return self._changed(pages, touched, *counts, removal.nodes)

    def trained_among(self, removal: Removal) -> int:
        """Count the training nodes that a removal takes: nodes that go, or lose their label."""
        named = np.concatenate([removal.nodes, removal.unlabelled(self)])
        return int((self.roles(named) == TRAIN).sum())

    def with_node(
        self,
        node: int | str,
        features: ArrayLike | sp.sparray,
        label: ArrayLike,
        neighbours: ArrayLike,
        *,
        edge_weight: ArrayLike | None = None,
        edge_attr: ArrayLike | None = None,
    ) -> Graph:
        """Return a new graph with one more training node.

        Args:
            node: its id, or its name where nodes have names.
            features: its feature row.
            label: its class, or the name of it; or its row of targets, or number.
            neighbours: ids of its neighbours; in a directed graph edges lead both ways.
            edge_weight: one number for each neighbour, where edges have weights.
            edge_attr: one row for each neighbour, where edges have features.
        """
        carried = {"edge_weight": edge_weight, "edge_attr": edge_attr}
        return self.updated(one_training_node(self, node, features, label, neighbours, **carried))

    def updated(self, changes: GraphChange | Sequence[GraphChange] | Edit) -> Graph:
        """Return a new graph after additions, changes and deletions; the latter come first.

        Args:
            changes: any of `AddNodes`, `AddEdges`, `SetFeatures`, `SetLabels`, `Nodes`, `Edges`,
                `Features` and `Labels`, or a list of them.
        """
        edit = changes if isinstance(changes, Edit) else edit_of(self, changes)
        check_new_names(edit.nodes, edit.names, self.named)
        rest = self if edit.removal is NOTHING else self.bare_without(edit.removal)
        named_first = int((rest.roles(edit.labels) == CONTEXT).sum())
        in_shards = int(np.isin(edit.role, SHARDED_ROLES[self.context]).sum())
        in_shards += named_first if self.context == "none" else 0
        trained = int((edit.role == TRAIN).sum()) + named_first
        return rest._changed(edited_pages(rest.pages, edit), edit.touched, trained, in_shards)

    def without_weights(self) -> Graph:
        """Return the graph, its edges without weights."""
        return self._of_kind(self.edge_kind._replace(weighted=False))

    def without_edge_attr(self) -> Graph:
        """Return the graph, its edges without features of their own."""
        return self._of_kind(self.edge_kind._replace(columns=0))

    def undirected(self) -> Graph:
        """Return the graph with edges that lead both ways.

        Where they did before with other weights or features, these get the mean.
        """
        return self._of_kind(self.edge_kind._replace(directed=False))

    def _of_kind(self, kind: EdgeKind) -> Graph:
        if kind == self.edge_kind:
            return self
        if self.types is not None:
            raise GraphError("the relations of a typed graph are what its edges carry.")
        back = reverse_of(self.indptr, self.indices)
        values = converted(self.edge_values, back, self.edge_kind, kind)
        pages = Pages.of(self.pages.rows()._replace(values=values), kind)
        return Graph.of_pages(pages, **self._schema)

    def with_split(self, *, test_share: float = 0.2, seed: int = 0) -> Graph:
        """Return the graph with a random train/test split of its labelled nodes."""
        test_share = real("test_share", "Graph.with_split", test_share, 0, below=1)
        seed = whole("seed", "Graph.with_split", seed)
        labelled = np.flatnonzero(self.labelled)
        shuffled = generator(seed, "split").permutation(labelled)
        num_train = int(len(labelled) * (1 - test_share))
        role = np.zeros(self.num_nodes, dtype=np.int8)
        role[shuffled[:num_train]] = TRAIN
        role[shuffled[num_train:]] = TEST
        if not self._contents.paged:
            return self.with_fields(role=read_only(role))
        labels = self._contents.y, role, self._contents.targets
        pages = self.pages.with_labels(self._contents.all_places, *labels)
        return Graph.of_pages(pages, **self._schema)

    @property
    def _schema(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in _SCHEMA}

    def with_pages(self, pages: Pages, *, trained: int = 0, sharded: int = 0) -> Graph:
        """Return a graph of other pages, with so many more training nodes and nodes in shards."""
        made = Graph.of_pages(pages, **self._schema, **self._counts(trained, sharded))
        if "label_moments" in vars(self) and not trained:
            vars(made)["label_moments"] = self.label_moments
        return made

    def _changed(
        self,
        pages: Pages,
        touched: NDArray[np.int64],
        trained: int,
        sharded: int,
        gone: NDArray[np.int64] = _NO_NODES,
    ) -> Graph:
        """Return the graph of pages that differ in the touched nodes, and in nodes gone."""
        known = self._contents.known_tree
        tree = None if known is None else known.changed(pages, touched)
        # Notes may speak of what is gone.
        schema = {**self._schema, "notes": ()}
        made = Graph.of_pages(pages, **schema, tree=tree, **self._counts(trained, sharded))
        if "label_moments" in vars(self):
            both = np.concatenate([touched, gone])
            more = made._moments_among(both) - self._moments_among(both)
            vars(made)["label_moments"] = self.label_moments + more
        return made

    def _counts(self, trained: int, sharded: int) -> dict[str, Any]:
        """Return the counts after a change that adds these, of those that are known now."""
        known, more = vars(self), {"num_train": trained, "num_sharded": sharded}
        return {name: known[name] + count for name, count in more.items() if name in known}

    def _sharded_among(self, nodes: NDArray[np.int64]) -> int:
        return int(_IN_SHARDS[self.context][self.roles(nodes)].sum())
