"""MEGU looks where its paper says, smooths towards it, and pushes the forgotten away."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
import torch
import torch.nn.functional as F

import grapheraser as ge
from grapheraser_lab.rivals.gcn import Inputs, Weights, logits, train
from grapheraser_lab.rivals.megu import MutualSettings, evolved, influenced, smoothed_answers


@pytest.fixture(scope="module")
def graph(small: ge.Graph) -> ge.Graph:
    return small.training_graph


@pytest.fixture(scope="module")
def weights(graph: ge.Graph) -> Weights:
    inputs = Inputs.of(graph)
    return train(inputs, graph.num_classes, 0, inputs.ids, epochs=40)


def after(
    weights: Weights, graph: ge.Graph, request: ge.Nodes | ge.Edges, **given: float
) -> Weights:
    settings = MutualSettings(**{"steps": 60, "lr": 0.1, **given})  # type: ignore[arg-type]
    return evolved(weights, graph, request, settings, torch.Generator().manual_seed(3))


def test_answers_about_training_nodes_become_what_was_said_of_them(graph: ge.Graph) -> None:
    """Of nodes whose every neighbour was told the same class, too."""
    answers = np.full((graph.num_nodes, 3), 1 / 3, dtype=np.float32)
    told = np.full(graph.num_nodes, 2)
    told[::4] = -1
    linked = np.diff(graph.indptr) > 0
    found = smoothed_answers(answers, graph, told, MutualSettings())
    np.testing.assert_allclose(found.sum(axis=1)[linked], 1, atol=1e-5)
    assert (found.argmax(axis=1) == 2)[linked].all()


def test_the_influenced_are_neighbours_within_two_hops_and_some_of_them(graph: ge.Graph) -> None:
    network = nx.Graph(graph.edges.tolist())
    node = max(network.nodes, key=network.degree)
    near = set(nx.single_source_shortest_path_length(network, node, cutoff=2)) - {node}
    found = influenced(Inputs.of(graph), graph, np.array([node]))
    assert set(found.tolist()) <= near
    assert len(influenced(Inputs.of(graph), graph, np.zeros(0, dtype=np.int64))) == 0


def test_a_request_for_nobody_in_training_changes_nothing(
    small: ge.Graph, graph: ge.Graph, weights: Weights
) -> None:
    found = after(weights, graph, ge.Nodes(small.test_nodes[:2]))
    assert all(torch.equal(a, b) for a, b in zip(found, weights, strict=True))


@pytest.mark.parametrize("kind", ["nodes", "edges"])
def test_what_was_said_of_the_forgotten_becomes_less_likely(
    graph: ge.Graph, weights: Weights, kind: str
) -> None:
    """A larger weight of the deleted nodes' loss drives what is said of them further away."""
    request = ge.Nodes(graph.ids[:8]) if kind == "nodes" else ge.Edges(graph.edges[:6])
    ends = np.unique(graph.ids[:8] if kind == "nodes" else graph.edges[:6])
    at, inputs = torch.from_numpy(graph.positions(ends)), Inputs.of(graph)
    told = logits(weights, inputs).argmax(dim=1)[at]
    little, much = (
        float(F.cross_entropy(logits(after(weights, graph, request, kappa=k), inputs)[at], told))
        for k in (0.0, 0.1)
    )
    assert much > little
