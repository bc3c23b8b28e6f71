"""A sparse first layer is the same function as PyG's module on dense features."""

from __future__ import annotations

import pytest

pytest.importorskip("torch_geometric")

import torch

from grapheraser.datasets import load_dataset
from grapheraser.models import GNNS, PRESETS
from grapheraser.models.modules import build_module
from grapheraser_lab.bench.sparse import sparse_module, sparse_scratch_seconds


@pytest.mark.parametrize("preset", [*GNNS, *(f"{kind}:paper" for kind in GNNS)])
def test_the_sparse_rival_gives_the_logits_and_gradients_of_pyg(preset: str) -> None:
    graph = load_dataset("demo").training_graph
    graph = graph.subgraph(graph.ids[:300])
    spec = PRESETS[preset]
    torch.manual_seed(0)
    ours, logits = sparse_module(graph, spec)
    theirs = build_module(spec, graph.num_features, graph.num_classes)
    names = dict(ours.named_parameters())
    theirs.load_state_dict(
        {n: names[n].detach() for n, _ in theirs.named_parameters()}, strict=False
    )
    ours.eval(), theirs.eval()
    x, edges = torch.from_numpy(graph.x.toarray()), torch.from_numpy(graph.edge_index)
    mine, other = logits(), theirs(x, edges)
    assert torch.allclose(mine, other, atol=1e-4)
    for out in (mine, other):
        out.square().sum().backward()
    for name, weight in theirs.named_parameters():
        slope, other_slope = names[name].grad, weight.grad
        assert slope is not None
        assert other_slope is not None
        assert torch.allclose(slope, other_slope, rtol=1e-3, atol=1e-3), name


def test_time_is_scaled_to_all_epochs() -> None:
    graph = load_dataset("demo")
    few = graph.subgraph(graph.ids[:400])
    seconds = sparse_scratch_seconds(few, PRESETS["gcn"], epochs=100, measured=2)
    assert len(seconds) == 3
    assert min(seconds) > 0
