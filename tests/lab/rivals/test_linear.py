"""Linear rivals against what their papers promise, by dense algebra."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

import grapheraser as ge
from grapheraser_lab.rivals.gcn import View
from grapheraser_lab.rivals.linear import (
    Certified,
    GraphEditor,
    Linear,
    LinearSettings,
    Projector,
    ScaleGun,
    smoothed,
)

KINDS = (GraphEditor, Projector, Certified, ScaleGun)


def dense(graph: ge.Graph, *, walk: bool) -> NDArray[np.float64]:
    """Features after two hops, written apart from the code under test."""
    rows = {int(node): at for at, node in enumerate(graph.ids)}
    adjacency = np.eye(graph.num_nodes)
    for u, v in graph.edges.tolist():
        adjacency[rows[u], rows[v]] = adjacency[rows[v], rows[u]] = 1
    degree, x = adjacency.sum(axis=1), graph.x.toarray().astype(np.float64)
    if walk:
        x /= np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-6)
        step = adjacency / degree[:, None]
        return np.asarray(step @ step @ x)
    step = adjacency / np.sqrt(degree[:, None] * degree[None, :])
    return np.hstack([step @ step @ x, np.ones((len(x), 1))])


@pytest.mark.parametrize("walk", [False, True])
def test_features_are_smoothed_over_two_hops(middling: ge.Graph, walk: bool) -> None:
    found = smoothed(middling, walk=walk).toarray()
    np.testing.assert_allclose(found, dense(middling, walk=walk), atol=1e-12)


@pytest.mark.parametrize("what", ["nodes", "edges"])
def test_graph_editor_is_the_ridge_regression_on_the_rest(middling: ge.Graph, what: str) -> None:
    gone = middling.train_nodes[:1]
    request = ge.Nodes(gone) if what == "nodes" else ge.Edges(middling.training_graph.edges[:1])
    before = GraphEditor.fit(middling, 0, LinearSettings(penalty=0.5))
    after = before.forget(request)
    rest = middling.without(request).training_graph
    x, y = dense(rest, walk=False), np.eye(middling.num_classes)[rest.y]
    expected = np.linalg.solve(x.T @ x + 0.5 * np.eye(x.shape[1]), x.T @ y)
    np.testing.assert_allclose(after.weights, expected, atol=1e-9)
    assert not np.array_equal(after.weights, before.weights)


def test_projector_keeps_what_the_rest_spans_and_nothing_else(middling: ge.Graph) -> None:
    before = Projector.fit(middling, 0)
    request = ge.Nodes(middling.train_nodes[:60])
    after = before.forget(request)
    rows = middling.without(request).training_graph.x.toarray()
    basis = np.hstack([rows, np.ones((len(rows), 1))]).astype(np.float64)
    inside = np.linalg.pinv(basis) @ basis @ before.weights
    np.testing.assert_allclose(after.weights, inside, atol=1e-6)


def test_cgu_steps_by_newton_and_retrains_beyond_its_budget(middling: ge.Graph) -> None:
    wide = LinearSettings(epsilon=1e6)
    before = Certified.fit(middling, 0, wide)
    request = ge.Nodes(middling.train_nodes[:1])
    after = before.forget(request)
    rest = middling.without(request).training_graph
    x, w = dense(rest, walk=True), before.weights
    sign = 2 * np.eye(middling.num_classes)[rest.y] - 1
    noise = -before._slope(before.rows, w)  # at the minimum the gradient is the noise
    decay = wide.penalty * len(x)
    for k in range(w.shape[1]):
        share = 1 / (1 + np.exp(-x @ w[:, k]))
        pull = 1 / (1 + np.exp(sign[:, k] * (x @ w[:, k])))
        slope = x.T @ (-sign[:, k] * pull) + decay * w[:, k] + noise[:, k]
        hessian = x.T @ ((share * (1 - share))[:, None] * x) + decay * np.eye(len(w))
        expected = w[:, k] - np.linalg.solve(hessian, slope)
        np.testing.assert_allclose(after.weights[:, k], expected, atol=1e-4)
    assert (after.spent > 0, after.retrainings) == (True, 0)
    tight = Certified.fit(middling, 0, LinearSettings(noise=1e-9)).forget(request)
    assert (tight.spent, tight.retrainings) == (0.0, 1)


def test_scalegun_sees_standardised_features_after_two_hops(middling: ge.Graph) -> None:
    x = middling.x.toarray().astype(np.float64)
    varied = x.std(axis=0) > 0
    x[:, varied] = (x[:, varied] - x[:, varied].mean(axis=0)) / x[:, varied].std(axis=0)
    x[:, ~varied] = 0
    x /= np.linalg.norm(x, axis=1).max()
    adjacency = np.eye(len(x))
    for row, node in enumerate(middling.ids):
        adjacency[row, middling.positions(middling.neighbours(int(node)))] = 1
    root = np.sqrt(adjacency.sum(axis=1))
    step = adjacency / root[:, None] / root[None, :]
    np.testing.assert_allclose(ScaleGun.features(middling).toarray(), step @ step @ x, atol=1e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_answers_are_posteriors_and_forgetting_leaves_the_model_as_it_was(
    middling: ge.Graph, kind: type[Linear]
) -> None:
    peer = kind.fit(middling, 0, LinearSettings(penalty=0.001))
    kept = peer.weights.copy()
    peer.forget(ge.Nodes(middling.train_nodes[:3]))
    assert np.array_equal(peer.weights, kept)
    found = peer.answers(View(middling), middling.test_nodes)
    np.testing.assert_allclose(found.sum(axis=1), 1, atol=1e-5)
    assert (found >= 0).all()
    known = peer.answers(View(middling.training_graph), middling.train_nodes)
    assert (known.argmax(axis=1) == middling.labels(middling.train_nodes)).mean() > 0.4
