"""The paper's embedding: the hidden layer of a GNN trained on the training graph's labels.

The paper takes 32 dimensions from "a pretrained GNN"; its code trains a GraphSAGE with labels.
Here it is a GraphSAGE with 32 hidden units, trained for 100 epochs on the whole training graph as
one shard; a node's embedding is its input to the second layer.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from grapheraser.graph import Graph
from grapheraser.models import ModelSpec
from grapheraser.partition.embedding import DIMENSIONS
from grapheraser.seeding import derive
from grapheraser.training import ShardTask, TrainingConfig, resolve_engine

_EPOCHS = 100


def pretrained_gnn(graph: Graph, seed: int) -> NDArray[np.float32]:
    """Hidden units ``[n, 32]`` of a GraphSAGE trained on the labels, by position."""
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
