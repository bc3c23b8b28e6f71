"""Words of targets against plain NumPy, and what is said where no label is around."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import grapheraser as ge
from grapheraser.aggregation.members import all_columns
from grapheraser.aggregation.members.all_columns import AROUND
from tests.property.test_targets import World

_ONE = 2.0**12


def unit(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    found: NDArray[np.float64] = rows / np.where(length, length, 1.0)
    return found


def rows_of(graph: ge.Graph) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Own features and those of training neighbours, of a graph without hubs.

    Each at length 1 and in steps; and as long as they are, with other columns.
    """
    n = graph.num_nodes
    x = np.log1p(graph.x.toarray().astype(np.float64))
    adjacency, sizes = np.zeros((n, n)), np.log1p((x > 0).sum(axis=1))
    own = unit(x) * np.minimum(sizes / 3, 2)[:, None]
    adjacency[graph.positions(graph.edges[:, 0]), graph.positions(graph.edges[:, 1])] = 1
    adjacency += adjacency.T
    assert adjacency.sum(axis=1).max() <= AROUND
    pieces = [(b / 2, b / 2 - 1, (b - 4) / 12) for b in (sizes, np.log1p(adjacency.sum(axis=1)))]
    others = np.stack([*pieces[0], *pieces[1], np.ones(n)], axis=1).clip(0, 1)
    adjacency[:, np.isin(graph.ids, graph.train_nodes, invert=True)] = 0
    mean = adjacency @ own / np.maximum(adjacency.sum(axis=1, keepdims=True), 1)
    steps = np.rint(_ONE * np.hstack([unit(own), unit(mean)]))
    return steps, np.hstack([own, mean, np.rint(_ONE * others) / _ONE])


def of(kind: str) -> tuple[Any, Any, list[NDArray[np.float64]], NDArray[np.float64]]:
    """A fitted member, its ensemble, both rows of the training nodes and their targets."""
    world = World.of(kind, 7, nodes=90)
    degree, edges = np.zeros(90, dtype=int), set()
    for u, v in sorted(world.edges):
        if max(degree[u], degree[v]) < AROUND:
            degree[[u, v]] += 1
            edges.add((u, v))
    world.edges = edges
    for row in world.y.values():
        row[0] = 1.0 if np.isnan(row).all() else row[0]  # nobody without any label
    eraser = ge.GraphEraser("closed-form").fit(world.graph())
    graph = eraser.graph_
    trained = graph.positions(graph.train_nodes)
    targets = graph.label_kind.fixed(graph.y)[trained]
    member = eraser.aggregator_.fitted.members["words"]  # type: ignore[attr-defined]
    both = [rows[trained] for rows in rows_of(graph)]
    return member, eraser._snapshot.state.ensemble, both, targets


@pytest.mark.parametrize("kind", ["wide one number", "wide partial", "wide many"])
def test_each_column_says_what_a_regression_on_it_alone_does(kind: str) -> None:
    member, ensemble, (rows, _), targets = of(kind)
    graph, spread = ensemble.graph, ensemble.graph.label_frame.spread
    sample = member.judged.sample
    said = member.held_out(ensemble, sample)[:, :2] - member.sums.mean(graph)
    for row, i in enumerate(np.searchsorted(graph.train_nodes, sample)[:5]):
        for k in range(targets.shape[1]):
            there = ~np.isnan(targets[:, k])
            there[i] = False
            x, y = rows[there], targets[there, k]
            centred = x - x.mean(axis=0)
            slopes = centred.T @ (y - y.mean()) / ((centred**2).sum(axis=0) + _ONE**2)
            parts = (slopes * rows[i])[: 2 * graph.num_features].reshape(2, -1).sum(axis=1)
            np.testing.assert_allclose(said[row, :, k], parts / spread[k], atol=1e-9)


@pytest.mark.parametrize("kind", ["wide one number", "wide partial numbers"])
def test_many_gradients_solve_the_regression_on_all_columns(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(all_columns, "_GRADIENTS", 400)
    member, ensemble, (_, rows), targets = of(kind)
    frame, mean = ensemble.graph.label_frame, member.sums.mean(ensemble.graph)
    for k in range(targets.shape[1]):
        there = ~np.isnan(targets[:, k])
        x, y = rows[there], (targets[there, k] - frame.centre[k]) / frame.spread[k]
        solved = np.linalg.solve(x.T @ x + np.eye(x.shape[1]), x.T @ (y - mean[k]))
        np.testing.assert_allclose(member.weights[:, k], solved, atol=1e-7)


@pytest.mark.parametrize("kind", ["several", "wide one number"])
def test_nodes_without_a_label_around_are_answered_by_the_others(kind: str) -> None:
    graph = World.of(kind, 3, nodes=120).graph()
    eraser = ge.GraphEraser("closed-form").fit(graph)
    pool = eraser.aggregator_.fitted
    features = np.ones((1, graph.num_features))
    answer = eraser.predict_new(features, [[]])
    assert np.isfinite(answer).all()
    weights, _ = pool.learned  # type: ignore[attr-defined]
    names = [name for member in pool.members.values() for name in member.names]  # type: ignore[attr-defined]
    assert (weights[1][names.index("pattern")] == 0).all()
    assert (weights[0][names.index("pattern")] > 0).any()
