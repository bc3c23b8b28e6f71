"""Encoders per shard: GNNs that turn a node into a row, two of which make a link.

A shard's encoder is trained on its own nodes and the edges between them: the scalar product of two
rows is the logarithm of the odds of an edge. An encoder ends in a softmax as every shard model of
this package does, so rows are read off its posteriors: their logarithms, centred.

About a pair, the shards of its two nodes are asked, each about both nodes on the whole current
graph, and their answers averaged. An edge between two shards is thus answered by two models that
were not trained on it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from grapheraser.aggregation.base import Ensemble
from grapheraser.engines import ShardTask, ShardWeights, TrainingConfig
from grapheraser.engines.engine import PygEngine, check_processor
from grapheraser.graph import Edges, Graph
from grapheraser.kernels.elementary import logarithms
from grapheraser.links.regression import Vector
from grapheraser.seeding import derive

# Logarithms of smaller posteriors are all the same.
_SMALLEST = 1e-30
# Evidence beyond this says no more.
_MAX_LOG_ODDS = 12.0
_SCALE = 0.25


@dataclass(frozen=True)
class LinkEngine(PygEngine):
    """Trains an encoder on the edges of a shard, in plain PyTorch, on one thread."""

    def train(self, task: ShardTask, config: TrainingConfig) -> ShardWeights:
        """See `Engine`."""
        from grapheraser.links.encoder import train_encoder

        check_processor(self.processor, self.device)
        return train_encoder(task, config, device=self.device)


def without_edges(graph: Graph, edges: NDArray[np.int64]) -> Graph:
    """The graph without some of its edges."""
    return graph.without(Edges(edges)) if len(edges) else graph


def shard_evidence(ensemble: Ensemble, graph: Graph, pairs: NDArray[np.int64]) -> Vector:
    """Return what the shards say about pairs of ids: a bounded logarithm of odds, scaled.

    The graph is the current one, or one without some of its edges.
    """
    if len(pairs) == 0:
        return np.zeros(0)
    seen = Ensemble(graph, ensemble.partition, ensemble.shards, ensemble.model, ensemble.seed)
    nodes = np.unique(pairs)
    own = seen.shards_of(nodes)
    u, v = np.searchsorted(nodes, pairs[:, 0]), np.searchsorted(nodes, pairs[:, 1])
    total, asked = np.zeros(len(pairs)), np.zeros(len(pairs))
    gathered = seen.gather(graph.positions(nodes))
    for shard in seen.shard_ids:
        held = (own[u] == shard) | (own[v] == shard)
        wanted = np.unique(np.concatenate([u[held], v[held]]))
        if len(wanted) == 0:
            continue
        ask = np.full((len(nodes), 1), -1, dtype=np.int32)
        ask[wanted, 0] = shard
        found = seen.asked_posteriors(gathered, ask)[wanted, 0]
        rows = np.zeros((len(nodes), found.shape[1]))
        rows[wanted] = encoded(found)
        total[held] += np.einsum("ij,ij->i", rows[u[held]], rows[v[held]])
        asked[held] += 1.0
    return np.clip(total / np.maximum(asked, 1.0), -_MAX_LOG_ODDS, _MAX_LOG_ODDS) * _SCALE


def encoded(posteriors: NDArray[np.float32]) -> NDArray[np.float64]:
    """The rows of nodes ``[m, width]`` from their posteriors."""
    logs: NDArray[np.float64] = logarithms(np.maximum(posteriors.astype(np.float64), _SMALLEST))
    rows: NDArray[np.float64] = logs - logs.mean(axis=1, keepdims=True)
    return rows / math.sqrt(rows.shape[1])


def negatives_key(seed: int, epoch: int) -> int:
    """Return the key that chooses pairs without an edge in one epoch of a shard's training."""
    return derive(seed, "negatives", epoch)
