"""The attacker's own runs: other training nodes, the same context."""

from __future__ import annotations

import numpy as np

import grapheraser as ge
from grapheraser.audit.attacks.answers import ask, state_of
from grapheraser.audit.attacks.shadow import KEPT, fitted, parameters, resplit, unlearned
from grapheraser.graph import CONTEXT, TEST, TRAIN, VALIDATION
from tests.strategies import small_graph


def test_only_training_and_test_nodes_change_their_roles() -> None:
    graph = small_graph(3, n=60, split="mixed")
    other = resplit(graph, seed=1)
    assert not np.array_equal(other.role, graph.role)
    for role in (CONTEXT, VALIDATION):
        assert np.array_equal(other.role == role, graph.role == role)
    assert np.array_equal(np.isin(other.role, (TRAIN, TEST)), np.isin(graph.role, (TRAIN, TEST)))


def test_a_run_with_context_nodes_is_asked_and_made_anew_like_any_other() -> None:
    graph = small_graph(3, n=60, split="few")
    eraser = ge.GraphEraser(num_shards=2, epochs=2, context="all").fit(graph)
    own = fitted(parameters(eraser), resplit(graph, seed=1), 5)
    assert own.partition_.num_nodes == graph.num_nodes
    gone = graph.train_nodes[:1]
    after = unlearned(eraser, graph, gone, KEPT)
    for state in (state_of(eraser), after):
        found = ask(state, graph, gone)
        assert found.shape == (1, graph.num_classes)
        assert np.isfinite(found).all()
