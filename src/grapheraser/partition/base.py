"""What a partition is, and the interface of a partitioner."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from grapheraser.errors import PartitionError, UnknownNodeError
from grapheraser.graph import Graph
from grapheraser.graph.arrays import as_ids, fresh, owned, read_only
from grapheraser.partition.quality import PartitionQuality

NODES, EDGES, FEATURES, LABELS = "nodes", "edges", "features", "labels"
EVERYTHING = frozenset({NODES, EDGES, FEATURES, LABELS})
MAX_ITERATIONS = 30


@dataclass(frozen=True, eq=False)
class Assignment:
    """What a partitioner returns.

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
    """The shard of each training node, and how it was chosen.

    Attributes:
        nodes: sorted ids of the training nodes.
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

    def __repr__(self) -> str:
        sizes = self.sizes[self.sizes > 0]
        return (
            f"Partition({self.method!r}, num_shards={self.num_shards}, nodes={len(self.nodes):,}, "
            f"sizes {sizes.min()}-{sizes.max()})"
        )

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
        """Whether a node's shard follows from its id and a key alone."""
        return not self.inputs

    def report(self) -> dict[str, Any]:
        """All properties of the partition as plain values, ready for JSON."""
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
        """The shard of each of these training nodes."""
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
        """The same partition on those of its nodes that are among ``nodes``.

        Its quality is unknown: even where all nodes are left, edges between them may be gone.
        """
        keep = np.isin(self.nodes, as_ids(nodes))
        if keep.all():
            return replace(self, quality=None)
        rest = fresh(nodes=self.nodes[keep], labels=self.labels[keep])
        return replace(self, **rest, quality=None)

    def with_node(self, node: int, shard: int, *, inputs: frozenset[str]) -> Partition:
        """The same partition with one more node, placed by reading ``inputs``."""
        at = int(np.searchsorted(self.nodes, node))
        return replace(
            self,
            nodes=np.insert(self.nodes, at, node),
            labels=np.insert(self.labels, at, shard).astype(np.int32),
            inputs=self.inputs | inputs,
            quality=None,
        )
