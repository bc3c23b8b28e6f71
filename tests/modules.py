"""Modules of a user, and the state of torch: what tests share that needs the extra ``gnn``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from grapheraser.models import ModelSpec
from grapheraser.models.modules import build_module


class TwoHops(nn.Module):
    """A user's own module, as plain as can be: features summed over two hops, then linear."""

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.inner = nn.Linear(in_channels, 6)
        self.drop = nn.Dropout(0.3)
        self.outer = nn.Linear(6, out_channels)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        h = self.drop(torch.tanh(self.inner(_with_neighbours(x, edge_index))))
        logits: Tensor = self.outer(_with_neighbours(h, edge_index))
        return logits


def _with_neighbours(x: Tensor, edge_index: Tensor) -> Tensor:
    return x.index_add(0, edge_index[0], x[edge_index[1]])


class Weighing(nn.Module):
    """A user's own module that uses all that edges carry."""

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.inner = nn.Linear(in_channels, 6)
        self.outer = nn.Linear(6, out_channels)
        self.drop = nn.Dropout(0.3)

    def forward(
        self,
        x: Tensor,
        edge_index: Tensor,
        edge_weight: Tensor | None = None,
        edge_attr: Tensor | None = None,
    ) -> Tensor:
        share = torch.ones(edge_index.shape[1]) if edge_weight is None else edge_weight
        if edge_attr is not None:
            share = share * (1 + edge_attr.sum(dim=1))
        source, target = edge_index
        h = self.drop(torch.tanh(self.inner(x)))
        h = h.index_add(0, target, share[:, None] * h[source])
        logits: Tensor = self.outer(h.index_add(0, target, share[:, None] * h[source]))
        return logits


class Sums(nn.Module):
    """A user's own: features of all neighbours, summed by relation and weighted."""

    def __init__(self, types: Any, out_channels: int) -> None:
        super().__init__()
        self.types = types
        widths = types.in_channels
        self.parts = nn.ModuleList(nn.Linear(widths[a], out_channels) for a, _, b in self.ways)
        self.own = nn.Linear(widths[types.target], out_channels)

    @property
    def ways(self) -> Iterator[Any]:
        return (way for way in self.types.metadata[1] if way[2] == self.types.target)

    def forward(self, x_dict: Any, edge_index_dict: Any, edge_weight_dict: Any) -> Any:
        out = self.own(x_dict[self.types.target])
        for way, part in zip(self.ways, self.parts, strict=True):
            (sources, targets), weight = edge_index_dict[way], edge_weight_dict[way]
            messages = part(x_dict[way[0]])[sources] * weight[:, None]
            out = out.index_add(0, targets, messages)
        return {self.types.target: out}


class Hetero(nn.Module):
    """The built-in GraphSAGE, made one of typed graphs by PyG."""

    def __init__(self, types: Any, out_channels: int) -> None:
        super().__init__()
        from torch_geometric.nn import to_hetero

        widths = types.in_channels.items()
        self.lift = nn.ModuleDict({name: nn.Linear(w, 8) for name, w in widths})
        body = build_module(ModelSpec("sage", hidden=8), 8, out_channels)
        self.body = to_hetero(body, types.metadata)

    def forward(self, x_dict: Any, edge_index_dict: Any) -> Any:
        rows = {name: self.lift[name](x) for name, x in x_dict.items()}
        return self.body(rows, edge_index_dict)


@contextmanager
def torch_state_kept() -> Iterator[None]:
    """Check that torch's generator, thread count and determinism stay as they were."""
    before, threads = torch.random.get_rng_state(), torch.get_num_threads()
    deterministic = torch.are_deterministic_algorithms_enabled()
    yield
    assert torch.are_deterministic_algorithms_enabled() == deterministic
    assert torch.equal(torch.random.get_rng_state(), before)
    assert torch.get_num_threads() == threads
