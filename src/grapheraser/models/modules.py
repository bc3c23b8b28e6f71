"""The PyG modules of the built-in models: ``forward(x, edge_index) -> logits``."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import partial
from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from grapheraser.models.builtin import architecture_of, declaration_of
from grapheraser.models.spec import ModelSpec

_ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": F.relu,
    "elu": F.elu,
    "none": lambda x: x,
}


def build_module(spec: ModelSpec, num_features: int, num_classes: int) -> nn.Module:
    """The PyG module of a spec, with PyG's own initial weights."""
    # A shard without features is a module without inputs. Others leave filters as they are: after a
    # change of them a warning that was shown once is shown again.
    with warnings.catch_warnings() if num_features == 0 else nullcontext():
        if num_features == 0:
            warnings.filterwarnings("ignore", "Initializing zero-element tensors")
        return declaration_of(spec.kind).module(spec, num_features, num_classes)


class BuiltIn(nn.Module):
    """Base class of the built-in modules: a spec, and its activation and dropout."""

    def __init__(self, spec: ModelSpec) -> None:
        super().__init__()
        self.spec = spec
        self.supports_edge_weight = declaration_of(spec.kind).weighs_edges
        # Modules, not functions: PyG's to_hetero would trace a function with dropout always on.
        self.drop_input, self.drop = nn.Dropout(spec.input_dropout), nn.Dropout(spec.dropout)

    def _input(self, x: Tensor) -> Tensor:
        dropped: Tensor = self.drop_input(x)
        return dropped

    def _activate(self, h: Tensor) -> Tensor:
        dropped: Tensor = self.drop(_ACTIVATIONS[self.spec.activation](h))
        return dropped


class Convolutions(BuiltIn):
    """Message-passing layers ``conv1``, ``conv2``..., each but the last followed by its norm.

    Where there is a linear ``head``, the last one's norm and the head follow as well. ``own`` maps
    a node's row beside each layer.
    """

    def __init__(
        self,
        spec: ModelSpec,
        layers: Sequence[nn.Module],
        *,
        own: Sequence[nn.Module] = (),
        head: nn.Module | None = None,
    ) -> None:
        super().__init__(spec)
        width = architecture_of(spec, 1, 1).hidden.count
        for number, layer in enumerate(layers, start=1):
            self.add_module(f"conv{number}", layer)
            norm: nn.Module = nn.Identity()
            if number < len(layers) or head is not None:
                if spec.batch_norm:
                    norm = nn.BatchNorm1d(width)
                elif spec.layer_norm:
                    norm = nn.LayerNorm(width)
            self.add_module(f"norm{number}", norm)
        for number, linear in enumerate(own, start=1):
            self.add_module(f"own{number}", linear)
        self.has_own, self.head = bool(own), head

    def forward(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None = None) -> Tensor:
        edges = (edge_index,) if edge_weight is None else (edge_index, edge_weight)
        h, depth = self._input(x), self.spec.depth
        for number in range(1, depth + 1):
            own = self.get_submodule(f"own{number}")(h) if self.has_own else None
            h = self.get_submodule(f"conv{number}")(h, *edges)
            h = h if own is None else h + own
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


def accept_few_rows(module: nn.Module) -> None:
    """Let every batch norm in a module train on a single row: deletions can leave one.

    Its variance is taken as 0, where PyTorch refuses it. Two rows and more are as ever.
    """
    for part in module.modules():
        if isinstance(part, _BatchNorm):
            part.forward = partial(_normalised, part)  # type: ignore[method-assign]


def _normalised(norm: _BatchNorm, x: Tensor) -> Tensor:
    channels = x.size(1) if x.dim() > 1 else 0
    if not norm.training or x.numel() > channels:
        out: Tensor = type(norm).forward(norm, x)
        return out
    if norm.track_running_stats and x.numel():
        _follow(norm, x.detach().reshape(-1))
    centred = torch.zeros_like(x)
    if not norm.affine:
        return centred
    shape = (1, channels, *[1] * (x.dim() - 2))
    return centred * norm.weight.reshape(shape) + norm.bias.reshape(shape)


def _follow(norm: _BatchNorm, row: Tensor) -> None:
    """Bring the running statistics up to a single row: its own mean, no variance."""
    counter = norm.get_buffer("num_batches_tracked").add_(1)
    share = 1 / float(counter) if norm.momentum is None else norm.momentum
    # As `running * (1 - momentum) + row * momentum`, with these roundings.
    old = 1 - share
    norm.get_buffer("running_mean").mul_(old).add_(row, alpha=1 - old)
    norm.get_buffer("running_var").mul_(old)
