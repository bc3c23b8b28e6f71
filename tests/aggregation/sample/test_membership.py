"""Who is sampled follows from ids alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import grapheraser as ge
from grapheraser.aggregation import LearnedAggregator, resolve_aggregator
from grapheraser.aggregation.sample import membership
from grapheraser.aggregation.sample.membership import (
    Candidates,
    few_labels,
    limit_on,
    limits,
    sampled_nodes,
)
from grapheraser.errors import ParameterError
from grapheraser.seeding import derive, keyed_hash
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


@given(st.data())
def test_a_sample_that_is_carried_along_is_the_one_drawn_afresh(data: st.DataObject) -> None:
    """Until the candidates run out, and beyond."""
    graph = small_graph(data.draw(st.integers(0, 9)), n=60)
    limit = data.draw(st.sampled_from([(1.0, 4), (0.5, 6), (0.3, None), (1.0, None), (1.0, 44)]))
    found = Candidates.of(graph, limit, 1)
    for step in range(8):
        nodes = data.draw(st.lists(st.sampled_from(graph.ids.tolist()), min_size=1, max_size=6))
        gone = np.unique(nodes)
        touched = np.setdiff1d(graph.around(gone), gone)
        graph = graph.without(ge.Nodes(gone))
        if data.draw(st.booleans()):
            node = 10**12 + step
            graph = graph.with_node(node, np.ones(graph.num_features), 1, [])
            touched = np.append(touched, node)
        if not len(graph.train_nodes):
            return
        found = found.changed(graph, np.union1d(touched, gone), 1)
        assert found.sampled.tolist() == sampled_nodes(graph, limit, 1).tolist()
        assert not np.isin(gone, found.nodes).any()


def test_the_sample_is_that_of_the_smallest_hashes() -> None:
    graph = small_graph(n=60)
    nodes = graph.train_nodes
    hashes = keyed_hash(nodes, derive(5, "sample"))
    expected = sorted(nodes[np.argsort(hashes)][:7].tolist())
    assert sampled_nodes(graph, (1.0, 7), 5).tolist() == expected
    below = hashes < np.uint64(2**63)
    assert sampled_nodes(graph, (0.5, None), 5).tolist() == nodes[below].tolist()


@pytest.mark.parametrize(
    ("split", "context", "few"),
    [
        ("labelled", "all", False),
        ("few", "none", False),
        ("few", "unlabelled", True),
        ("few", "all", True),
        ("mixed", "unlabelled", False),
    ],
)
def test_few_labels_are_all_sampled(split: str, context: str, few: bool) -> None:
    graph = small_graph(2, n=100, split=split).with_context(context)
    assert few_labels(graph) == few
    usual = (0.25, 1000)
    assert limit_on(graph, "auto", usual) == ((1.0, 1000) if few else usual)
    assert limit_on(graph, 0.5, usual) == (0.5, None)
    learned = ge.GraphEraser(num_shards=2, epochs=1, aggregation="learned", context=context)
    pooled = ge.GraphEraser("closed-form", context=context)
    for eraser in (learned, pooled):
        sampled = eraser.fit(graph).aggregator_.tensors["nodes"]
        assert (len(sampled) == graph.num_train) == few


def test_more_labels_than_the_sample_may_hold_are_not_few(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = small_graph(2, n=100, split="few")
    monkeypatch.setattr(membership, "DEFAULT_COUNT", graph.num_train - 1)
    assert not few_labels(graph)
