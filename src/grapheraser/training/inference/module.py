"""A user's own module on the whole graph."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from grapheraser.graph import Graph
from grapheraser.models import CustomModel, Model
from grapheraser.training.task import ShardWeights


def check_module(model: Model, weights: Iterable[ShardWeights], graph: Graph) -> None:
    """Refuse a user's module that cannot hold the weights of a shard."""
    if isinstance(model, CustomModel):
        from grapheraser.training import reference

        with reference.reproducible(0):
            module = model.factory(graph.num_features, graph.num_classes)
            for shard in islice(weights, 1):
                reference.load_tensors(module, shard.tensors)


def module_posteriors(
    model: CustomModel,
    weights: Sequence[ShardWeights],
    graph: Graph,
    positions: NDArray[np.int64],
) -> NDArray[np.float32]:
    """Posteriors of a user's module, which may look as far as it likes: it sees the whole graph."""
    import torch

    from grapheraser.training import reference

    columns = np.arange(graph.num_features, dtype=np.int32)
    x, edge_index = reference.shard_tensors(graph, columns)
    out = np.empty((len(weights), len(positions), graph.num_classes), dtype=np.float32)
    with reference.reproducible(0), torch.no_grad():
        for i, shard in enumerate(weights):
            module = model.factory(graph.num_features, graph.num_classes)
            reference.load_tensors(module, shard.tensors)
            module.eval()
            out[i] = torch.softmax(module(x, edge_index), dim=1).numpy()[positions]
    return out
