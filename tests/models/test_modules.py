"""Batch norms of single rows: what two equal rows give, which PyTorch accepts."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch_geometric.nn import BatchNorm

from grapheraser.models.modules import accept_few_rows


def after(norm: nn.Module, x: Tensor, times: int = 3) -> tuple[Tensor, dict[str, Tensor]]:
    """The last output of training and all that was learned or counted."""
    with torch.no_grad():
        for parameter in norm.parameters():
            parameter.add_(0.5)
    for step in range(times):
        out = norm.train()(x + step)
    return out, norm.state_dict()


@pytest.mark.parametrize(
    "options",
    [{}, {"momentum": 0.3}, {"momentum": None}, {"affine": False}, {"track_running_stats": False}],
    ids=repr,
)
@pytest.mark.parametrize("kind", [nn.BatchNorm1d, BatchNorm])
def test_one_row_is_normalised_as_two_equal_ones(kind: Any, options: dict[str, Any]) -> None:
    row = torch.tensor([[1.0, -2.0, 3.0]])
    one, two = kind(3, **options), kind(3, **options)
    accept_few_rows(one)
    found, state = after(one, row)
    expected, wanted = after(two, row.repeat(2, 1))
    # Rounding of the mean of two equal rows is divided by the root of 1e-5.
    torch.testing.assert_close(found, expected[:1], atol=1e-3, rtol=0)
    assert state.keys() == wanted.keys()
    for name, value in wanted.items():
        torch.testing.assert_close(state[name], value)


def test_more_rows_and_answers_are_as_ever() -> None:
    x = torch.randn(5, 3, generator=torch.Generator().manual_seed(0))
    ours, theirs = nn.BatchNorm1d(3), nn.BatchNorm1d(3)
    accept_few_rows(ours)
    assert torch.equal(ours(x), theirs(x))
    assert torch.equal(ours.eval()(x[:1]), theirs.eval()(x[:1]))
    for name, value in theirs.state_dict().items():
        assert torch.equal(ours.state_dict()[name], value)


def test_no_rows_leave_the_statistics_alone() -> None:
    norm = nn.BatchNorm1d(3)
    accept_few_rows(norm)
    assert norm(torch.zeros(0, 3)).shape == (0, 3)
    assert torch.equal(norm.get_buffer("running_var"), torch.ones(3))


def test_gradients_flow_through_a_single_row() -> None:
    linear, norm = nn.Linear(2, 3), nn.BatchNorm1d(3)
    accept_few_rows(norm)
    torch.autograd.backward(norm(linear(torch.ones(1, 2))).sum())
    assert norm.bias.grad is not None
    assert norm.bias.grad.tolist() == [1.0, 1.0, 1.0]
