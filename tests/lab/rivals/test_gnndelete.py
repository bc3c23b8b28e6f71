"""Deletion operators act where they should, start as nothing, and learn both of their losses."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
import torch
import torch.nn.functional as F

import grapheraser as ge
from grapheraser_lab.rivals.gcn import Inputs, Weights, hidden, logits, train
from grapheraser_lab.rivals.gnndelete import (
    DeleteSettings,
    Operators,
    around,
    deleted_logits,
    edges_of,
    trained,
)


@pytest.fixture(scope="module")
def weights(small: ge.Graph) -> Weights:
    inputs = Inputs.of(small.training_graph)
    return train(inputs, small.num_classes, 0, inputs.ids, epochs=40)


@pytest.fixture(scope="module")
def network(small: ge.Graph) -> nx.Graph:
    found = nx.Graph()
    found.add_nodes_from(small.ids.tolist())
    found.add_edges_from(small.edges.tolist())
    return found


def test_identical_operators_change_nothing(small: ge.Graph, weights: Weights) -> None:
    inputs, everybody = Inputs.of(small), np.array(small.ids)
    nothing = Operators.identity(weights)
    assert nothing.matrices[0].shape == (16, 16)
    assert nothing.matrices[1].shape == (small.num_classes, small.num_classes)
    everywhere = Operators(nothing.matrices, (everybody, everybody))
    for operators in (nothing, everywhere):
        found = deleted_logits(weights, operators, inputs)
        torch.testing.assert_close(found, logits(weights, inputs))


def test_an_operator_acts_on_the_nodes_named_and_reaches_their_neighbours(
    small: ge.Graph, weights: Weights, network: nx.Graph
) -> None:
    inputs, node = Inputs.of(small), int(small.ids[0])
    named = np.array([node])
    first, second = Operators.identity(weights).matrices
    plain = logits(weights, inputs)
    for operators, reached in (
        (Operators((0 * first, second), (named, named[:0])), {node, *network[node]}),
        (Operators((first, 0 * second), (named[:0], named)), {node}),
    ):
        moved = (deleted_logits(weights, operators, inputs) - plain).abs().sum(dim=1) > 1e-7
        assert set(inputs.ids[moved.numpy()].tolist()) == reached


def test_surroundings_are_those_of_a_breadth_first_search(
    small: ge.Graph, network: nx.Graph
) -> None:
    starts = np.array(small.ids[[2, 11]])
    for steps, found in zip((1, 2), around(small, starts, (1, 2)), strict=True):
        reached = set()
        for node in starts.tolist():
            reached |= nx.single_source_shortest_path_length(network, node, cutoff=steps).keys()
        assert found.tolist() == sorted(reached)


def test_training_brings_deleted_ends_to_random_nodes_and_keeps_the_rest(
    small: ge.Graph, weights: Weights
) -> None:
    before = [w.clone() for w in weights]
    deleted = edges_of(small, np.array(small.train_nodes[:2]))
    deleted = deleted[np.isin(deleted, small.train_nodes).all(axis=1)]
    start = Operators.identity(weights)

    def losses(operators: Operators) -> tuple[float, float]:
        """Of the first layer, both parts, with the same draws as in training."""
        training = small.training_graph
        inputs = Inputs.of(training.without(ge.Edges(deleted)))
        rows = operators.apply(0, hidden(weights, inputs), inputs.ids)
        draws = np.random.default_rng(3).integers(len(inputs.ids), size=deleted.shape)
        ends = np.searchsorted(inputs.ids, deleted)
        original = hidden(weights, inputs)
        others = np.isin(inputs.ids, operators.acts_on[0]) & ~np.isin(inputs.ids, deleted)
        random = F.mse_loss(rows[torch.from_numpy(ends)], original[torch.from_numpy(draws)])
        kept = F.mse_loss(rows[torch.from_numpy(others)], original[torch.from_numpy(others)])
        return float(random), float(kept)

    def after(balance: float) -> Operators:
        settings = DeleteSettings(balance=balance, lr=0.01, steps=200)
        return trained(weights, start, small, deleted, settings, np.random.default_rng(3))

    half, all_random, all_kept = after(0.5), after(1.0), after(0.0)
    assert losses(half)[0] < losses(start)[0]
    assert losses(all_random)[0] < losses(half)[0]
    assert losses(half)[1] < losses(all_random)[1]
    # Nothing to delete: what was, is kept as it was.
    assert losses(all_kept)[1] == pytest.approx(0.0, abs=1e-9)
    assert all(torch.equal(a, b) for a, b in zip(before, weights, strict=True))


def test_later_requests_go_on_from_earlier_ones(small: ge.Graph, weights: Weights) -> None:
    settings, start = DeleteSettings(steps=5), Operators.identity(weights)
    rng = np.random.default_rng(0)
    first = trained(weights, start, small, small.edges[:1], settings, rng)
    second = trained(weights, first, small, small.edges[5:6], settings, rng)
    for was, now in zip(first.acts_on, second.acts_on, strict=True):
        assert set(was.tolist()) <= set(now.tolist())
    nobody = trained(weights, second, small, small.edges[:0], settings, rng)
    assert all(torch.equal(a, b) for a, b in zip(nobody.matrices, second.matrices, strict=True))
