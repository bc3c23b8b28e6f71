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
import scipy.sparse as sp
from numpy.typing import NDArray

from grapheraser.arrays import Floats32, Ints, Ints32
from grapheraser.engines import ShardTask, TrainingConfig, resolve_engine
from grapheraser.errors import PartitionError
from grapheraser.graph import Graph
from grapheraser.graph.labels import require_classes
from grapheraser.kernels.compiled import compiled
from grapheraser.models import ModelSpec
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
from grapheraser.seeding import derive, generator

# The paper takes 32 dimensions from "a pretrained GNN"; its code trains a GraphSAGE with labels.
# Here that is a GraphSAGE with 32 hidden units, trained for 100 epochs on the whole training
# graph as one shard; a node's embedding is its input to the second layer.
DIMENSIONS = 32
HOPS = 4


def smoothed_features(
    graph: Graph, seed: int, *, dimensions: int = DIMENSIONS, hops: int = HOPS
) -> NDArray[np.float32]:
    """A^hops X R, by position ``[n, dimensions]``, rows of unit length (or zero).

    A is the symmetrically normalised adjacency with self-loops, X the features with rows of unit
    length, R a seeded random projection. Products are taken from the right and X stays sparse, so
    the cost is that of ``dimensions`` columns. Sums run in the order of the sparse rows: the
    result does not depend on threads.

    Unit rows and four hops were chosen by the share of edges kept on the paper's five data sets
    (`bekm`, three seeds): each raises it on all five. A truncated SVD instead of the projection
    keeps 1 to 4 points more on Cora, Citeseer and Pubmed and 1 to 2 fewer on the coauthor graphs,
    and makes purer shards on all. The projection is the default because it costs about a tenth,
    and its bits do not depend on the number of threads.
    """
    lengths = np.sqrt(np.asarray(graph.x.multiply(graph.x).sum(axis=1), dtype=np.float64)).ravel()
    unit = sp.diags_array(1 / np.where(lengths > 0, lengths, 1.0)) @ graph.x
    random = generator(seed, "partition", "embedding")
    points = unit @ random.standard_normal((graph.num_features, dimensions))
    smooth = normalised_adjacency(graph)
    for _ in range(hops):
        points = smooth @ points
    lengths = np.sqrt((points * points).sum(axis=1, keepdims=True))
    return np.asarray(points / np.where(lengths > 0, lengths, 1.0), dtype=np.float32)


def normalised_adjacency(graph: Graph) -> sp.csr_array:
    """D^-1/2 (A + I) D^-1/2, where D counts the neighbours and the node itself."""
    n = graph.num_nodes
    ones = np.ones(len(graph.indices))
    adjacency = sp.csr_array((ones, graph.indices.copy(), graph.indptr.copy()), shape=(n, n))
    scale = sp.diags_array(1 / np.sqrt(graph.degree + 1.0))
    return sp.csr_array(scale @ (adjacency + sp.eye_array(n)) @ scale)


_EPOCHS = 100


def pretrained_gnn(graph: Graph, seed: int) -> NDArray[np.float32]:
    """Hidden units ``[n, 32]`` of a GraphSAGE trained on the labels, by position."""
    require_classes(graph, "a partition by a pretrained GNN")
    spec = ModelSpec("sage", hidden=DIMENSIONS)
    task = ShardTask(0, graph, derive(seed, "partition", "pretrained"))
    config = TrainingConfig(spec, epochs=_EPOCHS)
    weights = resolve_engine("auto", config, "cpu").train(task, config)
    own, around, bias = (
        weights.tensors[f"conv1.{name}"].astype(np.float32)
        for name in ("lin_r.weight", "lin_l.weight", "lin_l.bias")
    )
    # SciPy's sparse products sum row by row, so the bits do not depend on threads.
    x = graph.x[:, weights.columns]
    hidden = x @ own.T + mean_adjacency(graph) @ (x @ around.T) + bias
    return np.maximum(np.asarray(hidden, dtype=np.float32), 0)


def mean_adjacency(graph: Graph) -> sp.csr_array:
    """Row-normalised adjacency without self-loops; the row of an isolated node is empty."""
    n = graph.num_nodes
    share = np.repeat(1 / np.maximum(graph.degree, 1), graph.degree).astype(np.float32)
    return sp.csr_array((share, graph.indices.copy(), graph.indptr.copy()), shape=(n, n))


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
        points, limits = embed(self.embedding, graph, seed), (capacity, self.max_iterations)
        labels, moved = cluster(points, num_shards, *limits, seed=seed, assign=self.assign)
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
    capacity: int,
    max_iterations: int,
    *,
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


def means(points: Floats32, labels: Ints32, num_shards: int) -> Floats32:
    """The mean point of each (non-empty) shard ``[k, d]``, summed in the order of the nodes."""
    sums = np.zeros((num_shards, points.shape[1]))
    np.add.at(sums, labels, points)
    sizes = np.bincount(labels, minlength=num_shards)
    return (sums / sizes[:, None]).astype(points.dtype)
