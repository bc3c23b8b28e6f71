"""The quality of a partition, measured on the graph that it partitions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from grapheraser.graph import Graph

if TYPE_CHECKING:
    from grapheraser.partition.base import Partition


@dataclass(frozen=True, eq=False)
class PartitionQuality:
    """Figures of one partition on one training graph."""

    edge_cut: int  # edges between shards
    edges: int  # all edges of the training graph
    modularity: float  # Newman's modularity of the shards
    # Float ``[num_shards]``, entropy in nats of the labels in each shard.
    label_entropy: NDArray[np.float64]
    # Float ``[n]``, share of each node's neighbours in its own shard; NaN where isolated.
    kept: NDArray[np.float64]
    inside: NDArray[np.int64]  # int64 ``[num_shards]``, edges between nodes of each shard

    @property
    def edges_kept(self) -> float:
        """Share of the edges that lie inside a shard; 1 if there are no edges."""
        return 1 - self.edge_cut / self.edges if self.edges else 1.0

    @property
    def neighbours_kept(self) -> float | None:
        """Mean share of a node's neighbours in its own shard; None where all are isolated."""
        known = self.kept[~np.isnan(self.kept)]
        return float(known.mean()) if len(known) else None

    def report(self) -> dict[str, Any]:
        """The figures as plain values, ready for JSON."""
        return {
            "edge_cut": self.edge_cut,
            "edges": self.edges,
            "edges_kept": self.edges_kept,
            "modularity": self.modularity,
            "label_entropy": self.label_entropy.tolist(),
            "neighbours_kept": self.neighbours_kept,
            "isolated": int(np.isnan(self.kept).sum()),
            "inside": self.inside.tolist(),
        }


def measure_labels(graph: Graph, labels: NDArray[np.integer], num_shards: int) -> PartitionQuality:
    """Measure the labels of a training graph's nodes, by position."""
    n = graph.num_nodes
    degree, own = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64)
    for low, indptr, indices in graph.adjacency_blocks():
        rows = slice(low, low + len(indptr) - 1)
        degree[rows] = np.diff(indptr)
        inside = np.repeat(labels[rows], degree[rows]) == labels[indices]
        ends = np.concatenate([[0], np.cumsum(inside)])
        own[rows] = np.diff(ends[indptr])
    edges, kept_entries = int(degree.sum()) // 2, int(own.sum())
    volume = np.bincount(labels, weights=degree, minlength=num_shards)
    modularity = 0.0
    if edges:
        modularity = float(kept_entries / (2 * edges) - ((volume / (2 * edges)) ** 2).sum())
    kept = np.full(n, np.nan)
    kept[degree > 0] = own[degree > 0] / degree[degree > 0]
    # Targets are no classes to be spread evenly: labelled nodes are.
    of_classes = graph.label_kind.is_classes
    counts = np.zeros((num_shards, graph.num_classes if of_classes else 1))
    known = graph.labelled
    column = graph.y[known] if of_classes else np.zeros(int(known.sum()), dtype=np.int64)
    np.add.at(counts, (labels[known], column), 1)
    share = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    log_share = np.log(share, out=np.zeros_like(share), where=share > 0)
    return PartitionQuality(
        edge_cut=edges - kept_entries // 2,
        edges=edges,
        modularity=modularity,
        label_entropy=-(share * log_share).sum(axis=1),
        kept=kept,
        inside=np.bincount(labels, weights=own, minlength=num_shards).astype(np.int64) // 2,
    )


def measure(graph: Graph, partition: Partition) -> PartitionQuality:
    """Measure a partition on the training graph of ``graph``."""
    training = graph.training_view()
    labels = partition.shard_of(training.ids)
    return measure_labels(training, labels, partition.num_shards)
