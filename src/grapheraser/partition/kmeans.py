"""k-means over node embeddings: `ekm`, `bekm` and `bekm-hungarian`.

`bekm` is the paper's Algorithm 2. All start from k random nodes as centroids and repeat at most T
times: squared distances of all nodes to all centroids, assignment, new centroids (the mean of each
shard). They differ in the assignment:

- `ekm`: the nearest centroid.
- `bekm`: pairs by rising distance while the shard holds fewer than delta nodes
  (`greedy_assignment`).
- `bekm-hungarian`: the smallest sum of squared distances under the capacity
  (`optimal_assignment`).

Ties between equal distances go by a random order of the nodes, fixed for the run, then by shard. A
shard that would be empty gets the nearest node of the shards that hold more than one. The run ends
when no node changes its shard.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

import numpy as np

from grapheraser.arrays import Floats32, Ints, Ints32
from grapheraser.errors import PartitionError
from grapheraser.graph import Graph
from grapheraser.kernels.compiled import compiled
from grapheraser.partition.assignment import greedy_assignment, optimal_assignment
from grapheraser.partition.base import (
    EDGES,
    FEATURES,
    LABELS,
    MAX_ITERATIONS,
    NODES,
    Assignment,
    overfull,
)
from grapheraser.partition.embedding import pretrained_gnn, smoothed_features
from grapheraser.seeding import generator

Embedding: TypeAlias = Callable[[Graph, int], Any]
Assign: TypeAlias = Callable[[Floats32, Ints, int], Ints32]


def nearest(distances: Floats32, rank: Ints, capacity: int) -> Ints32:
    """Assign each node to its nearest centroid."""
    del rank, capacity
    return distances.argmin(axis=1).astype(np.int32)


def nearest_with_room(distances: Floats32, rank: Ints, capacity: int) -> Ints32:
    """Assign pairs by rising distance while the shard has room."""
    labels: Ints32 = greedy_assignment(distances, rank, capacity)
    return labels


def cheapest(distances: Floats32, rank: Ints, capacity: int) -> Ints32:
    """Assign with the smallest sum of squared distances under the capacity."""
    order = np.argsort(rank)
    labels = np.empty(len(rank), dtype=np.int32)
    labels[order] = optimal_assignment(distances[order].astype(np.float64), capacity)
    return labels


@dataclass(frozen=True)
class EkmPartitioner:
    """Classical k-means over node embeddings, without a capacity."""

    # ``(training_graph, seed) -> [n, d]``; by default the smoothed and projected features, without
    # training.
    embedding: Embedding = smoothed_features
    max_iterations: int = MAX_ITERATIONS  # T
    # The data that the embedding is computed from; by default all of it, unless the embedding is
    # the default one.
    reads: frozenset[str] | None = None

    name: ClassVar[str] = "ekm"
    strict: ClassVar[bool] = False
    assign: ClassVar[staticmethod[..., Ints32]] = staticmethod(nearest)

    @property
    def inputs(self) -> frozenset[str]:
        if self.reads is not None:
            return self.reads | {NODES}
        unlabelled = frozenset({NODES, EDGES, FEATURES})
        return unlabelled if self.embedding is smoothed_features else unlabelled | {LABELS}

    def __call__(self, graph: Graph, num_shards: int, *, capacity: int, seed: int) -> Assignment:
        labels, moved = cluster(
            embed(self.embedding, graph, seed),
            num_shards,
            capacity=capacity,
            max_iterations=self.max_iterations,
            seed=seed,
            assign=self.assign,
        )
        return Assignment(labels, moved, converged=moved[-1] == 0, notes=overfull(labels, capacity))


@dataclass(frozen=True)
class BekmPartitioner(EkmPartitioner):
    """Balanced embedding k-means, Algorithm 2 of the paper; options as in `EkmPartitioner`."""

    name: ClassVar[str] = "bekm"
    strict: ClassVar[bool] = True
    assign: ClassVar[staticmethod[..., Ints32]] = staticmethod(nearest_with_room)


@dataclass(frozen=True)
class BekmGnnPartitioner(BekmPartitioner):
    """`bekm` over the hidden layer of a GNN trained on the labels, as in the paper."""

    embedding: Embedding = pretrained_gnn

    name: ClassVar[str] = "bekm-gnn"


@dataclass(frozen=True)
class BekmHungarianPartitioner(EkmPartitioner):
    """Balanced k-means with an optimal assignment in every round."""

    name: ClassVar[str] = "bekm-hungarian"
    strict: ClassVar[bool] = True
    assign: ClassVar[staticmethod[..., Ints32]] = staticmethod(cheapest)


def embed(embedding: Embedding, graph: Graph, seed: int) -> Floats32:
    """Call an embedding and check its result."""
    points = np.ascontiguousarray(embedding(graph, seed), dtype=np.float32)
    if points.ndim != 2 or len(points) != graph.num_nodes:
        raise PartitionError(
            f"an embedding must be [{graph.num_nodes}, d] (found shape {points.shape})."
        )
    if not np.isfinite(points).all():
        raise PartitionError("an embedding must be finite (found NaN or infinity).")
    return points


def cluster(
    points: Floats32,
    num_shards: int,
    *,
    capacity: int,
    max_iterations: int,
    seed: int,
    assign: Assign,
) -> tuple[Ints32, tuple[int, ...]]:
    """Run k-means with the given assignment step.

    ``assign`` maps ``(squared distances [n, k], rank [n], capacity)`` to labels ``[n]``. Returns
    the labels, and how many nodes changed their shard in each round (n in the first).
    """
    n = len(points)
    rank = generator(seed, "partition", "kmeans", "rank").permutation(n)
    chosen = generator(seed, "partition", "kmeans", "centroids").choice(
        n, num_shards, replace=False
    )
    centroids = points[chosen]
    labels = np.full(n, -1, dtype=np.int32)
    moved: list[int] = []
    for _ in range(max_iterations):
        distances = squared_distances(points, np.ascontiguousarray(centroids.T))
        new = fill_empty(assign(distances, rank, capacity), distances, rank)
        moved.append(int((new != labels).sum()))
        labels = new
        if moved[-1] == 0:
            break
        centroids = means(points, labels, num_shards)
    return labels, tuple(moved)


def fill_empty(labels: Ints32, distances: Floats32, rank: Ints) -> Ints32:
    """Give every empty shard the nearest node of the shards that hold more than one."""
    sizes = np.bincount(labels, minlength=distances.shape[1])
    for shard in np.flatnonzero(sizes == 0):
        candidates = np.flatnonzero(sizes[labels] > 1)
        best = np.lexsort((rank[candidates], distances[candidates, shard]))[0]
        node = candidates[best]
        sizes[labels[node]] -= 1
        sizes[shard] += 1
        labels[node] = shard
    return labels


@compiled
def squared_distances(points, centroids):  # type: ignore[no-untyped-def]
    """Squared Euclidean distances ``[n, k]`` of points ``[n, d]`` to centroids ``[d, k]``.

    Sums in the order of the dimensions; the last bits of a BLAS depend on its number of threads.
    """
    n, d = points.shape
    k = centroids.shape[1]
    out = np.zeros((n, k), points.dtype)
    for i in range(n):
        row = out[i]
        for f in range(d):
            x = points[i, f]
            centre = centroids[f]
            for j in range(k):
                difference = x - centre[j]
                row[j] += difference * difference
    return out


@compiled
def means(points, labels, num_shards):  # type: ignore[no-untyped-def]
    """The mean point of each (non-empty) shard ``[k, d]``, summed in the order of the nodes."""
    d = points.shape[1]
    sums = np.zeros((num_shards, d))
    sizes = np.zeros(num_shards)
    for i in range(len(points)):
        sizes[labels[i]] += 1
        for f in range(d):
            sums[labels[i], f] += points[i, f]
    out = np.empty((num_shards, d), points.dtype)
    for j in range(num_shards):
        for f in range(d):
            out[j, f] = sums[j, f] / sizes[j]
    return out
