"""What the PyG modules of the built-in models are made of: ``forward(x, edge_index) -> logits``."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from itertools import pairwise

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


class Convolutions(BuiltIn):
    """Message-passing layers ``conv1``, ``conv2``..., each but the last followed by its norm.

    Where there is a linear ``head``, the last one's norm and the head follow as well.
    """

    def __init__(
        self,
        spec: ModelSpec,
        layers: Sequence[nn.Module],
        *,
        norms: Sequence[nn.Module] = (),
        head: nn.Module | None = None,
    ) -> None:
        super().__init__(spec)
        for number, layer in enumerate(layers, start=1):
            self.add_module(f"conv{number}", layer)
            norm = norms[number - 1] if number <= len(norms) else nn.Identity()
            self.add_module(f"norm{number}", norm)
        self.head = head

    def forward(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None = None) -> Tensor:
        edges = (edge_index,) if edge_weight is None else (edge_index, edge_weight)
        h, depth = self._input(x), self.spec.depth
        for number in range(1, depth + 1):
            h = self.get_submodule(f"conv{number}")(h, *edges)
            if number < depth or self.head is not None:
                h = self._activate(self.get_submodule(f"norm{number}")(h))
        return h if self.head is None else self.head(h)


class Perceptron(BuiltIn):
    """Linear layers ``lin1``, ``lin2``..."""

    def __init__(self, spec: ModelSpec, widths: Sequence[int]) -> None:
        super().__init__(spec)
        for number, (inner, out) in enumerate(pairwise(widths), start=1):
            self.add_module(f"lin{number}", nn.Linear(inner, out))

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        del edge_index
        h, depth = self._input(x), self.spec.depth
        for number in range(1, depth + 1):
            h = self.get_submodule(f"lin{number}")(h)
            if number < depth:
                h = self._activate(h)
        return h


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
