"""The partition of a graph, and the interface of a partitioner."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from grapheraser.errors import PartitionError, UnknownNodeError
from grapheraser.graph import Graph
from grapheraser.graph.arrays import owned, read_only
from grapheraser.graph.ids import as_ids, is_plain
from grapheraser.graph.pages.packing import Rows
from grapheraser.graph.pages.pages import Pages
from grapheraser.kernels.paged import NOWHERE, labels_at, located
from grapheraser.kinds import GRAPH_NAMES
from grapheraser.partition.quality import PartitionQuality

NODES, EDGES, FEATURES, LABELS = GRAPH_NAMES
EVERYTHING = frozenset({NODES, EDGES, FEATURES, LABELS})
MAX_ITERATIONS = 30
# More shards than any graph has use for; sizes of arrays follow from their number.
MAX_SHARDS = 2**20


@dataclass(frozen=True, eq=False)
class Assignment:
    """The result of a partitioner.

    Attributes:
        labels: int ``[n]``, shard in ``[0, num_shards)`` of each node of the training graph, by
            position.
        moved: how many nodes changed shard in each iteration, where there are iterations.
        converged: whether the last iteration moved no node; None where there are no iterations.
        notes: what the user should know, e.g. that a shard exceeds the capacity.
    """

    labels: NDArray[np.integer]
    moved: tuple[int, ...] = ()
    converged: bool | None = None
    notes: tuple[str, ...] = ()


def overfull(labels: NDArray[np.integer], capacity: int) -> tuple[str, ...]:
    """A note on the shards that exceed the capacity; empty where none does."""
    sizes = np.bincount(labels)
    if sizes.max() <= capacity:
        return ()
    return (
        f"{int((sizes > capacity).sum())} shards hold more than {capacity} nodes; "
        f"the largest holds {sizes.max()}",
    )


@runtime_checkable
class Partitioner(Protocol):
    """Partitions a training graph into shards.

    Attributes:
        name: as registered.
        inputs: the data that it reads: any of nodes (which ones exist), edges, features, labels.
            Empty when a node's shard follows from its id and a key alone.
        strict: whether every shard holds at most ``capacity`` nodes.
    """

    @property
    def name(self) -> str: ...
    @property
    def inputs(self) -> frozenset[str]: ...
    @property
    def strict(self) -> bool: ...

    def __call__(self, graph: Graph, num_shards: int, *, capacity: int, seed: int) -> Assignment:
        """Assign every node of the training graph ``graph``, as a function of the arguments."""


@dataclass(frozen=True, eq=False)
class Partition:
    """The shard of each node that is in one, and how it was chosen.

    Like a graph it is held in pages (of ids and shards), which one that came out of a change shares
    with the one before; it puts ``nodes`` and ``labels`` together when it is first asked for them.

    Attributes:
        nodes: sorted ids of the training nodes, and of those that the graph's context adds.
        labels: int32, the shard of each.
        num_shards: k; deletions may leave some shards empty.
        method: name of the partitioner, or "given".
        capacity: the most nodes that a shard may hold (delta).
        inputs: the data that the assignment was computed from.
        seed: the seed of the computation.
        moved, converged, notes: see `Assignment`.
        seconds: how long it took.
        quality: measured on the partitioned graph; None once that may have changed.
    """

    nodes: NDArray[np.int64]
    labels: NDArray[np.int32]
    num_shards: int
    method: str
    capacity: int
    inputs: frozenset[str]
    seed: int = 0
    moved: tuple[int, ...] = ()
    converged: bool | None = None
    notes: tuple[str, ...] = ()
    seconds: float = 0.0
    quality: PartitionQuality | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "nodes", owned(self.nodes))
        object.__setattr__(self, "labels", owned(self.labels))

    @staticmethod
    def of_pages(pages: Pages, **fields: Any) -> Partition:
        """A partition that is held in pages, with all fields but ``nodes`` and ``labels``."""
        made = object.__new__(_PagedPartition)
        made.__dict__.update(fields, pages=pages)
        return made

    def __repr__(self) -> str:
        sizes = self.sizes[self.sizes > 0]
        return (
            f"Partition({self.method!r}, num_shards={self.num_shards}, nodes={self.num_nodes:,}, "
            f"sizes {sizes.min()}-{sizes.max()})"
        )

    @property
    def num_nodes(self) -> int:
        """Nodes in all shards."""
        return int(self.sizes.sum())

    @cached_property
    def pages(self) -> Pages:
        """The pages that hold the partition: of a graph without edges, its labels the shards."""
        return Pages.of(_rows(self.nodes, self.labels.astype(np.int64)))

    @cached_property
    def _members(self) -> list[NDArray[np.int64]]:
        """Sorted ids of the nodes of each shard."""
        order = np.argsort(self.labels, kind="stable")
        parts = np.split(self.nodes[order], np.cumsum(self.sizes)[:-1])
        return [read_only(part.copy()) for part in parts]

    @cached_property
    def sizes(self) -> NDArray[np.int64]:
        """Nodes in each shard ``[num_shards]``."""
        return read_only(np.bincount(self.labels, minlength=self.num_shards))

    @property
    def edge_cut(self) -> int:
        """Edges between shards, in the partitioned graph."""
        if self.quality is None:
            raise PartitionError(
                "this partition has not been measured on the current graph.",
                hint="measure it: grapheraser.partition.measure(graph, partition).",
            )
        return self.quality.edge_cut

    @property
    def shard_ids(self) -> NDArray[np.int64]:
        """Ids of the shards that hold at least one node."""
        return np.flatnonzero(self.sizes)

    @property
    def data_free(self) -> bool:
        """Tell whether a node's shard follows from its id and a key alone."""
        return not self.inputs

    def report(self) -> dict[str, Any]:
        """All properties of the partition as plain values, ready for JSON."""
        quality = None if self.quality is None else self.quality.report()
        return {
            "method": self.method,
            "num_shards": self.num_shards,
            "nodes": self.num_nodes,
            "capacity": self.capacity,
            "seed": self.seed,
            "sizes": self.sizes.tolist(),
            "above_capacity": int((self.sizes > self.capacity).sum()),
            "iterations": len(self.moved),
            "moved": list(self.moved),
            "converged": self.converged,
            "seconds": self.seconds,
            "inputs": sorted(self.inputs),
            "data_free": self.data_free,
            "notes": list(self.notes),
            "quality": quality,
        }

    def shard_of(self, nodes: ArrayLike) -> NDArray[np.int32]:
        """The shard of each of these nodes; one that is in none is an error."""
        ids = nodes if is_plain(nodes) else as_ids(nodes)
        return labels_at(self.pages.table, self._places(ids)).astype(np.int32)

    def shard_or_none(self, nodes: NDArray[np.int64]) -> NDArray[np.int32]:
        """The shard of each of these nodes, -1 for those that are in none."""
        places, shards = located(self.pages.table, nodes), np.full(len(nodes), -1, dtype=np.int32)
        there = places != NOWHERE
        shards[there] = labels_at(self.pages.table, places[there])
        return shards

    def contains(self, nodes: ArrayLike) -> NDArray[np.bool_]:
        """Tell whether each node is in a shard."""
        ids = nodes if is_plain(nodes) else as_ids(nodes)
        found: NDArray[np.bool_] = located(self.pages.table, ids) != NOWHERE
        return found

    def members(self, shard: int) -> NDArray[np.int64]:
        """Sorted ids of the nodes of one shard."""
        return self._members[shard] if 0 <= shard < self.num_shards else as_ids(())

    def restricted_to(self, nodes: ArrayLike) -> Partition:
        """Restrict the partition to those of its nodes that are among ``nodes``.

        Its quality is unknown: even where all nodes are left, edges between them may be gone.
        """
        return self.without(self.nodes[~np.isin(self.nodes, as_ids(nodes))])

    def without(self, nodes: ArrayLike) -> Partition:
        """Return the partition without some of its nodes, in the time that they take.

        Its quality is unknown: the edges of the nodes are gone too.
        """
        ids = np.unique(as_ids(nodes))
        places = self._places(ids)
        lost: NDArray[np.int64] = labels_at(self.pages.table, places)
        pages = self.pages.without(places, np.zeros((0, 2), dtype=np.int64), as_ids(()))
        made = self._changed(pages, -np.bincount(lost, minlength=self.num_shards))
        for shard, members in made._members_of(lost):
            gone = np.searchsorted(members[shard], ids[lost == shard])
            members[shard] = read_only(np.delete(members[shard], gone))
        return made

    def with_nodes(
        self, nodes: NDArray[np.int64], shards: NDArray[np.integer], *, inputs: frozenset[str]
    ) -> Partition:
        """Return the partition with more nodes (sorted ids), placed by reading ``inputs``."""
        labels = shards.astype(np.int64)
        pages = self.pages.with_rows(_rows(nodes, labels), np.zeros((0, 2), dtype=np.int64))
        more = np.bincount(labels, minlength=self.num_shards)
        made = self._changed(pages, more, inputs=self.inputs | inputs)
        for shard, members in made._members_of(labels):
            both = np.concatenate([members[shard], nodes[shards == shard]])
            members[shard] = read_only(np.sort(both))
        return made

    def _members_of(
        self, shards: NDArray[np.int64]
    ) -> Iterator[tuple[int, list[NDArray[np.int64]]]]:
        """Each of the shards, and the members of all, where somebody has asked for any.

        Where there are no shards to train, nobody does, and one shard holds all nodes.
        """
        members = self.__dict__.get("_members")
        if members is not None:
            for shard in np.unique(shards).tolist():
                yield shard, members

    def _places(self, ids: NDArray[np.int64]) -> NDArray[np.int64]:
        places: NDArray[np.int64] = located(self.pages.table, ids)
        if len(places) and places[places.argmin()] == NOWHERE:  # all others are larger
            raise UnknownNodeError(f"node {ids[places == NOWHERE][0]} is in no shard.")
        return places

    def _changed(self, pages: Pages, more: NDArray[np.int64], **fields: Any) -> Partition:
        """This partition in other pages, with so many more nodes in each shard."""
        kept = {name: self.__dict__[name] for name in _CARRIED if name in self.__dict__}
        sizes = read_only(self.sizes + more)
        made = Partition.of_pages(pages, **kept | fields | {"quality": None, "sizes": sizes})
        if "_members" in self.__dict__:
            made.__dict__["_members"] = list(self._members)
        return made


class _PagedPartition(Partition):
    """A partition that is held in pages, and puts its arrays together when they are asked for."""

    @cached_property
    def _arrays(self) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        nodes, labels, _ = self.pages.nodes()
        return read_only(nodes), read_only(labels.astype(np.int32))

    @cached_property
    def nodes(self) -> NDArray[np.int64]:
        return self._arrays[0]

    @cached_property
    def labels(self) -> NDArray[np.int32]:
        return self._arrays[1]


_CARRIED = tuple(f.name for f in dataclasses.fields(Partition) if f.name not in ("nodes", "labels"))


def _rows(nodes: NDArray[np.int64], labels: NDArray[np.int64]) -> Rows:
    """Return rows of a graph without edges and features."""
    n = len(nodes)
    pointers, x = np.zeros(n + 1, dtype=np.int64), np.zeros((n, 0), dtype=np.float32)
    return Rows(nodes, labels, np.zeros(n, dtype=np.int8), pointers, as_ids(()), x)
