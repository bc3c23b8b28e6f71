"""The GCN on sparse features is PyG's, and two trainings from one seed differ in the data alone."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import grapheraser as ge
from grapheraser.graph import UNLABELLED
from grapheraser.graph.arrays import fresh
from grapheraser.graph.roles import CONTEXT
from grapheraser.models.modules import build_module
from grapheraser_lab.rivals.gcn import SPEC, Inputs, logits, objective, train


@pytest.fixture(scope="module")
def inputs(small: ge.Graph) -> Inputs:
    return Inputs.of(small.training_graph)


def test_logits_are_those_of_pygs_layers_with_the_same_weights(
    small: ge.Graph, inputs: Inputs
) -> None:
    weights = train(inputs, small.num_classes, 0, inputs.ids, epochs=5)
    module = build_module(SPEC, small.num_features, small.num_classes).eval()
    names = ("conv1.lin.weight", "conv1.bias", "conv2.lin.weight", "conv2.bias")
    state = {
        name: weight.T if "lin" in name else weight
        for name, weight in zip(names, weights, strict=True)
    }
    module.load_state_dict(state)
    training = small.training_graph
    x, edges = torch.from_numpy(training.x.toarray()), torch.from_numpy(training.edge_index)
    torch.testing.assert_close(logits(weights, inputs), module(x, edges), atol=1e-5, rtol=1e-4)


def test_training_minimises_the_objective_and_depends_on_its_seed_alone(inputs: Inputs) -> None:
    first = train(inputs, 3, 0, inputs.ids, epochs=30)
    torch.manual_seed(5)
    again, other = (train(inputs, 3, seed, inputs.ids, epochs=30) for seed in (0, 1))
    assert all(torch.equal(a, b) for a, b in zip(first, again, strict=True))
    assert not torch.equal(first[0], other[0])
    fresh_weights = train(inputs, 3, 0, inputs.ids, epochs=0)
    assert objective(first, inputs) < objective(fresh_weights, inputs)


def test_who_is_left_sees_the_same_dropout_whoever_was_forgotten(small: ge.Graph) -> None:
    """A node without edges and label adds nothing: with it or without, the weights are the same."""
    graph = small.training_graph
    node = int(graph.ids[4])
    alone = graph.without(ge.Edges([(node, int(n)) for n in graph.neighbours(node)]))
    y, role = alone.y.copy(), alone.role.copy()
    y[4], role[4] = UNLABELLED, CONTEXT
    kept = Inputs.of(alone.with_fields(**fresh(y=y, role=role)))
    gone = Inputs.of(graph.without(ge.Nodes([node])))
    assert len(gone.ids) == len(kept.ids) - 1
    everybody = np.array(graph.ids)
    with_node, without = (train(each, 3, 0, everybody, epochs=20) for each in (kept, gone))
    for a, b in zip(with_node, without, strict=True):
        torch.testing.assert_close(a, b, atol=1e-6, rtol=1e-4)
