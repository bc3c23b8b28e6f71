"""The pool: what it keeps, what it says, and what it refuses."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.special import softmax

import grapheraser as ge
from grapheraser.aggregation import (
    MEMBERS,
    Change,
    MeanAggregator,
    PooledAggregator,
    RoutedAggregator,
    named,
    resolve_aggregator,
)
from grapheraser.aggregation.log_linear import pool_weights
from grapheraser.aggregation.members import BEST, START
from grapheraser.aggregation.members.counting import NAMES as COUNTING
from grapheraser.aggregation.members.surprises import NAMES
from grapheraser.aggregation.pooled import EMPTY_SAMPLE, FittedPool
from grapheraser.aggregation.sample.membership import sampled_nodes
from grapheraser.errors import GraphEraserError, ParameterError
from grapheraser.graph.contents import Contents
from tests.aggregation.members.oracle import GRAPHS, ensemble_of
from tests.strategies import small_graph

SUBSETS = [("words",), ("labels", "features"), ("edges", "pattern"), BEST, MEMBERS]


def fitted(graph: ge.Graph, **options: Any) -> ge.GraphEraser:
    arguments = {"num_shards": 3, "epochs": 2, "sample": "all", **options}
    return ge.GraphEraser(**arguments).fit(graph)


def pool_of(eraser: ge.GraphEraser) -> FittedPool:
    pool = eraser.aggregator_.fitted
    assert isinstance(pool, FittedPool)
    return pool


def test_routed_shards_are_pooled_with_all_members_by_default(small: ge.Graph) -> None:
    eraser = ge.GraphEraser(num_shards=3, epochs=1).fit(small)
    assert tuple(pool_of(eraser).weights) == (*MEMBERS, "shards")
    receipt = eraser.unlearn(ge.Nodes(small.train_nodes[:1]))
    assert receipt.aggregation["name"] == "routed"
    assert receipt.aggregation["members"] == list(MEMBERS)
    assert "weights" in receipt.details.relearned


@pytest.mark.parametrize("shards", [True, False])
@pytest.mark.parametrize("members", SUBSETS, ids=",".join)
def test_the_posterior_is_the_softmax_of_weighted_evidence(
    small: ge.Graph, members: tuple[str, ...], shards: bool
) -> None:
    options: dict[str, Any] = {} if shards else {"model": "closed-form"}
    eraser = fitted(small, members=members, **options)
    pool, ensemble = pool_of(eraser), eraser.aggregator_.ensemble
    names = [name for part in members for name in (NAMES if part == NAMES[0] else (part,))]
    assert list(pool.weights) == [*names, *(["shards"] if shards else [])]
    every = np.arange(small.num_nodes)
    parts = [member.evidence(ensemble, every) for member in pool.members.values()]
    scores = np.einsum("i,vic->vc", pool.learned.members, np.concatenate(parts, axis=1))
    expected = softmax(scores + pool.learned.offsets, axis=1)
    found = eraser.predict_proba(small.ids)
    np.testing.assert_allclose(found, expected, atol=1e-6)
    held_out = [member.held_out(ensemble, pool.sample) for member in pool.members.values()]
    labels = small.y[small.positions(pool.sample)]
    start = np.array([START.get(name, 0.3) for name in pool.weights])
    learned = pool_weights(np.concatenate(held_out, axis=1), labels, start)
    for mine, its in zip(pool.learned, learned, strict=True):
        assert mine.tobytes() == its.tobytes()


@pytest.mark.parametrize("members", SUBSETS, ids=",".join)
def test_members_left_out_leave_nothing_behind(
    small: ge.Graph, members: tuple[str, ...], tmp_path: Path
) -> None:
    eraser = fitted(small, members=list(members))
    kept = {name.split("/")[0] for name in eraser.aggregator_.tensors}
    counting = any(name in members for name in COUNTING)
    expected = {name for name in members if name not in COUNTING}
    expected |= {"counts"} if counting else set()
    assert kept == expected | {"shards", "nodes", "weights", "offsets"}
    words = "counts/words" in eraser.aggregator_.tensors
    assert words == ("words" in members)
    eraser.save(tmp_path / "run")
    back = ge.GraphEraser.load(tmp_path / "run")
    for one in (eraser, back):
        one.unlearn([ge.Nodes(small.train_nodes[:1]), ge.Features(small.train_nodes[3:4])])
        assert one.verify().identical
    assert (
        back.predict_proba(back.graph_.ids).tobytes()
        == eraser.predict_proba(back.graph_.ids).tobytes()
    )


@pytest.mark.parametrize("model", ["gcn", "closed-form", "sgc"])
@pytest.mark.parametrize("kind", ["sparse", "dense", "hub"])
def test_tensors_come_back(kind: str, model: str, tmp_path: Path) -> None:
    graph = GRAPHS[kind]
    graph = graph.without(ge.Nodes(graph.ids[graph.y < 0]))
    eraser = fitted(graph, model=model)
    rule = eraser._snapshot.settings.aggregator
    restored = rule.restore(eraser.aggregator_.tensors)
    assert restored.tensors.keys() == eraser.aggregator_.tensors.keys()
    for name, tensor in eraser.aggregator_.tensors.items():
        assert restored.tensors[name].dtype == tensor.dtype
        assert restored.tensors[name].tobytes() == tensor.tobytes()
    eraser.save(tmp_path / "run")
    loaded = ge.GraphEraser.load(tmp_path / "run")
    assert loaded.predict_proba(graph.ids).tobytes() == eraser.predict_proba(graph.ids).tobytes()
    for node in graph.train_nodes[:2].tolist():
        receipts = [one.unlearn(ge.Nodes([node])) for one in (eraser, loaded)]
        assert receipts[0].details.relearned == receipts[1].details.relearned
        assert loaded.verify().differences == ()
    rest = eraser.graph_.ids
    assert loaded.predict_proba(rest).tobytes() == eraser.predict_proba(rest).tobytes()


@pytest.mark.parametrize("model", ["gcn", "closed-form", "sgc"])
def test_explanations_share_out_the_whole_decision(small: ge.Graph, model: str) -> None:
    eraser = fitted(small, model=model)
    weights = pool_of(eraser).weights
    heard = {name for name, weight in weights.items() if weight > 0}
    for node in small.ids[::4].tolist():
        found = eraser.explain(node)
        assert found.label == eraser.predict([node])[0]
        assert sum(say.weight for say in found.members) == pytest.approx(1)
        names = {say.member for say in found.members}
        expected = heard - {"shards"}
        assert names - {name for name in names if name.startswith("shard ")} == expected
        assert any(name.startswith("shard ") for name in names) == ("shards" in heard)
        assert all(0 < say.confidence <= 1 for say in found.members)
        assert "30 training nodes" in found.why


@pytest.mark.parametrize("model", ["gcn", "closed-form"])
def test_an_emptied_sample_falls_back_to_the_start_and_says_so(model: str) -> None:
    graph = small_graph(2)
    eraser = fitted(graph, model=model, sample=0.2)
    sampled = eraser.aggregator_.tensors["nodes"]
    assert len(sampled)
    assert not eraser.aggregator_.notes
    receipt = eraser.unlearn(ge.Nodes(sampled.tolist()))
    assert eraser.aggregator_.notes == (EMPTY_SAMPLE,)
    assert EMPTY_SAMPLE in str(receipt.to_dict())
    assert pool_of(eraser).weights == {name: START[name] for name in pool_of(eraser).weights}
    assert not eraser.aggregator_.tensors["offsets"].any()
    assert eraser.verify().differences == ()
    assert np.isfinite(eraser.predict_proba(eraser.graph_.ids)).all()


def test_by_default_a_quarter_is_sampled_and_at_most_a_thousand(demo: ge.Graph) -> None:
    eraser = ge.GraphEraser(model="closed-form").fit(demo)
    found = eraser.aggregator_.tensors["nodes"]
    assert found.tolist() == sampled_nodes(demo, (0.25, 1000), 0).tolist()
    assert 0.2 * len(demo.train_nodes) < len(found) < 0.3 * len(demo.train_nodes)
    few = ge.GraphEraser(model="closed-form", sample=17).fit(demo)
    assert len(few.aggregator_.tensors["nodes"]) == 17


def test_one_class_is_enough() -> None:
    graph = GRAPHS["one class"]
    graph = graph.without(ge.Nodes(graph.ids[graph.y < 0]))
    eraser = fitted(graph, model="closed-form")
    eraser.unlearn(ge.Nodes(graph.train_nodes[:2]))
    assert (eraser.predict_proba(eraser.graph_.ids) == 1.0).all()
    assert eraser.verify().identical


def test_the_last_of_a_class_may_go(small: ge.Graph) -> None:
    for model in ("gcn", "closed-form"):
        eraser = fitted(small, model=model)
        last = small.train_nodes[small.y[small.positions(small.train_nodes)] == 2]
        eraser.unlearn(ge.Nodes(last))
        assert eraser.verify().identical
        assert np.isfinite(eraser.predict_proba(eraser.graph_.ids)).all()


# -- who joins ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "members"),
    [
        ({"num_shards": 2}, MEMBERS),
        ({"num_shards": 1}, None),
        ({"num_shards": 1, "global_expert": True}, MEMBERS),
        ({"num_shards": 1, "members": ["words"]}, ("words",)),
        ({"num_shards": 2, "global_expert": False}, None),
        ({"num_shards": 2, "members": []}, None),
        ({"num_shards": 2, "members": ("features", "words")}, ("words", "features")),
        ({"num_shards": 2, "aggregation": "mean"}, None),
        ({"num_shards": 2, "aggregation": "majority"}, None),
        ({"num_shards": 2, "aggregation": "learned"}, None),
        ({"num_shards": 2, "aggregation": RoutedAggregator()}, None),
    ],
    ids=repr,
)
def test_members_join_where_several_shards_are_routed_or_where_they_are_asked_for(
    arguments: dict[str, Any], members: tuple[str, ...] | None
) -> None:
    found = resolve_aggregator(**{"aggregation": "routed", **arguments})
    if members is None:
        assert not isinstance(found, PooledAggregator)
    else:
        assert found == PooledAggregator(members)


def test_members_are_named_in_their_order() -> None:
    assert named(None) == MEMBERS == ("words", "labels", "edges", "pattern", "features")
    assert named(["features", "edges", "edges"]) == ("edges", "features")
    assert named([]) == ()


BAD: list[Any] = [
    ({"members": ["phrases"]}, "'members' of GraphEraser must be a sequence of names among words"),
    ({"members": ["shards"]}, "'members' of GraphEraser must be"),
    ({"members": "words"}, "'members' of GraphEraser must be"),
    ({"members": 3}, "'members' of GraphEraser must be"),
    ({"members": ["words"], "global_expert": False}, "need 'global_expert', which is False"),
    ({"members": ["words"], "aggregation": MeanAggregator()}, "an Aggregator is taken as it is"),
    ({"global_expert": True, "aggregation": MeanAggregator()}, "an Aggregator is taken as it is"),
    ({"global_expert": True, "aggregation": "mean"}, "'aggregation' of GraphEraser is 'mean'"),
    ({"members": ["words"], "aggregation": "learned"}, "GraphEraser is 'learned'"),
    ({"aggregation": MeanAggregator}, "'aggregation' of GraphEraser must be a name or an Aggr"),
    ({"aggregation": 3}, "'aggregation' of GraphEraser must be a name or an Aggregator"),
    ({"aggregation": "routed-learned"}, "routed-learned"),
    ({"global_expert": "wide"}, "'global_expert' of GraphEraser must be None, True or False"),
    ({"global_expert": 1}, "'global_expert' of GraphEraser must be"),
    ({"global_expert": 0}, "'global_expert' of GraphEraser must be"),
    ({"model": "closed-form", "global_expert": False}, "'global_expert' of GraphEraser must be"),
    ({"model": "sgc", "global_expert": False}, "'global_expert' of GraphEraser must be"),
    ({"model": "closed-form", "members": []}, "'members' of GraphEraser must be at least one"),
    ({"model": "closed-form", "members": ["phrases"]}, "'members' of GraphEraser must be"),
    ({"sample": 0.0}, "'sample' of GraphEraser"),
    ({"model": "closed-form", "sample": "some"}, "'sample' of GraphEraser"),
    pytest.param(
        {"model": "closed-form", "global_expert": "wide"},
        "'global_expert' of GraphEraser must be",
    ),
]


@pytest.mark.parametrize(("bad", "message"), BAD, ids=lambda value: str(value)[:60])
def test_what_makes_no_sense_is_refused(small: ge.Graph, bad: dict[str, Any], message: str) -> None:
    with pytest.raises(GraphEraserError, match=message):
        ge.GraphEraser(**bad).fit(small)


def test_a_bad_sample_is_refused_by_the_pool_itself() -> None:
    with pytest.raises(ParameterError, match="'sample' of GraphEraser"):
        PooledAggregator(MEMBERS, sample=-1)


def test_nodes_may_be_asked_about_twice_and_in_any_order(small: ge.Graph) -> None:
    for model in ("gcn", "closed-form"):
        eraser = fitted(small, model=model)
        everything = eraser.predict_proba(small.ids)
        rows = [7, 3, 7, 30, 0]
        found = eraser.predict_proba(small.ids[rows])
        assert found.tobytes() == everything[rows].tobytes()


def test_a_member_that_misleads_is_not_listened_to() -> None:
    """On a ring of unlike neighbours, labels say the opposite of what is true."""
    ring = np.stack([np.arange(60), (np.arange(60) + 1) % 60])
    y = np.arange(60) % 2
    graph = ge.Graph.from_arrays(np.ones((60, 1)), ring, y, test=np.arange(0, 60, 7))
    alone = fitted(graph, model="closed-form", members=["labels"])
    assert pool_of(alone).weights == {"labels": 0.0}
    explained = alone.explain(5)
    assert explained.members == ()
    assert explained.label == alone.predict([5])[0]
    both = fitted(graph, model="closed-form", members=["labels", "edges"])
    assert pool_of(both).weights["edges"] > 0
    assert both.score(graph.test_nodes) == 1.0


# -- what a request costs ------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["sparse", "dense", "dense, in pages", "hub", "far ids"])
def test_relearning_and_asking_read_pages_and_no_array_of_all_nodes(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rule = PooledAggregator(MEMBERS, shards=False, sample=6)
    graph = GRAPHS[kind]
    ensemble = ensemble_of(graph)
    fitted = rule.fit(ensemble)
    steps = []
    for node in (*fitted.sample[:2].tolist(), *graph.test_nodes[:2].tolist()):
        touched, before = graph.neighbours(node), ensemble
        graph = graph.without(ge.Nodes([node]))
        ensemble = replace(before, graph=graph)
        steps.append((ensemble, Change(before, frozenset(), touched, np.array([node]))))

    def refuse(contents: Contents) -> None:
        raise AssertionError("an array of all nodes was put together")

    with monkeypatch.context() as patch:
        for name in ("ids", "indptr", "indices", "x", "y", "role", "edge_values", "names"):
            patch.setattr(Contents, name, property(refuse))
        for now, change in steps:
            fitted = rule.refit(fitted, now, change)
            fitted.predict_proba(now, np.arange(3))
    afresh = rule.fit(ensemble)
    for name, tensor in afresh.tensors.items():
        assert fitted.tensors[name].tobytes() == tensor.tobytes()
