"""What the PyG modules of the built-in models are made of: ``forward(x, edge_index) -> logits``."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from grapheraser.models.declaration import declaration_of
from grapheraser.models.spec import ModelSpec

_ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": F.relu,
    "elu": F.elu,
    "none": lambda x: x,
}


def build_module(spec: ModelSpec, num_features: int, num_classes: int) -> nn.Module:
    """The PyG module of a spec, with PyG's own initial weights."""
    with warnings.catch_warnings():
        # A shard whose nodes have no features at all is a module without inputs.
        warnings.filterwarnings("ignore", "Initializing zero-element tensors")
        return declaration_of(spec.kind).module(spec, num_features, num_classes)


class BuiltIn(nn.Module):
    """What the built-in models share: a spec, and its activation and dropout."""

    def __init__(self, spec: ModelSpec) -> None:
        super().__init__()
        self.spec = spec
        self.supports_edge_weight = declaration_of(spec.kind).weighs_edges

    def _input(self, x: Tensor) -> Tensor:
        return F.dropout(x, self.spec.input_dropout, self.training)

    def _activate(self, h: Tensor) -> Tensor:
        return F.dropout(_ACTIVATIONS[self.spec.activation](h), self.spec.dropout, self.training)


class TwoConvolutions(BuiltIn):
    """Two message-passing layers; after the second, a linear head if there is one."""

    def __init__(
        self,
        spec: ModelSpec,
        conv1: nn.Module,
        conv2: nn.Module,
        *,
        norm1: nn.Module | None = None,
        norm2: nn.Module | None = None,
        head: nn.Module | None = None,
    ) -> None:
        super().__init__(spec)
        self.conv1, self.norm1 = conv1, norm1 or nn.Identity()
        self.conv2, self.norm2 = conv2, norm2 or nn.Identity()
        self.head = head

    def forward(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None = None) -> Tensor:
        edges = (edge_index,) if edge_weight is None else (edge_index, edge_weight)
        h = self._activate(self.norm1(self.conv1(self._input(x), *edges)))
        logits: Tensor = self.conv2(h, *edges)
        if self.head is not None:
            logits = self.head(self._activate(self.norm2(logits)))
        return logits


class Perceptron(BuiltIn):
    """Three linear layers."""

    def __init__(self, spec: ModelSpec, num_features: int, num_classes: int) -> None:
        super().__init__(spec)
        second = spec.second_hidden or spec.hidden
        self.lin1 = nn.Linear(num_features, spec.hidden)
        self.lin2 = nn.Linear(spec.hidden, second)
        self.lin3 = nn.Linear(second, num_classes)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        del edge_index
        h = self._activate(self.lin1(self._input(x)))
        logits: Tensor = self.lin3(self._activate(self.lin2(h)))
        return logits


class BatchNorm(nn.BatchNorm1d):
    """Batch norm that also takes a single row, whose variance is 0: deletions can leave one."""

    def forward(self, x: Tensor) -> Tensor:
        if not self.training or len(x) > 1:
            return super().forward(x)
        # As `running * (1 - momentum) + row * momentum`, with these roundings.
        old = 1 - (self.momentum or 0.0)
        with torch.no_grad():
            self.get_buffer("running_mean").mul_(old).add_(x[0], alpha=1 - old)
            self.get_buffer("running_var").mul_(old)
        return torch.zeros_like(x) * self.weight + self.bias
