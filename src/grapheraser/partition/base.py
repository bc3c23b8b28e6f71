"""What a partition is, and what every partitioner promises."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from grapheraser.errors import PartitionError, UnknownNodeError
from grapheraser.graph import Graph
from grapheraser.graph.arrays import as_ids
from grapheraser.partition.quality import PartitionQuality

NODES, EDGES, FEATURES, LABELS = "nodes", "edges", "features", "labels"
EVERYTHING = frozenset({NODES, EDGES, FEATURES, LABELS})


@dataclass(frozen=True, eq=False)
class Assignment:
    """What an algorithm hands back.

    Attributes:
        labels: int ``[n]``, shard in ``[0, num_shards)`` of each node of the training graph, by
            position.
        moved: how many nodes changed shard in each iteration, where there are iterations.
        converged: whether it stopped because nothing moved any more; None where that means
            nothing.
        notes: what the user should know, e.g. that the capacity could not be kept.
    """

    labels: NDArray[np.integer]
    moved: tuple[int, ...] = ()
    converged: bool | None = None
    notes: tuple[str, ...] = ()


@runtime_checkable
class Partitioner(Protocol):
    """Cuts a training graph into shards.

    Attributes:
        name: as registered.
        inputs: which of the data it reads: any of nodes (only which ones exist), edges, features,
            labels. Empty when a node's shard follows from its id and a key alone.
        strict: whether no shard ever holds more than ``capacity`` nodes.
    """

    @property
    def name(self) -> str: ...
    @property
    def inputs(self) -> frozenset[str]: ...
    @property
    def strict(self) -> bool: ...

    def __call__(self, graph: Graph, num_shards: int, *, capacity: int, seed: int) -> Assignment:
        """Assign every node of ``graph`` (training nodes only); a function of its arguments."""


@dataclass(frozen=True, eq=False)
class Partition:
    """Which shard each training node belongs to, and where that came from.

    Attributes:
        nodes: sorted ids of the training nodes.
        labels: int32, the shard of each.
        num_shards: k as asked for; deletions may leave some shards empty.
        method: name of the partitioner, or "given".
        capacity: the most nodes that a shard was allowed (delta).
        inputs: which of the data the assignment was computed from.
        seed: the seed it was computed with.
        moved, converged, notes: see `Assignment`.
        seconds: how long it took.
        quality: measured on the graph that was cut; None once it may have changed.
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
        self.nodes.flags.writeable = False
        self.labels.flags.writeable = False

    def __repr__(self) -> str:
        sizes = self.sizes[self.sizes > 0]
        return (
            f"Partition({self.method!r}, num_shards={self.num_shards}, nodes={len(self.nodes):,}, "
            f"sizes {sizes.min()}-{sizes.max()})"
        )

    @cached_property
    def sizes(self) -> NDArray[np.int64]:
        """Nodes in each shard ``[num_shards]``."""
        return np.bincount(self.labels, minlength=self.num_shards)

    @property
    def edge_cut(self) -> int:
        """Edges between shards, in the graph that was cut."""
        if self.quality is None:
            raise PartitionError(
                "the graph may have changed since this partition was measured.",
                hint="grapheraser.partition.measure(graph, partition) measures it again.",
            )
        return self.quality.edge_cut

    @property
    def shard_ids(self) -> NDArray[np.int64]:
        """The shards that hold at least one node."""
        return np.flatnonzero(self.sizes)

    @property
    def data_free(self) -> bool:
        """Whether a node's shard follows from its id and a key alone."""
        return not self.inputs

    def report(self) -> dict[str, Any]:
        """Everything about this partition in plain values, ready for JSON."""
        quality = None if self.quality is None else self.quality.report()
        return {
            "method": self.method,
            "num_shards": self.num_shards,
            "nodes": len(self.nodes),
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
        """The shard of each training node, by id."""
        ids = as_ids(nodes)
        at = np.minimum(np.searchsorted(self.nodes, ids), max(len(self.nodes) - 1, 0))
        known = self.nodes[at] == ids if len(self.nodes) else np.zeros(len(ids), dtype=bool)
        if not known.all():
            raise UnknownNodeError(f"node {ids[~known][0]} is in no shard.")
        return self.labels[at]

    def members(self, shard: int) -> NDArray[np.int64]:
        """Sorted ids of the nodes of one shard."""
        return self.nodes[self.labels == shard]

    def restricted_to(self, nodes: ArrayLike) -> Partition:
        """The same partition on those of its nodes that are left, not measured any more.

        Even where all of them are, ties between them may be gone.
        """
        keep = np.isin(self.nodes, as_ids(nodes))
        if keep.all():
            return replace(self, quality=None)
        return replace(self, nodes=self.nodes[keep], labels=self.labels[keep], quality=None)

    def with_node(self, node: int, shard: int, *, inputs: frozenset[str]) -> Partition:
        """The same partition with one more node, placed by what ``inputs`` names."""
        at = int(np.searchsorted(self.nodes, node))
        return replace(
            self,
            nodes=np.insert(self.nodes, at, node),
            labels=np.insert(self.labels, at, shard).astype(np.int32),
            inputs=self.inputs | inputs,
            quality=None,
        )
