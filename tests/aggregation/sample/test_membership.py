"""Who is sampled follows from ids alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import grapheraser as ge
from grapheraser.aggregation import LearnedAggregator, resolve_aggregator
from grapheraser.aggregation.sample.membership import limits, sampled_nodes
from grapheraser.errors import ParameterError
from tests.strategies import small_graph


@given(seed=st.integers(0, 50), share=st.floats(0.05, 1.0), gone=st.integers(0, 29))
def test_deleting_a_node_never_changes_which_others_are_in_a_share(
    seed: int, share: float, gone: int
) -> None:
    graph = small_graph()
    before = sampled_nodes(graph, limits(share), seed)
    node = int(graph.train_nodes[gone])
    after = sampled_nodes(graph.without(ge.Nodes([node])), limits(share), seed)
    assert after.tolist() == [n for n in before.tolist() if n != node]


@given(seed=st.integers(0, 50), count=st.integers(1, 29), gone=st.integers(0, 29))
def test_deleting_a_node_lets_at_most_one_other_into_a_count(
    seed: int, count: int, gone: int
) -> None:
    graph = small_graph()
    before = sampled_nodes(graph, limits(count), seed)
    node = int(graph.train_nodes[gone])
    after = sampled_nodes(graph.without(ge.Nodes([node])), limits(count), seed)
    assert len(before) == len(after) == count
    assert set(before.tolist()) - set(after.tolist()) <= {node}


def test_sizes_are_what_was_asked_for() -> None:
    graph = ge.load_dataset("demo")
    n = len(graph.train_nodes)
    assert len(sampled_nodes(graph, limits("all"), 0)) == n
    assert len(sampled_nodes(graph, limits(1.0), 0)) == n
    assert len(sampled_nodes(graph, limits(n + 5), 0)) == n
    assert 0.05 * n < len(sampled_nodes(graph, limits("auto"), 0)) < 0.15 * n
    others = sampled_nodes(graph, limits(50), 1)
    assert not np.array_equal(sampled_nodes(graph, limits(50), 0), others)
    assert np.isin(others, graph.train_nodes).all()


@given(seed=st.integers(0, 50), count=st.integers(1, 20))
def test_a_share_and_a_count_hold_together(seed: int, count: int) -> None:
    graph = small_graph(n=60)
    share = sampled_nodes(graph, (0.5, None), seed)
    both = sampled_nodes(graph, (0.5, count), seed)
    assert len(both) == min(count, len(share))
    assert np.isin(both, share).all()
    assert np.isin(both, sampled_nodes(graph, (1.0, count), seed)).all()


@pytest.mark.parametrize("sample", [0.0, -0.1, 1.5, 0, -3, True, "some", None])
def test_anything_else_is_refused(sample: Any) -> None:
    with pytest.raises(ParameterError, match=r"'sample' of GraphEraser .* Got"):
        LearnedAggregator(sample=sample)
    if sample is not None:
        with pytest.raises(ParameterError, match="'sample'"):
            resolve_aggregator("mean", num_shards=2, sample=sample)
