"""The module of a built-in network over whole graphs."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from grapheraser.models import ModelSpec
from grapheraser.models.modules import build_module


class GraphNetwork(nn.Module):
    """A built-in model of nodes, whose rows are read out, and a linear head."""

    def __init__(self, spec: ModelSpec, readout: str, columns: int, outputs: int) -> None:
        super().__init__()
        self.readout = readout
        self.nodes = build_module(spec, columns, spec.hidden)
        self.norm = nn.BatchNorm1d(spec.hidden)
        self.head = nn.Linear(spec.hidden, outputs)

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        h = torch.relu(self.nodes(x, edge_index))
        sizes = torch.bincount(batch)
        if self.readout == "max":  # no row is below 0
            read = h.new_zeros(len(sizes), h.shape[1])
            read = read.scatter_reduce(0, batch[:, None].expand_as(h), h, "amax")
        else:
            read = h.new_zeros(len(sizes), h.shape[1]).index_add(0, batch, h)
            read = read / sizes[:, None] if self.readout == "mean" else read
        out: Tensor = self.head(self.norm(read))
        return out
