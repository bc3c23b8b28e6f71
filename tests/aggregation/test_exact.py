"""Whatever is asked for, in whatever order: relearned equals learned afresh, bit for bit."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import grapheraser as ge
from grapheraser.aggregation import (
    MEMBERS,
    Aggregator,
    LearnedAggregator,
    PooledAggregator,
    RoutedAggregator,
    Sample,
)
from grapheraser.aggregation.pooled import FittedPool
from tests.strategies import TwoHops, requests_for, small_graph, small_graphs

AGGREGATORS: dict[str, Aggregator] = {
    "learned, all": LearnedAggregator(sample="all"),
    "learned, share": LearnedAggregator(sample=0.4),
    "learned, count, paper": LearnedAggregator(sample=7, solver="paper"),
    "routed": RoutedAggregator(),
    "routed, two asked": RoutedAggregator(shards_asked=2),
    "pool": PooledAggregator(MEMBERS),
    "pool, two asked": PooledAggregator(MEMBERS, sample="all", shards_asked=2),
    "pool of shards alone, one asked": PooledAggregator((), sample=0.6, shards_asked=1),
    "pool, share": PooledAggregator(MEMBERS, sample=0.5),
    "pool, count": PooledAggregator(MEMBERS, sample=9),
    "pool of shards alone": PooledAggregator((), sample="all"),
    "pool of counts": PooledAggregator(("words", "labels", "edges"), sample="all"),
    "pool of regressions": PooledAggregator(("pattern", "features"), sample=0.5),
    "members without shards": PooledAggregator(MEMBERS, shards=False, sample=0.5),
}


@pytest.mark.parametrize("name", AGGREGATORS)
@settings(max_examples=12)
@given(data=st.data())
def test_after_any_requests_the_state_is_that_of_a_fresh_fit(
    name: str, data: st.DataObject
) -> None:
    graph = data.draw(small_graphs(min_nodes=15))
    eraser = ge.GraphEraser(
        model=data.draw(st.sampled_from(["gcn", "sage", "gat", "gin", "mlp"])),
        partition="hash",
        num_shards=data.draw(st.integers(1, 5)),
        aggregation=AGGREGATORS[name],
        epochs=2,
        seed=data.draw(st.integers(0, 3)),
    ).fit(graph)
    for _ in range(data.draw(st.integers(1, 3))):
        request = data.draw(requests_for(eraser.graph_))
        gone = request.ids if isinstance(request, ge.Nodes) else ()
        if np.isin(eraser.graph_.train_nodes, gone).all():
            continue
        eraser.unlearn(request)
    assert eraser.verify().differences == ()


@pytest.mark.parametrize("model", ["gcn", "mlp"])
@settings(max_examples=15)
@given(data=st.data())
def test_what_a_pool_keeps_between_requests_is_what_a_fresh_fit_judges_by(
    model: str, data: st.DataObject
) -> None:
    """Also what is no part of its tensors, because it follows from the graph."""
    samples: list[Sample] = ["all", 0.5, 8]
    sample = data.draw(st.sampled_from(samples))
    rule = PooledAggregator(MEMBERS, sample=sample)
    eraser = ge.GraphEraser(model=model, num_shards=3, aggregation=rule, epochs=1)
    eraser.fit(data.draw(small_graphs(min_nodes=15)))
    for _ in range(2):
        request = data.draw(requests_for(eraser.graph_))
        gone = request.ids if isinstance(request, ge.Nodes) else ()
        if np.isin(eraser.graph_.train_nodes, gone).all():
            return
        eraser.unlearn(request)
        bound = eraser.aggregator_
        kept, fresh = bound.fitted, rule.fit(bound.ensemble)
        assert isinstance(kept, FittedPool)
        for name, member in kept.members.items():
            held_out = member.held_out(bound.ensemble, kept.sample)
            again = fresh.members[name].held_out(bound.ensemble, fresh.sample)
            assert held_out.tobytes() == again.tobytes()


@pytest.mark.parametrize("name", AGGREGATORS)
def test_insertions_and_restoring_keep_the_bits(name: str) -> None:
    graph = small_graph(3)
    eraser = ge.GraphEraser(
        model="sage", partition="random", num_shards=4, aggregation=AGGREGATORS[name], epochs=2
    ).fit(graph)
    new = int(graph.ids.max()) + 5
    features = np.zeros(graph.num_features)
    features[2] = 3.0
    eraser.insert(new, features, 1, graph.ids[:3])
    eraser.insert(new + 1, features, 0, [])
    eraser.unlearn([ge.Nodes([int(graph.train_nodes[0])]), ge.Features([new])])
    assert eraser.verify().differences == ()
    restored = AGGREGATORS[name].restore(eraser.aggregator_.tensors)
    for key, tensor in eraser.aggregator_.tensors.items():
        assert restored.tensors[key].tobytes() == tensor.tobytes()


def test_a_shard_that_is_emptied_leaves_the_ensemble() -> None:
    graph = small_graph(1)
    for aggregator in AGGREGATORS.values():
        eraser = ge.GraphEraser(
            partition="random", num_shards=5, aggregation=aggregator, epochs=2
        ).fit(graph)
        eraser.unlearn(ge.Nodes(eraser.partition_.members(2).tolist()))
        assert 2 not in eraser.shards_
        assert eraser.verify().differences == ()
        assert np.isfinite(eraser.predict_proba(eraser.graph_.ids)).all()


@pytest.mark.gnn
@pytest.mark.parametrize(
    "rule", [LearnedAggregator(sample="all"), PooledAggregator(MEMBERS, sample="all")], ids=repr
)
def test_a_model_of_unknown_reach_is_relearned_from_scratch(rule: Aggregator) -> None:
    eraser = ge.GraphEraser(model=TwoHops, num_shards=3, aggregation=rule, epochs=2)
    eraser.fit(small_graph())
    eraser.unlearn(ge.Nodes([int(eraser.graph_.train_nodes[4])]))
    assert eraser.verify().differences == ()


def test_an_emptied_sample_falls_back_to_equal_weights_and_says_so() -> None:
    """Of a pool, `test_pooled` says the same."""
    eraser = ge.GraphEraser(num_shards=3, aggregation=LearnedAggregator(sample=0.2), epochs=2).fit(
        small_graph(2)
    )
    sampled = eraser.aggregator_.tensors["nodes"]
    assert len(sampled)
    assert not eraser.aggregator_.notes
    eraser.unlearn(ge.Nodes(sampled.tolist()))
    assert eraser.aggregator_.tensors["importance"].tolist() == [1 / 3] * 3
    assert "sample holds no nodes" in " ".join(eraser.aggregator_.notes)
    assert eraser.verify().differences == ()


@pytest.mark.parametrize("name", AGGREGATORS)
def test_a_prediction_has_the_same_bits_whatever_else_is_asked_for(name: str) -> None:
    graph = small_graph(5)
    eraser = ge.GraphEraser(num_shards=4, aggregation=AGGREGATORS[name], epochs=2).fit(graph)
    everything = eraser.predict_proba(graph.ids)
    np.testing.assert_allclose(everything.sum(axis=1), 1.0, atol=1e-5)
    for row, node in enumerate(graph.ids):
        assert eraser.predict_proba([node]).tobytes() == everything[[row]].tobytes()
