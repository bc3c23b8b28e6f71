"""Modules of a user, and the state of torch: what tests share that needs the extra ``gnn``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn


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


@contextmanager
def torch_state_kept() -> Iterator[None]:
    """Check that torch's generator, thread count and determinism stay as they were."""
    before, threads = torch.random.get_rng_state(), torch.get_num_threads()
    deterministic = torch.are_deterministic_algorithms_enabled()
    yield
    assert torch.are_deterministic_algorithms_enabled() == deterministic
    assert torch.equal(torch.random.get_rng_state(), before)
    assert torch.get_num_threads() == threads
