"""`metis` and `kaminpar`: multilevel partitioning by METIS (through pymetis) and KaMinPar.

Both minimise the edge cut and treat balance as a tolerance. Nodes above the capacity are moved
afterwards, and the notes say how many.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from tempfile import NamedTemporaryFile
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from grapheraser.arrays import Ints, Ints32
from grapheraser.errors import MissingExtraError
from grapheraser.graph import Graph
from grapheraser.graph.csr import slices_of
from grapheraser.kernels.compiled import compiled
from grapheraser.partition.base import EDGES, NODES, Assignment, overfull
from grapheraser.seeding import derive, generator

# METIS's own default for k-way: shards may be 3 % above the average.
_KWAY_TOLERANCE = 30
_SMALLEST_SHARD = 3


@dataclass(frozen=True)
class MetisPartitioner:
    """METIS."""

    # ``kway``, ``recursive`` bisection, or ``auto``: recursive where the capacity is less than 3 %
    # above the average, where k-way has a far larger edge cut.
    variant: Literal["auto", "kway", "recursive"] = "auto"
    # Move nodes so that the capacity holds; without it, notes name the shards above it.
    repair: bool = True
    name: str = "metis"
    inputs: frozenset[str] = frozenset({NODES, EDGES})

    @property
    def strict(self) -> bool:
        return self.repair

    def __call__(self, graph: Graph, num_shards: int, *, capacity: int, seed: int) -> Assignment:
        if graph.num_nodes < _SMALLEST_SHARD * num_shards:
            return _too_small(graph, num_shards, capacity, seed, "METIS")
        slack = int(1000 * (capacity * num_shards / graph.num_nodes - 1))
        recursive = (
            slack < _KWAY_TOLERANCE if self.variant == "auto" else self.variant == "recursive"
        )
        tolerance = max(slack, 1) if recursive else _KWAY_TOLERANCE
        labels = _metis(graph, num_shards, recursive, min(tolerance, 1000), seed)
        return _finished(graph, labels, num_shards, capacity, seed, self.repair, "METIS")


@dataclass(frozen=True)
class KaminparPartitioner:
    """KaMinPar on one thread: its result depends on the number of threads."""

    repair: bool = True
    name: str = "kaminpar"
    inputs: frozenset[str] = frozenset({NODES, EDGES})

    @property
    def strict(self) -> bool:
        return self.repair

    def __call__(self, graph: Graph, num_shards: int, *, capacity: int, seed: int) -> Assignment:
        try:
            import kaminpar
        except ImportError:
            raise MissingExtraError.of(
                "kaminpar", "fast-partition", "the partition method 'kaminpar'"
            ) from None
        if graph.num_nodes < _SMALLEST_SHARD * num_shards or graph.num_edges == 0:
            return _too_small(graph, num_shards, capacity, seed, "KaMinPar")
        with _as_file(_metis_text(graph)) as path:
            loaded = kaminpar.load_graph(path, kaminpar.GraphFileFormat.METIS)
        kaminpar.reseed(derive(seed, "partition", "kaminpar") % 2**31)
        solver = kaminpar.KaMinPar(1, kaminpar.default_context())
        slack = max(capacity * num_shards / graph.num_nodes - 1, 1e-3)
        labels = np.array(solver.compute_partition(loaded, k=num_shards, eps=slack))
        return _finished(graph, labels, num_shards, capacity, seed, self.repair, "KaMinPar")


def _metis(graph: Graph, num_shards: int, recursive: bool, tolerance: int, seed: int) -> Ints:
    import pymetis

    # METIS gives the same result for seeds 0 and 1, so use larger ones.
    metis_seed = derive(seed, "partition", "metis") % (2**31 - 2) + 2
    options = pymetis.Options(seed=metis_seed, ufactor=tolerance)
    adjacency = pymetis.CSRAdjacency(graph.indptr, graph.indices)
    _, labels = pymetis.part_graph(
        num_shards, adjacency=adjacency, recursive=recursive, options=options
    )
    return np.asarray(labels, dtype=np.int64)


def _metis_text(graph: Graph) -> str:
    """The graph in METIS's text format: a header, then the neighbours of each node from 1."""
    neighbours = (graph.indices + 1).astype(str).tolist()
    bounds = graph.indptr.tolist()
    lines = [f"{graph.num_nodes} {graph.num_edges}"]
    lines += [" ".join(neighbours[a:b]) for a, b in pairwise(bounds)]
    return "\n".join(lines) + "\n"


@contextmanager
def _as_file(text: str) -> Iterator[str]:
    """A path to read the text from: KaMinPar's Python interface takes graphs from files only.

    The file is in memory where the system has such files: edges on a disk may outlive their
    deletion.
    """
    memory = hasattr(os, "memfd_create")
    with open(os.memfd_create("graph"), "w") if memory else NamedTemporaryFile("w") as file:
        file.write(text)
        file.flush()
        yield f"/proc/self/fd/{file.fileno()}" if memory else file.name


def _too_small(graph: Graph, num_shards: int, capacity: int, seed: int, program: str) -> Assignment:
    """Fill shards of one or two nodes greedily: coarsening can't balance them."""
    everything = np.zeros(graph.num_nodes, dtype=np.int64)
    if num_shards == 1:
        return Assignment(everything)
    labels, _ = repaired(graph, everything, num_shards, capacity=capacity, seed=seed)
    return Assignment(
        labels, notes=(f"{program} was not used: shards of so few nodes are filled greedily",)
    )


def _finished(
    graph: Graph,
    labels: NDArray[np.integer],
    num_shards: int,
    capacity: int,
    seed: int,
    repair: bool,
    program: str,
) -> Assignment:
    if not repair:
        return Assignment(labels, notes=overfull(labels, capacity))
    labels, moves = repaired(graph, labels, num_shards, capacity=capacity, seed=seed)
    notes: tuple[str, ...] = ()
    if moves:
        notes = (
            f"{program} exceeded {capacity} nodes a shard: {moves} nodes were moved to repair it",
        )
    return Assignment(labels, notes=notes)


def repaired(
    graph: Graph, labels: NDArray[np.integer], num_shards: int, *, capacity: int, seed: int
) -> tuple[Ints32, int]:
    """Move nodes out of over-full shards, and one node into every empty shard.

    The nodes of an over-full shard that lose the fewest neighbours move first (ties in a random
    order), each to the shard with room that holds most of its neighbours; on a tie, to the
    smallest. Also returns how many nodes were moved.
    """
    rank = generator(seed, "partition", "repair").permutation(graph.num_nodes)
    new = np.asarray(labels).astype(np.int32)
    sizes = np.bincount(new, minlength=num_shards)
    adjacency, counts = (graph.indptr, graph.indices), np.zeros(num_shards, dtype=np.int64)
    for shard in np.flatnonzero(sizes > capacity):
        members = np.flatnonzero(new == shard)
        losses = [_best_room(*adjacency, new, sizes, capacity, u, counts)[1] for u in members]
        for u in members[np.lexsort((rank[members], losses))][: sizes[shard] - capacity]:
            best, _ = _best_room(*adjacency, new, sizes, capacity, u, counts)
            sizes[shard] -= 1
            sizes[best] += 1
            new[u] = best
    for shard in np.flatnonzero(sizes == 0):
        donor = int(sizes.argmax())
        members = np.flatnonzero(new == donor)
        near = slices_of(graph.indptr, members)
        rows = np.repeat(np.arange(len(members)), graph.degree[members])
        own = np.bincount(rows, new[graph.indices[near]] == donor, minlength=len(members))
        node = members[np.lexsort((rank[members], own))[0]]
        new[node] = shard
        sizes[donor] -= 1
        sizes[shard] += 1
    return new, int((new != labels).sum())


@compiled
def _best_room(indptr, indices, labels, sizes, capacity, u, counts):  # type: ignore[no-untyped-def]
    """The shard with room that holds most neighbours of u; on a tie, the smallest."""
    for e in range(indptr[u], indptr[u + 1]):
        counts[labels[indices[e]]] += 1
    best = -1
    for j in range(len(sizes)):
        if sizes[j] < capacity and (
            best < 0
            or counts[j] > counts[best]
            or (counts[j] == counts[best] and sizes[j] < sizes[best])
        ):
            best = j
    loss = counts[labels[u]] - counts[best]
    for e in range(indptr[u], indptr[u + 1]):
        counts[labels[indices[e]]] = 0
    return best, loss
