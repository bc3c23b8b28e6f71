"""Which nodes are in shards, by their role and the graph's context."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grapheraser.errors import ParameterError
from grapheraser.graph import CONTEXT, TEST, TRAIN, VALIDATION
from grapheraser.graph.roles import SHARDED_ROLES
from tests.strategies import requests_for, small_graph, small_graphs


def test_the_context_says_which_roles_are_in_shards() -> None:
    graph = small_graph(split="mixed")
    expected = {
        "none": [TRAIN],
        "unlabelled": [CONTEXT, TRAIN],
        "all": [CONTEXT, TRAIN, TEST, VALIDATION],
    }
    assert graph.context == "unlabelled"
    for context, roles in expected.items():
        seen = graph.with_context(context)
        assert np.unique(seen.roles(seen.sharded_nodes)).tolist() == roles
        assert seen.num_sharded == int(np.isin(graph.role, roles).sum())
        assert seen == graph  # the data is the same
        assert np.array_equal(seen.training_graph.ids, seen.sharded_nodes)
    with pytest.raises(ParameterError, match="'context' of Graph"):
        graph.with_context("some")


def test_shards_see_no_label_but_those_of_training_nodes() -> None:
    graph = small_graph(split="mixed").with_context("all")
    training = graph.training_graph
    known = training.y >= 0
    assert np.array_equal(training.ids[known], graph.train_nodes)
    assert np.array_equal(training.y[known], graph.labels(graph.train_nodes))
    assert (graph.y >= 0).sum() > known.sum()


@given(st.data())
def test_counts_follow_a_graph_through_changes(data: st.DataObject) -> None:
    context = data.draw(st.sampled_from(list(SHARDED_ROLES)))
    graph = data.draw(small_graphs()).with_context(context)
    assert graph.num_train >= 0
    assert graph.num_sharded >= 0
    for step in range(3):
        if graph.num_nodes < 5:
            return
        if data.draw(st.booleans(), label="add"):
            graph = graph.with_node(1000 + step, np.ones(graph.num_features), 0, [])
        else:
            graph = graph.without(data.draw(requests_for(graph)))
        assert {"num_train", "num_sharded"} <= graph.__dict__.keys()
        assert graph.num_train == int((graph.role == TRAIN).sum())
        assert graph.num_sharded == int(np.isin(graph.role, SHARDED_ROLES[context]).sum())
        assert graph.context == context


def test_a_graph_names_its_roles() -> None:
    assert "validation=6, context=8)" in repr(small_graph(split="mixed"))
    assert "context" not in repr(small_graph())
