"""The data of a graph: pages, and arrays that are put together when they are first asked for."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from grapheraser.graph.arrays import fresh, read_only
from grapheraser.graph.edge_values import NO_VALUES, PLAIN, EdgeKind, Values
from grapheraser.graph.ids import NO_NAMES, Names
from grapheraser.graph.pages.packing import Rows
from grapheraser.graph.pages.pages import Pages
from grapheraser.graph.proof.merkle import MerkleTree
from grapheraser.kernels.paged import (
    ROOM,
    edge_value_rows,
    entry_values,
    feature_rows,
    located,
    neighbour_rows,
)
from grapheraser.kernels.sets import ranks

Ids = NDArray[np.int64]


class AdjacencyBlock(NamedTuple):
    """The neighbours of consecutive nodes."""

    low: int  # the position of the first
    indptr: Ids  # int64, where the neighbours of each begin
    indices: NDArray[np.int32]  # int32, positions of the neighbours


class Contents:
    """The pages and arrays of a `Graph`, which says what each array is; all are read-only.

    It is made of arrays or of pages. Whichever it was not given is made from the other when it is
    first asked for, and kept: a request on a large graph reads pages and never makes an array. Only
    this cache is filled after it was made. A graph is frozen, and shares it with graphs that differ
    in name, notes or context alone.

    Args:
        edge_kind: what edges are.
        num_features: columns of the features.
        named: whether nodes have names.
        known: any of the cached properties, by name.
    """

    def __init__(self, edge_kind: EdgeKind, num_features: int, named: bool, **known: Any) -> None:
        self.edge_kind = edge_kind
        self.num_features = num_features
        self.named = named
        # A cached property that is in the dictionary already is never worked out.
        vars(self).update(fresh(**known))

    @classmethod
    def of_arrays(cls, edge_kind: EdgeKind, x: Any, **arrays: Any) -> Contents:
        """Hold all other arrays, and features that are CSR; dense features go straight to pages."""
        made = cls(edge_kind, int(x.shape[1]), arrays["names"] is not None, **arrays)
        if sp.issparse(x):
            vars(made).update(fresh(x=x))
        else:
            vars(made)["pages"] = Pages.of(made._rows(x), edge_kind)
        return made

    @classmethod
    def of_pages(cls, pages: Pages, **known: Any) -> Contents:
        """Hold pages, and what else is known."""
        return cls(pages.edge_kind, pages.num_features, pages.named, pages=pages, **known)

    def _rows(self, x: Any) -> Rows:
        names = NO_NAMES if self.names is None else self.names
        nodes, around = (self.ids, self.y, self.role), self.ids[self.indices]
        carried = self.edge_values, names, self.targets
        return Rows(*nodes, self.indptr, around, x, *carried)

    @cached_property
    def pages(self) -> Pages:
        """The pages that hold the graph."""
        return Pages.of(self._rows(self.x), self.edge_kind)

    @cached_property
    def tree(self) -> MerkleTree:
        """The Merkle tree over all nodes."""
        return MerkleTree.of(self.pages)

    @property
    def known_tree(self) -> MerkleTree | None:
        """The tree, where it was asked for already."""
        known: MerkleTree | None = vars(self).get("tree")
        return known

    @property
    def paged(self) -> bool:
        """True where there are pages already."""
        return "pages" in vars(self)

    @cached_property
    def _nodes(self) -> tuple[Ids, Ids, NDArray[np.int8]]:
        ids, y, role = self.pages.nodes()
        return read_only(ids), read_only(y), read_only(role)

    @cached_property
    def ids(self) -> Ids:
        return self._nodes[0]

    @cached_property
    def y(self) -> Ids:
        return self._nodes[1]

    @cached_property
    def role(self) -> NDArray[np.int8]:
        return self._nodes[2]

    @cached_property
    def targets(self) -> NDArray[np.uint8]:
        return read_only(self.pages.targets())

    @cached_property
    def _adjacency(self) -> tuple[Ids, NDArray[np.int32]]:
        indptr, around = neighbour_rows(self.pages.table, self.all_places)
        ids = self.ids
        consecutive = len(ids) == 0 or ids[-1] == len(ids) - 1
        at = around if consecutive else np.searchsorted(ids, around)
        return read_only(indptr), read_only(at.astype(np.int32))

    @cached_property
    def indptr(self) -> Ids:
        return self._adjacency[0]

    @cached_property
    def indices(self) -> NDArray[np.int32]:
        return self._adjacency[1]

    @cached_property
    def x(self) -> sp.csr_array:
        return self.features_at(self.all_places)

    @cached_property
    def edge_values(self) -> Values:
        if self.edge_kind == PLAIN:
            return NO_VALUES
        return read_only(edge_value_rows(self.pages.table, self.all_places))

    @cached_property
    def names(self) -> Names | None:
        return read_only(self.pages.names()) if self.named else None

    @cached_property
    def num_nodes(self) -> int:
        return self.pages.num_nodes if self.paged else len(self.ids)

    @property
    def num_entries(self) -> int:
        """Twice the number of edges."""
        return self.pages.num_entries if self.paged else len(self.indices)

    @cached_property
    def starts(self) -> Ids:
        """The number of nodes in the pages before each."""
        counts = self.pages.directory.counts
        return np.cumsum(counts) - counts

    @property
    def all_places(self) -> Ids:
        """Places of all nodes in the pages, by position."""
        counts = self.pages.directory.counts
        rows = np.arange(self.num_nodes) - np.repeat(self.starts, counts)
        return np.repeat(np.arange(len(counts)) * ROOM, counts) + rows

    def features_at(self, places: Ids) -> sp.csr_array:
        """Return the feature rows of the nodes at these places."""
        indptr, columns, values = feature_rows(self.pages.table, places)
        kind = np.int32 if len(columns) < 2**31 else np.int64
        parts, shape = (values, columns, indptr.astype(kind)), (len(places), self.num_features)
        made: sp.csr_array = fresh(x=sp.csr_array(parts, shape=shape))["x"]
        return made

    def adjacency_between(self, ids: Ids, places: Ids) -> tuple[Ids, NDArray[np.int32]]:
        """Return pointers and ranks of the edges between sorted ids, which lie at these places."""
        indptr, around = neighbour_rows(self.pages.table, places)
        return _known_only(indptr, ranks(around, ids))

    def values_between(self, rows: Ids, others: Ids) -> Values:
        """Return the values of the entries of ``others``, by id, in the rows at these places."""
        if not self.edge_kind.width:
            return NO_VALUES
        values: Values = read_only(entry_values(self.pages.table, rows, others))
        return values

    def adjacency_blocks(self, size: int) -> Iterator[AdjacencyBlock]:
        """Yield the neighbours of all nodes by position, in blocks of so many rows."""
        for low in range(0, self.num_nodes, size):
            indptr = self.indptr[low : min(low + size, self.num_nodes) + 1]
            yield AdjacencyBlock(low, indptr - indptr[0], self.indices[indptr[0] : indptr[-1]])


class PartContents(Contents):
    """Some nodes of another graph: edges and features are read from its pages when asked for."""

    def __init__(
        self,
        whole: Contents,
        ids: Ids,
        y: Ids,
        role: NDArray[np.int8],
        targets: NDArray[np.uint8],
    ) -> None:
        nodes = {"ids": ids, "y": y, "role": role, "names": None, "targets": targets}
        super().__init__(whole.edge_kind, whole.num_features, named=False, **nodes)
        self._whole = whole

    @property
    def _places(self) -> Ids:
        places: Ids = located(self._whole.pages.table, self.ids)
        return places

    @cached_property
    def _adjacency(self) -> tuple[Ids, NDArray[np.int32]]:
        return self._whole.adjacency_between(self.ids, self._places)

    @cached_property
    def x(self) -> sp.csr_array:
        return self._whole.features_at(self._places)

    @cached_property
    def edge_values(self) -> Values:
        rows = np.repeat(self._places, np.diff(self.indptr))
        return self._whole.values_between(rows, self.ids[self.indices])

    def adjacency_blocks(self, size: int) -> Iterator[AdjacencyBlock]:
        """Look neighbours up block by block, and never hold all of them at once."""
        if "indices" in vars(self):
            yield from super().adjacency_blocks(size)
            return
        places, pages = self._places, self._whole.pages
        # One more, for neighbours that are not there: `NOWHERE` is the last.
        by_place = np.full(len(pages.pages) * ROOM + 1, -1, dtype=np.int32)
        by_place[places] = np.arange(len(places), dtype=np.int32)
        for low in range(0, len(places), size):
            indptr, around = neighbour_rows(pages.table, places[low : low + size])
            there = located(pages.table, around)
            yield AdjacencyBlock(low, *_known_only(indptr, by_place[there]))


def _known_only(indptr: Ids, found: NDArray[np.integer]) -> tuple[Ids, NDArray[np.int32]]:
    """Return a CSR without the entries that are -1: neighbours that are not asked about."""
    kept = found >= 0
    ends = np.append(0, np.cumsum(kept))[indptr]
    return read_only(ends), read_only(found[kept].astype(np.int32))
