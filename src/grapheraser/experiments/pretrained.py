"""The paper's embedding for BEKM: the hidden layer of a GNN trained on the whole training graph.

It has seen every label of the training graph, and so has any partition made from it. GraphEraser's
own `bekm` uses features smoothed over the graph instead, for which nothing is trained.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from grapheraser.graph import Graph
from grapheraser.models import ModelSpec
from grapheraser.seeding import derive
from grapheraser.training import ShardTask, TrainingConfig, resolve_engine

DIMENSIONS = 32
_SPEC = ModelSpec("sage", hidden=DIMENSIONS)


def sage_embedding(graph: Graph, seed: int) -> NDArray[np.float32]:
    """Hidden layer of a two-layer GraphSAGE ``[n, 32]``, by position."""
    engine = resolve_engine("auto", _SPEC, "cpu")
    task = ShardTask(0, graph, derive(seed, "experiment", "embedding"))
    weights = engine.train(task, TrainingConfig(_SPEC, epochs=100))
    tensors = {name: np.asarray(array) for name, array in weights.tensors.items()}
    near, own, bias = (
        tensors[f"conv1.{part}"].astype(np.float64)
        for part in ("lin_l.weight", "lin_r.weight", "lin_l.bias")
    )
    x = graph.x[:, weights.columns].astype(np.float64)
    ones = np.ones(len(graph.indices))
    shape = (graph.num_nodes, graph.num_nodes)
    adjacency = sp.csr_array((ones, graph.indices.copy(), graph.indptr.copy()), shape=shape)
    mean = sp.diags_array(1 / np.maximum(graph.degree, 1)) @ adjacency
    hidden = mean @ (x @ near.T) + x @ own.T + bias
    return np.maximum(hidden, 0.0).astype(np.float32)
