"""Training an encoder: the loop of `engines.reference` with the loss of link prediction."""

from __future__ import annotations

import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from grapheraser.engines import ShardTask, ShardWeights, TrainingConfig
from grapheraser.engines.batches import edge_tensors, shard_tensors
from grapheraser.engines.graph_checks import accepted
from grapheraser.engines.reference import initial_module, reproducible, tensors_of
from grapheraser.links.shards import negatives_key


def train_encoder(task: ShardTask, config: TrainingConfig, *, device: str = "cpu") -> ShardWeights:
    """Train on the edges of a shard, and in each epoch on as many pairs drawn from its nodes.

    A shard without edges keeps the weights that it starts with.
    """
    graph, columns = task.graph, task.columns(config.model)
    x, edge_index = shard_tensors(graph, columns, device)
    once = edge_index[:, edge_index[0] < edge_index[1]]
    with reproducible(task.seed):
        module = initial_module(task, config.model, columns).to(device)
        carried = accepted(module, edge_tensors(graph, device))
        model = config.model
        optimizer = torch.optim.Adam(
            module.parameters(), lr=model.lr, weight_decay=model.weight_decay
        )
        module.train()
        for epoch in range(config.epochs if once.shape[1] else 0):
            optimizer.zero_grad()
            rows = _rows(module(x, edge_index, **carried))
            others = _drawn(negatives_key(task.seed, epoch), once.shape[1], graph.num_nodes, device)
            pairs = torch.cat([once, others], dim=1)
            labels = torch.zeros(pairs.shape[1], device=device)
            labels[: once.shape[1]] = 1.0
            logits = (rows[pairs[0]] * rows[pairs[1]]).sum(dim=1)
            F.binary_cross_entropy_with_logits(logits, labels).backward()  # type: ignore[no-untyped-call]
            optimizer.step()
    return ShardWeights(columns, tensors_of(module, model))


def _rows(scores: Tensor) -> Tensor:
    """As `shards.encoded` reads them off posteriors."""
    logs = F.log_softmax(scores, dim=1)
    return (logs - logs.mean(dim=1, keepdim=True)) / math.sqrt(scores.shape[1])


def _drawn(key: int, count: int, num_nodes: int, device: str) -> Tensor:
    drawn = np.random.Generator(np.random.PCG64(key)).integers(0, num_nodes, size=(2, count))
    return torch.from_numpy(drawn).to(device)
