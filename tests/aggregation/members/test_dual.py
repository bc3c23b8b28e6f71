"""Regressions where labels are few: the ridge's weights, and each node judged without itself."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import grapheraser as ge
from grapheraser.aggregation.members.base import SCALE
from grapheraser.aggregation.members.dual import FittedDual
from grapheraser.aggregation.members.features import FeatureRegression
from grapheraser.aggregation.members.pattern import PatternRegression
from grapheraser.aggregation.members.ridge import FittedRidge, RidgeMember
from grapheraser.aggregation.sample import membership
from grapheraser.graph import CONTEXT, TRAIN
from tests.aggregation.members.oracle import ensemble_of, random_graph, step


def few(graph: ge.Graph, labels: int = 9) -> ge.Graph:
    """The graph with so many training nodes; the others that it had are context nodes."""
    role = graph.role.copy()
    role[np.flatnonzero((role == TRAIN) & (graph.y >= 0))[labels:]] = CONTEXT
    return graph.with_fields(role=np.where((role == TRAIN) & (graph.y < 0), CONTEXT, role))


RULES: dict[str, tuple[RidgeMember, ge.Graph]] = {
    "pattern": (PatternRegression(), few(random_graph(1))),
    "features": (FeatureRegression(), few(random_graph(2, num_features=600))),
    "features, apart": (FeatureRegression(), few(random_graph(3, num_features=200))),
    "features, in blocks": (FeatureRegression(), few(random_graph(4))),
    "features, hub": (FeatureRegression(), few(random_graph(5, n=110, hub=True))),
}
each_rule = pytest.mark.parametrize("name", RULES)


def primal(rule: RidgeMember, graph: ge.Graph, nodes: NDArray[np.int64]) -> NDArray[np.float64]:
    """Ridge regression over the columns."""
    H = rule.rows(graph, graph.places(nodes), 0, learning=True) / SCALE
    Y = np.eye(graph.num_classes)[graph.labels(nodes)]
    left = H.T @ H + rule.ridge * np.eye(H.shape[1])
    return np.asarray(np.linalg.solve(left, H.T @ Y))


@each_rule
def test_the_weights_are_those_of_the_regression_over_the_columns(name: str) -> None:
    rule, graph = RULES[name]
    ensemble = ensemble_of(graph)
    fitted = rule.fit(ensemble, graph.train_nodes)
    assert isinstance(fitted, FittedDual)
    rule = rule.of_few()
    weights = primal(rule, graph, graph.train_nodes)
    assert fitted.weights.shape == (rule.width(graph), graph.num_classes)
    np.testing.assert_allclose(fitted.weights, weights, atol=1e-6)
    rows = rule.rows(graph, graph.places(graph.ids), 0, learning=False) / SCALE
    found = fitted.evidence(ensemble, np.arange(graph.num_nodes))
    np.testing.assert_allclose(found[:, 0], 8.0 * rows @ weights, atol=1e-4)


@each_rule
def test_each_node_is_judged_by_the_regression_without_it_alone(name: str) -> None:
    rule, graph = RULES[name]
    ensemble, nodes = ensemble_of(graph), graph.train_nodes
    sample = nodes[1::2]
    fitted = rule.fit(ensemble, sample)
    found = fitted.held_out(ensemble, sample)
    again = rule.restore(fitted.tensors)
    assert again.held_out(ensemble, sample).tobytes() == found.tobytes()
    rule = rule.of_few()
    for i, node in enumerate(sample):
        weights = primal(rule, graph, nodes[nodes != node])
        row = rule.rows(graph, graph.places([node]), 0, learning=True)[0] / SCALE
        np.testing.assert_allclose(found[i, 0], 8.0 * row @ weights, atol=1e-5)


def test_features_are_not_hashed_where_labels_are_few() -> None:
    graph = random_graph(2, num_features=600)
    rule = FeatureRegression()
    for one, width in ((graph, rule.columns), (few(graph), 600)):
        fitted = rule.fit(ensemble_of(one), one.train_nodes[:5])
        assert fitted.tensors["weights"].shape == (width, graph.num_classes)
        # Asked on another graph, it stays what it was fitted as.
        other = ensemble_of(few(graph) if one is graph else graph)
        assert fitted.evidence(other, np.arange(3)).shape == (3, 1, graph.num_classes)


@each_rule
@settings(max_examples=10)
@given(data=st.data())
def test_after_any_steps_it_is_what_a_fit_gives(name: str, data: st.DataObject) -> None:
    rule, graph = RULES[name]
    ensemble = ensemble_of(graph.with_context(data.draw(st.sampled_from(["unlabelled", "all"]))))
    fitted = rule.fit(ensemble, ensemble.graph.train_nodes)
    for _ in range(data.draw(st.integers(1, 4))):
        if data.draw(st.booleans(), label="restored"):
            fitted = rule.restore(fitted.tensors)
        taken = step(ensemble, data)
        if taken is None:
            return
        ensemble, change = taken
        sample = ensemble.graph.train_nodes
        fitted = rule.refit(fitted, ensemble, change, sample)
        fresh = rule.fit(ensemble, sample)
        assert fitted.tensors["weights"].tobytes() == fresh.tensors["weights"].tobytes()
        judged = fitted.held_out(ensemble, sample)
        assert judged.tobytes() == fresh.held_out(ensemble, sample).tobytes()


@pytest.mark.parametrize("first", [True, False])
def test_a_request_may_cross_the_line_between_few_labels_and_many(
    first: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = few(random_graph(1), labels=12)
    ensemble, rule = ensemble_of(graph), PatternRegression()
    monkeypatch.setattr(membership, "DEFAULT_COUNT", 12 if first else 11)
    fitted = rule.fit(ensemble, graph.train_nodes[:4])
    assert isinstance(fitted, FittedDual) == first
    if first:  # one label more, and they are no longer few
        eraser = ge.GraphEraser("closed-form", members=["pattern"]).fit(graph)
        eraser.insert(10_000, graph.x[[0]], 1, [])
    else:
        eraser = ge.GraphEraser("closed-form", members=["pattern"]).fit(graph)
        eraser.unlearn(ge.Labels(graph.train_nodes[:1]))
    (member,) = eraser.aggregator_.fitted.members.values()  # type: ignore[attr-defined]
    assert isinstance(member, FittedRidge if first else FittedDual)
    assert eraser.verify().differences == ()
