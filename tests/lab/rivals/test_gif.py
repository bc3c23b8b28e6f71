"""GIF against an explicit Hessian and against the formula of its paper."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

import grapheraser as ge
from grapheraser_lab.rivals.gcn import SPEC, Inputs, Weights, objective, train
from grapheraser_lab.rivals.gif import GifSettings, solved, updated
from grapheraser_lab.rivals.gnndelete import around


@pytest.fixture(scope="module")
def graph(small: ge.Graph) -> ge.Graph:
    return small.training_graph


@pytest.fixture(scope="module")
def weights(graph: ge.Graph) -> Weights:
    inputs = Inputs.of(graph)
    return tuple(w.double() for w in train(inputs, 3, 0, inputs.ids, epochs=60))


def dense_losses(graph: ge.Graph, weights: Weights) -> Tensor:
    """Loss of each node by dense matrices, written apart from the code under test."""
    n = graph.num_nodes
    adjacency = torch.eye(n, dtype=torch.float64)
    rows = {int(node): at for at, node in enumerate(graph.ids)}
    for u, v in graph.edges.tolist():
        adjacency[rows[u], rows[v]] = adjacency[rows[v], rows[u]] = 1.0
    degree = adjacency.sum(dim=1)
    adjacency = adjacency / torch.sqrt(degree[:, None] * degree[None, :])
    h = F.relu(adjacency @ (torch.from_numpy(graph.x.toarray()).double() @ weights[0]) + weights[1])
    z = adjacency @ (h @ weights[2]) + weights[3]
    norm = sum((w**2).sum() for w in weights)
    losses = F.cross_entropy(z, torch.from_numpy(graph.y.copy()), reduction="none")
    return losses + SPEC.weight_decay / 2 * norm


def flat(parts: Any) -> Tensor:
    return torch.cat([part.reshape(-1) for part in parts])


def shaped(vector: Tensor, like: Weights) -> Weights:
    parts = torch.split(vector, [w.numel() for w in like])
    return tuple(part.reshape(w.shape) for part, w in zip(parts, like, strict=True))


def test_the_series_solves_with_the_explicit_hessian(graph: ge.Graph, weights: Weights) -> None:
    start = flat(weights)
    hessian = torch.autograd.functional.hessian(  # type: ignore[no-untyped-call]
        lambda vector: dense_losses(graph, shaped(vector, weights)).sum(), start
    )
    values = torch.linalg.eigvalsh(hessian)
    scale = 1.2 * float(values.max())
    damp = (max(0.0, -float(values.min())) + 0.05 * scale) / scale
    vector = torch.from_numpy(np.random.default_rng(0).normal(size=len(start)))
    expected = torch.linalg.solve(
        hessian + damp * scale * torch.eye(len(start), dtype=torch.float64), vector
    )
    leaves = tuple(w.clone().requires_grad_() for w in weights)
    gradient = torch.autograd.grad(objective(leaves, Inputs.of(graph)), leaves, create_graph=True)
    settings = GifSettings(scale=scale, damp=damp, iterations=600)
    found = flat(solved(gradient, leaves, shaped(vector, weights), settings))
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-4)


def test_a_scale_for_which_the_series_diverges_is_raised(graph: ge.Graph, weights: Weights) -> None:
    leaves = tuple(w.clone().requires_grad_() for w in weights)
    gradient = torch.autograd.grad(objective(leaves, Inputs.of(graph)), leaves, create_graph=True)
    vector = shaped(torch.ones(len(flat(weights)), dtype=torch.float64), weights)
    small = GifSettings(scale=0.5, damp=0.05)
    found = flat(solved(gradient, leaves, vector, small))
    assert torch.isfinite(found).all()
    raised = [GifSettings(scale=0.5 * 3.0**power, damp=0.05) for power in range(1, 9)]
    others = [flat(solved(gradient, leaves, vector, settings)) for settings in raised]
    assert any(torch.equal(found, other) for other in others)
    assert found.abs().max() < 1e3


@pytest.mark.parametrize("kind", ["nodes", "edges"])
def test_the_step_is_that_of_the_papers_formula(
    graph: ge.Graph, weights: Weights, kind: str
) -> None:
    """Losses of whoever goes and of their neighbourhood before, less those that are left after."""
    request: ge.Nodes | ge.Edges
    if kind == "nodes":
        gone = np.array(graph.ids[[3, 8]])
        request, (near,) = ge.Nodes(gone), around(graph, gone, (3,))
    else:
        pairs = graph.edges[:2]
        gone = np.zeros(0, dtype=np.int64)
        request, (near,) = ge.Edges(pairs), around(graph, np.unique(pairs), (2,))
    rest = graph.without(request)
    leaves = tuple(w.clone().requires_grad_() for w in weights)
    before = dense_losses(graph, leaves)[torch.from_numpy(np.isin(graph.ids, near))].sum()
    left = np.isin(rest.ids, np.setdiff1d(near, gone))
    after = dense_losses(rest, leaves)[torch.from_numpy(left)].sum()
    change = flat(torch.autograd.grad(before, leaves)) - flat(torch.autograd.grad(after, leaves))
    # Without a single round of the series, the step is the vector over the scale.
    settings = GifSettings(scale=50.0, iterations=0)
    found = updated(weights, Inputs.of(graph), Inputs.of(rest), settings)
    torch.testing.assert_close(50 * (flat(found) - flat(weights)), change, atol=1e-4, rtol=1e-3)
    assert change.norm() > 0.01


def test_forgetting_nothing_changes_nothing(graph: ge.Graph, weights: Weights) -> None:
    inputs = Inputs.of(graph)
    found = updated(weights, inputs, inputs, GifSettings(scale=1e3))
    assert all(torch.equal(a, b) for a, b in zip(found, weights, strict=True))
