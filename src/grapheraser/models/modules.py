"""The built-in models as PyG modules: ``forward(x, edge_index) -> logits``."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.nn import GATConv, GCNConv, GINConv, SAGEConv

from grapheraser.models.spec import ModelSpec

_ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": F.relu,
    "elu": F.elu,
    "none": lambda x: x,
}


class BuiltIn(nn.Module):
    """What the built-in models share: a spec, and its activation and dropout."""

    def __init__(self, spec: ModelSpec) -> None:
        super().__init__()
        self.spec = spec

    def _input(self, x: Tensor) -> Tensor:
        return F.dropout(x, self.spec.input_dropout, self.training)

    def _activate(self, h: Tensor) -> Tensor:
        return F.dropout(_ACTIVATIONS[self.spec.activation](h), self.spec.dropout, self.training)


class BatchNorm(nn.BatchNorm1d):
    """Batch norm that also takes a single row, whose variance is 0: deletions can leave one."""

    def forward(self, x: Tensor) -> Tensor:
        if not self.training or len(x) > 1:
            return super().forward(x)
        kept = 1 - (self.momentum or 0.0)
        with torch.no_grad():
            self.get_buffer("running_mean").mul_(kept).add_(x[0], alpha=1 - kept)
            self.get_buffer("running_var").mul_(kept)
        return torch.zeros_like(x) * self.weight + self.bias


class GCN(BuiltIn):
    """Two graph convolutions."""

    def __init__(self, spec: ModelSpec, in_channels: int, out_channels: int) -> None:
        super().__init__(spec)
        options = {"add_self_loops": spec.self_loops, "bias": spec.bias}
        self.conv1 = GCNConv(in_channels, spec.hidden, **options)
        self.conv2 = GCNConv(spec.hidden, out_channels, **options)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        h = self._activate(self.conv1(self._input(x), edge_index))
        logits: Tensor = self.conv2(h, edge_index)
        return logits


class SAGE(BuiltIn):
    """Two GraphSAGE layers with mean aggregation."""

    def __init__(self, spec: ModelSpec, in_channels: int, out_channels: int) -> None:
        super().__init__(spec)
        self.conv1 = SAGEConv(in_channels, spec.hidden)
        self.conv2 = SAGEConv(spec.hidden, out_channels)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        h = self._activate(self.conv1(self._input(x), edge_index))
        logits: Tensor = self.conv2(h, edge_index)
        return logits


class GAT(BuiltIn):
    """A multi-head attention layer and a single-head one."""

    def __init__(self, spec: ModelSpec, in_channels: int, out_channels: int) -> None:
        super().__init__(spec)
        options = {"add_self_loops": spec.self_loops, "dropout": spec.attention_dropout}
        self.conv1 = GATConv(in_channels, spec.hidden, heads=spec.heads, **options)
        self.conv2 = GATConv(spec.hidden * spec.heads, out_channels, heads=1, **options)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        h = self._activate(self.conv1(self._input(x), edge_index))
        logits: Tensor = self.conv2(h, edge_index)
        return logits


class GIN(BuiltIn):
    """Two GIN layers, each summing neighbours into a two-layer perceptron."""

    def __init__(self, spec: ModelSpec, in_channels: int, out_channels: int) -> None:
        super().__init__(spec)
        width = spec.hidden
        last = width if spec.linear_head else out_channels
        self.conv1 = GINConv(_perceptron(in_channels, width, width))
        self.norm1 = BatchNorm(width) if spec.batch_norm else nn.Identity()
        self.conv2 = GINConv(_perceptron(width, width, last))
        if spec.linear_head:
            self.norm2 = BatchNorm(width) if spec.batch_norm else nn.Identity()
            self.head = nn.Linear(width, out_channels)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        h = self._activate(self.norm1(self.conv1(self._input(x), edge_index)))
        logits: Tensor = self.conv2(h, edge_index)
        if self.spec.linear_head:
            logits = self.head(self._activate(self.norm2(logits)))
        return logits


class MLP(BuiltIn):
    """Three linear layers that never look at the edges: the baseline without structure."""

    def __init__(self, spec: ModelSpec, in_channels: int, out_channels: int) -> None:
        super().__init__(spec)
        self.lin1 = nn.Linear(in_channels, spec.hidden)
        second = spec.second_hidden or spec.hidden
        self.lin2 = nn.Linear(spec.hidden, second)
        self.lin3 = nn.Linear(second, out_channels)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        del edge_index
        h = self._activate(self.lin1(self._input(x)))
        logits: Tensor = self.lin3(self._activate(self.lin2(h)))
        return logits


def _perceptron(width_in: int, width: int, width_out: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(width_in, width), nn.ReLU(), nn.Linear(width, width_out))


MODULES: dict[str, type[GCN | SAGE | GAT | GIN | MLP]] = {
    "gcn": GCN,
    "sage": SAGE,
    "gat": GAT,
    "gin": GIN,
    "mlp": MLP,
}


def build_module(spec: ModelSpec, in_channels: int, out_channels: int) -> nn.Module:
    """The PyG module of a spec, with PyG's own initial weights."""
    with warnings.catch_warnings():
        # A shard whose nodes have no features at all is a module without inputs.
        warnings.filterwarnings("ignore", "Initializing zero-element tensors")
        return MODULES[spec.kind](spec, in_channels, out_channels)
