"""Advice that follows from what was measured on held-out training nodes."""

from __future__ import annotations

import json

import numpy as np
import pytest

import grapheraser as ge
from grapheraser.aggregation import MEMBERS
from grapheraser.aggregation.members import BEST
from grapheraser.errors import PartitionError
from grapheraser.graph import Graph
from grapheraser.models import GNNS
from grapheraser.nodes.recommend import (
    CLOSED_FORM,
    RICHER,
    Recommendation,
    advised_shards,
    held_out_nodes,
    recommend,
)


def two_classes(*, n: int = 400, seed: int = 0) -> Graph:
    """Two classes that show in the words: nothing is left for shards to add."""
    rng = np.random.Generator(np.random.PCG64(seed))
    y = np.arange(n) % 2
    x = np.concatenate([rng.random((n, 8)) < 0.1, y[:, None] == np.arange(2)], axis=1)
    u, v = rng.integers(0, n, (2, 6 * n))
    keep = u != v
    ends = np.stack([u[keep], v[keep]])
    return Graph.from_arrays(x, ends, y, test=np.arange(0, n, 5), num_classes=2)


def checkerboard(*, n: int = 1200, more: int = 0) -> Graph:
    """Two columns whose product says the class, and more columns that say nothing."""
    rng = np.random.Generator(np.random.PCG64(1))
    x = rng.choice([-1.0, 1.0], size=(n, 2))
    y = (x.prod(axis=1) > 0).astype(int)
    x = x + 0.05 * rng.normal(size=x.shape)
    x = np.hstack([x, 0.1 * (rng.random((n, more)) < 0.02)])
    edges = np.zeros((2, 0), int)
    return Graph.from_arrays(x, edges, y, test=np.arange(0, n, 6), num_classes=2)


def fit_as_advised(graph: Graph, advice: Recommendation) -> ge.GraphEraser:
    return ge.GraphEraser(
        model=advice.model,
        partition=advice.partition,
        num_shards=advice.num_shards,
        members=list(advice.members),
        epochs=2,
    ).fit(graph)


def test_where_shards_add_nothing_it_says_so() -> None:
    advice = recommend(two_classes(), epochs=5, num_shards=3)
    assert advice.model == CLOSED_FORM
    assert advice.f1[CLOSED_FORM] > 0.95
    assert "shards add nothing" in advice.reasons[0]
    assert set(advice.f1) == {CLOSED_FORM, RICHER, *GNNS, *(f"{name} shards" for name in GNNS)}
    assert (advice.num_shards, advice.partition, advice.members) == (1, "hash", MEMBERS)
    eraser = fit_as_advised(two_classes(), advice)
    assert eraser.unlearn(ge.Nodes([1])).statement == "exact"


def test_a_model_that_was_asked_for_is_named_even_where_it_adds_nothing() -> None:
    advice = recommend(two_classes(), "sage", epochs=5, num_shards=3)
    assert advice.model == CLOSED_FORM
    assert set(advice.f1) == {CLOSED_FORM, RICHER, "sage", "sage shards"}
    assert "keep 'sage'" in advice.reasons[1]
    assert "3 of them: as asked for" in advice.reasons[1]


def test_where_shards_add_something_they_are_advised() -> None:
    graph = checkerboard(more=200)
    advice = recommend(graph, "mlp", epochs=100, num_shards=2)
    assert advice.f1["mlp"] > advice.f1[CLOSED_FORM] + advice.margin
    assert (advice.model, advice.partition, advice.num_shards) == ("mlp", "hash", 2)
    assert advice.members == MEMBERS
    assert len(advice.reasons) == 3
    gain = advice.f1["mlp"] - advice.f1[CLOSED_FORM]
    assert f"{gain:.3f}" in advice.reasons[0]
    assert "chance" not in advice.reasons[0]
    assert fit_as_advised(graph, advice).unlearn(ge.Nodes([1])).statement == "exact"


def test_richer_members_are_advised_where_they_add_more_than_chance_could() -> None:
    """Of few columns a random layer bends as well as a model does."""
    graph = checkerboard()
    advice = recommend(graph, "closed-form")
    assert advice.f1[RICHER] > advice.f1[CLOSED_FORM] + advice.margin
    assert (advice.model, advice.members) == (CLOSED_FORM, BEST)
    assert "surprises" in advice.reasons[-1]
    assert fit_as_advised(graph, advice).unlearn(ge.Nodes([1])).statement == "exact"


def test_figures_are_those_of_fits_on_what_was_not_held_out() -> None:
    """The closed-form members, fitted by the eraser itself without the held-out labels."""
    graph = two_classes(seed=3)
    training = graph.training_graph
    held_out = held_out_nodes(training, 4)
    rest = Graph.from_arrays(
        training.x,
        training.edges.T,
        training.y,
        ids=training.ids,
        test=training.ids[held_out],
        num_classes=2,
        each_edge_once=True,
    )
    eraser = ge.GraphEraser(model=CLOSED_FORM, seed=4).fit(rest)
    advice = recommend(graph, "gcn", epochs=1, num_shards=2, seed=4)
    assert advice.f1[CLOSED_FORM] == eraser.score(training.ids[held_out])


@pytest.mark.parametrize(
    "model",
    [
        "closed-form",
        "sgc",
    ],
)
def test_a_closed_form_model_can_be_asked_about_too(model: str) -> None:
    advice = recommend(two_classes(), model, epochs=2)
    assert advice.model == CLOSED_FORM
    assert CLOSED_FORM in advice.f1
    assert advice.num_shards == 1


def test_advice_is_deterministic_and_ready_for_json() -> None:
    graph = two_classes()
    first = recommend(graph, "sage", num_shards=7, epochs=5, seed=2)
    assert first == recommend(graph, "sage", num_shards=7, epochs=5, seed=2)
    report = json.loads(json.dumps(first.report()))
    assert report["members"] == list(MEMBERS)
    assert report["reasons"] == list(first.reasons)
    assert report["f1"] == first.f1


def test_test_nodes_have_no_part_in_it() -> None:
    graph = two_classes()
    alone = graph.training_graph
    assert recommend(graph, "gcn", epochs=3) == recommend(alone, "gcn", epochs=3)


def test_a_graph_too_small_to_hold_nodes_out_is_refused() -> None:
    graph = Graph.from_arrays(np.ones((4, 1)), np.zeros((2, 0), int), np.zeros(4, int))
    with pytest.raises(PartitionError, match="found 4"):
        recommend(graph)


def test_a_fifth_is_held_out_by_the_seed() -> None:
    training = two_classes().training_graph
    first = held_out_nodes(training, 0)
    assert len(first) == training.num_nodes // 5
    assert np.array_equal(first, held_out_nodes(training, 0))
    assert not np.array_equal(first, held_out_nodes(training, 1))


@pytest.mark.parametrize(
    ("nodes", "classes", "shards"), [(99, 2, 1), (1000, 2, 10), (1000, 40, 1), (20_000, 2, 100)]
)
def test_shards_keep_enough_nodes_of_each_class(nodes: int, classes: int, shards: int) -> None:
    graph = Graph.from_arrays(
        np.ones((nodes, 1)), np.zeros((2, 0), int), np.arange(nodes) % classes, num_classes=classes
    )
    found, why = advised_shards(graph, None)
    assert found == shards
    assert f"of {nodes} nodes" in why
    assert advised_shards(graph, 7) == (7, "as asked for")
