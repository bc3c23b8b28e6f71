"""The pages of a graph: what a change touches is written anew, everything else is shared.

Pages are never changed. A graph after a change holds new pages for the blocks of ids that differ
and the same ones for all others; an old page leaves memory with the last graph that holds it. See
`kernels.paged` for what a page looks like, and `directory` for which ids share one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from grapheraser.graph.edge_values import NO_VALUES, PLAIN, EdgeKind, Values
from grapheraser.graph.ids import NO_NAMES, Names, kept_names, names_at, unpacked_names
from grapheraser.graph.pages.directory import WHOLE, Directory
from grapheraser.graph.pages.packing import (
    NO_TARGETS,
    Block,
    Ids,
    Page,
    Rows,
    edited_edges,
    extended_edges,
    joined,
    kept_nodes,
    no_rows,
    packed,
    packed_csr,
    packed_features,
    packed_rows,
    relabelled_nodes,
    reordered,
    replaced_features,
    sliced,
    unpacked,
    unpacked_csr,
    unpacked_features,
    unpacked_nodes,
    unpacked_targets,
)
from grapheraser.kernels.paged import NODES, ROOM, Table

# Versions that a lineage knows the changes since.
_MAX_REMEMBERED = 16


@dataclass(frozen=True, eq=False)
class Lineage:
    """The numbers of pages that have changed since earlier versions, of as many pages."""

    # Stands for this version, and holds nothing of it.
    token: object = field(default_factory=object)
    # Tokens of earlier versions, the latest first, and the numbers of the pages that are others
    # than there.
    before: tuple[tuple[object, frozenset[int]], ...] = ()

    def changed(self, numbers: Iterable[int]) -> Lineage:
        """Return the lineage of the version with other pages in the place of these."""
        new = frozenset(numbers)
        longer = ((token, old | new) for token, old in self.before[: _MAX_REMEMBERED - 1])
        return Lineage(before=((self.token, new), *longer))

    def since(self, token: object) -> frozenset[int] | None:
        """Return the numbers of the pages that have changed since a version; None where unknown."""
        if token is self.token:
            return frozenset()
        return next((numbers for known, numbers in self.before if known is token), None)

    def __reduce__(self) -> tuple[type[Lineage], tuple[()]]:
        """Tokens mean nothing to another process."""
        return Lineage, ()


class Cut(NamedTuple):
    """Other blocks in the place of a range of pages."""

    # low, high: the pages.
    low: int
    high: int
    blocks: Directory  # of the rows
    rows: Rows  # what the new pages hold


@dataclass(frozen=True, eq=False)
class Pages:
    """All pages of a graph."""

    directory: Directory  # the blocks of ids
    pages: tuple[Page, ...]  # their pages
    num_features: int  # columns
    dense: bool  # whether features are kept with their zeros
    num_entries: int  # twice the number of edges
    edge_kind: EdgeKind  # what each entry carries
    table: Table = field(repr=False)
    # Which pages have changed since earlier versions.
    lineage: Lineage = field(default_factory=Lineage, repr=False)

    @classmethod
    def of(cls, rows: Rows, edge_kind: EdgeKind = PLAIN) -> Pages:
        """Pack all nodes of a graph."""
        return cls.packed(rows, Directory.of(rows.ids), edge_kind)

    @classmethod
    def packed(cls, rows: Rows, directory: Directory, edge_kind: EdgeKind = PLAIN) -> Pages:
        """Pack nodes into these blocks."""
        dense = not sp.issparse(rows.x)
        pages = tuple(packed(rows, directory.counts))
        entries = len(rows.neighbours)
        return cls.made(directory, pages, int(rows.x.shape[1]), dense, entries, edge_kind)

    @classmethod
    def made(
        cls,
        directory: Directory,
        pages: Sequence[Page],
        num_features: int,
        dense: bool,
        num_entries: int,
        edge_kind: EdgeKind = PLAIN,
    ) -> Pages:
        """Hold pages that are packed already."""
        table = _table(directory, _addresses(pages), num_features if dense else -1, edge_kind)
        return cls(directory, tuple(pages), num_features, dense, num_entries, edge_kind, table)

    def __reduce__(self) -> tuple[Any, ...]:
        """Addresses mean nothing to another process."""
        return Pages.made, (self.directory, self.pages, *self._shape, self.edge_kind)

    @property
    def _shape(self) -> tuple[int, bool, int]:
        return self.num_features, self.dense, self.num_entries

    @property
    def num_nodes(self) -> int:
        return int(self.directory.counts.sum())

    def _counted(self, low: int = 0, high: int | None = None) -> Iterator[tuple[Page, int]]:
        """Yield a range of pages, each with the number of its nodes."""
        counts = self.directory.counts[low:high].tolist()
        return zip(self.pages[low:high], counts, strict=True)

    def nodes(self) -> tuple[Ids, NDArray[np.int64], NDArray[np.int8]]:
        """Return the ids, labels and roles of all nodes."""
        parts = [unpacked_nodes(page.nodes, count) for page, count in self._counted()]
        parts = parts or [unpacked_nodes(np.zeros(0, dtype=np.uint8), 0)]
        ids, y, role = (np.concatenate(part) for part in zip(*parts, strict=True))
        return ids, y.astype(np.int64), role

    def targets(self) -> NDArray[np.uint8]:
        """Return the targets of all nodes, as bytes ``[n, row_bytes]``; 0 of them for classes."""
        counted = self._counted()
        parts = [unpacked_targets(page.targets, n) for page, n in counted if page.targets.nbytes]
        return np.concatenate(parts) if parts else np.zeros((self.num_nodes, 0), dtype=np.uint8)

    @property
    def row_bytes(self) -> int:
        """Bytes that the targets of a node take; 0 for classes."""
        counts = self.directory.counts
        return self.pages[0].targets.nbytes // int(counts[0]) if len(counts) else 0

    @property
    def named(self) -> bool:
        """True where nodes have names."""
        return any(page.names.nbytes for page in self.pages[:1])

    def names(self) -> Names:
        """Return the names of all nodes; nothing where they have none."""
        parts = [unpacked_names(page.names, count) for page, count in self._counted()]
        return np.concatenate([NO_NAMES, *parts])

    def names_at(self, places: Ids) -> Names:
        """Return the names of the nodes at these places, where nodes have names."""
        found = np.empty(len(places), dtype=object)
        for number in np.unique(places // ROOM).tolist():
            here = places // ROOM == number
            block, count = self.pages[number].names, int(self.directory.counts[number])
            found[here] = names_at(block, count, (places[here] % ROOM).tolist())
        return found

    def rows(self, low: int = 0, high: int | None = None) -> Rows:
        """Unpack a range of pages; default all."""
        shape = self.num_features, self.dense, self.edge_kind.width
        parts = [unpacked(page, count, *shape) for page, count in self._counted(low, high)]
        return joined(parts or [no_rows(*shape)])

    def without(self, nodes: Ids, pairs: NDArray[np.int64], cleared: Ids) -> Pages:
        """Drop some nodes, some entries, and the features of some nodes, all by place.

        Args:
            nodes: sorted places of the nodes to drop.
            pairs: ``[m, 2]``, a place and the id of a neighbour to drop from its row; sorted. The
                rows of the other ends of edges need pairs of their own.
            cleared: sorted places of the nodes that lose their features.
        """
        parts = nodes, pairs[:, 0], cleared
        numbers = np.unique(np.concatenate(parts) // ROOM)
        counts, pages = self.directory.counts.copy(), {}
        rows, others = [part % ROOM for part in parts], np.ascontiguousarray(pairs[:, 1])
        cuts = (_cuts(part, numbers) for part in parts)
        for number, gone, near, bare in zip(numbers.tolist(), *cuts, strict=True):
            named = rows[0][gone], rows[1][near], others[near], rows[2][bare]
            pages[number] = self._edited(self.pages[number], counts[number], *named)
            counts[number] -= len(named[0])
        entries = int(sum(self._degrees(nodes))) + len(pairs)
        made = self._with_pages(pages, counts=counts, more=-entries)
        return made._rejoined(self.directory.starts[np.unique(nodes // ROOM)].tolist())

    def _edited(
        self, page: Page, count: int, gone: Ids, rows: Ids, others: Ids, cleared: Ids
    ) -> Page:
        """Return a page of so many nodes without some rows, entries and feature rows."""
        keep = np.ones(count, dtype=np.bool_)
        keep[gone] = False
        if len(gone):
            nodes, names = kept_nodes(page.nodes, keep), kept_names(page.names, keep)
            targets = page.targets
            if targets.nbytes:
                targets = packed_rows(unpacked_targets(targets, count)[keep])
            page = page._replace(nodes=nodes, names=names, targets=targets)
        if len(gone) or len(cleared):
            page = page._replace(features=self._cleared(page.features, keep, cleared))
        if len(gone) or len(rows):
            edges, values = edited_edges(page, self.edge_kind.width, keep, rows, others)
            page = page._replace(edges=edges, values=values)
        return page

    def _at(self, places: Ids) -> Iterator[tuple[int, Page, int, slice]]:
        """Yield the pages of places (sorted): number, page, its nodes, and which places it has."""
        numbers = np.unique(places // ROOM)
        for number, part in zip(numbers.tolist(), _cuts(places, numbers), strict=True):
            yield number, self.pages[number], int(self.directory.counts[number]), part

    def with_labels(
        self, places: Ids, y: Ids, role: NDArray[np.int8], targets: NDArray[np.uint8] = NO_TARGETS
    ) -> Pages:
        """Set labels, roles and targets (bytes) of some nodes, by place (sorted)."""
        pages = {}
        for number, page, count, part in self._at(places):
            nodes = relabelled_nodes(page.nodes, count, places[part] % ROOM, y[part], role[part])
            pages[number] = page._replace(nodes=nodes)
            if page.targets.nbytes:
                rows = unpacked_targets(page.targets, count).copy()
                rows[places[part] % ROOM] = targets[part]
                pages[number] = pages[number]._replace(targets=packed_rows(rows))
        return self._with_pages(pages)

    def with_features(self, places: Ids, x: sp.csr_array) -> Pages:
        """Set features of some nodes, by place (sorted)."""
        pages = {}
        for number, page, count, part in self._at(places):
            old = unpacked_features(page.features, count, self.num_features, self.dense)
            features = replaced_features(old, places[part] % ROOM, x[part])
            pages[number] = page._replace(features=features)
        return self._with_pages(pages)

    def with_rows(self, rows: Rows, pairs: NDArray[np.int64], values: Values = NO_VALUES) -> Pages:
        """Add nodes, none of which is there, and entries to the rows of others.

        Args:
            rows: the new nodes, in the order of their ids.
            pairs: ``[m, 2]``, a place and the id of a neighbour to put into its row; sorted.
            values: what the entries of these pairs carry.
        """
        pages = {}
        for number, page, count, part in self._at(pairs[:, 0]):
            rows_, ids = pairs[part, 0] % ROOM, pairs[part, 1]
            edges, carried = extended_edges(page, count, rows_, ids, values[part])
            pages[number] = page._replace(edges=edges, values=carried)
        made = self._with_pages(pages, more=len(pairs) + len(rows.neighbours))
        return made._recut([made._with(rows, *home) for home in self.directory.homes(rows.ids)])

    def _with(self, rows: Rows, low: int, high: int, page: int, size: int) -> Cut:
        """Put a range of new rows into a page or before it; see `Directory.homes`."""
        new = sliced(rows, low, high)
        if size >= 0:
            return Cut(page, page, Directory.of(new.ids, size), new)
        both = joined([self.rows(page, page + 1), new])
        both = reordered(both, np.argsort(both.ids))
        blocks = Directory.of(both.ids, int(self.directory.sizes[page]))
        return Cut(page, page + 1, blocks, both)

    def _rejoined(self, nodes: Iterable[int]) -> Pages:
        """Join blocks where the block around them has become small enough for one page."""
        made = self
        for node in nodes:
            page = max(0, int(np.searchsorted(made.directory.starts, node, side="right")) - 1)
            if len(made.pages) and made.directory.counts[page] == 0:
                none = Directory.of(np.zeros(0, dtype=np.int64))
                made = made._recut([Cut(page, page + 1, none, made.rows(page, page + 1))])
                page = min(page, len(made.pages) - 1)
            while 0 <= page < len(made.pages) and made.directory.sizes[page] < WHOLE:
                size = int(made.directory.sizes[page]) + 1
                start, low, high = made.directory.around(page, size)
                count = made.directory.counts[low:high].sum()
                if count > ROOM:
                    break
                block = (np.array([part]) for part in (start, np.int8(size), count))
                made = made._recut([Cut(low, high, Directory(*block), made.rows(low, high))])
                page = low
        return made

    def _recut(self, cuts: Sequence[Cut]) -> Pages:
        """Put other blocks in the place of ranges of pages, ascending."""
        if not cuts:
            return self
        fresh = [packed(cut.rows, cut.blocks.counts) for cut in cuts]
        pages: list[Page] = []
        addresses, end = [], 0
        for cut, new in zip(cuts, fresh, strict=True):
            pages += [*self.pages[end : cut.low], *new]
            addresses += [self._addresses[end : cut.low], _addresses(new)]
            end = cut.high
        pages += self.pages[end:]
        addresses.append(self._addresses[end:])
        directory = self.directory.replaced([(c.low, c.high, c.blocks) for c in cuts])
        table = _table(directory, np.concatenate(addresses), *self._kind)
        return replace(
            self, directory=directory, pages=tuple(pages), table=table, lineage=Lineage()
        )

    def _with_pages(
        self, pages: Mapping[int, Page], *, counts: Ids | None = None, more: int = 0
    ) -> Pages:
        """Put other pages in the place of some, of as many nodes unless ``counts`` says otherwise.

        ``more`` is how many entries more they have.
        """
        if not pages and not more:
            return self
        directory = self.directory if counts is None else self.directory.recounted(counts)
        numbers, every, addresses = list(pages), list(self.pages), self._addresses.copy()
        for number, page in pages.items():
            every[number] = page
        addresses[numbers] = _addresses(list(pages.values()))
        return replace(
            self,
            directory=directory,
            pages=tuple(every),
            num_entries=self.num_entries + more,
            table=_table(directory, addresses, *self._kind),
            lineage=self.lineage.changed(numbers),
        )

    @property
    def _addresses(self) -> NDArray[np.int64]:
        return self.table.pages[:, NODES:]

    @property
    def _kind(self) -> tuple[int, EdgeKind]:
        return self.table.width, self.edge_kind

    def _degrees(self, places: Ids) -> list[int]:
        found = []
        for place in places.tolist():
            pointers = self.pages[place // ROOM].edges.view(np.int64)
            found.append(int(pointers[place % ROOM + 1] - pointers[place % ROOM]))
        return found

    def _cleared(self, block: Block, keep: NDArray[np.bool_], rows: Ids) -> Block:
        """Return a features block without the rows that go, and with nothing in some others."""
        if self.dense:
            x = block.view(np.float32).reshape(len(keep), self.num_features).copy()
            x[rows] = 0.0
            return packed_features(x[keep])
        pointers, columns, values = unpacked_csr(block, len(keep))
        lengths = pointers[1:] - pointers[:-1]
        full = keep.copy()
        full[rows] = False
        stay = np.repeat(full, lengths)
        counts = np.where(full, lengths, 0)[keep]
        return packed_csr(np.append(0, np.cumsum(counts)), columns[stay], values[stay])


def _cuts(places: Ids, numbers: Ids) -> list[slice]:
    """Return the slice of sorted places that each of these pages holds."""
    ends = np.searchsorted(places, np.stack([numbers, numbers + 1], axis=1) * ROOM)
    return [slice(low, high) for low, high in ends.tolist()]


def _addresses(pages: Sequence[Page]) -> NDArray[np.int64]:
    """Return the addresses ``[len(pages), 5]`` of the blocks that kernels read."""
    found = [
        [block.__array_interface__["data"][0] for block in (*page[:4], page.targets)]
        for page in pages
    ]
    return np.array(found, dtype=np.int64).reshape(-1, 5)


def _table(
    directory: Directory, addresses: NDArray[np.int64], width: int, edge_kind: EdgeKind
) -> Table:
    """Make the table of pages whose blocks lie at these addresses ``[num_pages, 5]``."""
    pages = np.column_stack([directory.starts, directory.counts, addresses])
    first, shift = directory.radix
    kind = (edge_kind.width, edge_kind.directed, edge_kind.weighted)
    return Table(np.ascontiguousarray(pages), first, shift, width, *kind)
