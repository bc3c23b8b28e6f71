"""Ridge regression from whole numbers: exact sums, and the answers of an independent one."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

import grapheraser as ge
import grapheraser.aggregation.members.ridge as ridge_module
from grapheraser.aggregation import Change
from grapheraser.aggregation.members.base import SCALE
from grapheraser.aggregation.members.features import FeatureRegression
from grapheraser.aggregation.members.interactions import InteractionRegression
from grapheraser.aggregation.members.pattern import PatternRegression
from grapheraser.aggregation.members.ridge import RidgeMember, blocks
from grapheraser.eraser.plan import plan_removal
from grapheraser.graph import coalesce
from grapheraser.kernels.cholesky import solve_positive
from grapheraser.kernels.paged import labels_at
from tests.aggregation.members.oracle import GRAPHS, ensemble_of, known, random_graph, sample_of

MEMBERS = {
    "pattern": (PatternRegression(), GRAPHS["many edges"]),
    "pattern, hub": (PatternRegression(), GRAPHS["hub"]),
    "interactions of few features": (InteractionRegression(), GRAPHS["dense"]),
    "interactions": (
        InteractionRegression(columns=9),
        random_graph(9, num_features=600, density=0.02),
    ),
    "features in blocks": (FeatureRegression(), GRAPHS["dense"]),
    "features in blocks, hub": (FeatureRegression(ridge=2.5), GRAPHS["hub"]),
    "features apart": (FeatureRegression(), random_graph(8, num_features=200, density=0.05)),
    "features hashed": (
        FeatureRegression(columns=9),
        random_graph(9, num_features=600, density=0.02),
    ),
}
each_member = pytest.mark.parametrize("name", MEMBERS)


def regressed(
    rule: RidgeMember, rows: NDArray[np.float64], y: NDArray[np.int64], classes: int
) -> NDArray[np.float64]:
    H, Y = rows / SCALE, np.eye(classes)[y]
    return np.linalg.solve(H.T @ H + rule.ridge * np.eye(H.shape[1]), H.T @ Y).astype(np.float64)


@each_member
def test_weights_and_evidence_are_those_of_ridge_regression(name: str) -> None:
    rule, graph = MEMBERS[name]
    ensemble = ensemble_of(graph)
    trained = graph.places(list(known(graph)))
    H = rule.rows(graph, trained, 0, learning=True)
    assert H.shape[1] == rule.width(graph)
    assert np.array_equal(H, np.rint(H))
    assert np.abs(H).max() <= SCALE
    weights = regressed(rule, H, graph.labels(list(known(graph))), graph.num_classes)
    fitted = rule.fit(ensemble, sample_of(ensemble))
    np.testing.assert_allclose(fitted.weights, weights, atol=1e-5)
    every = np.arange(graph.num_nodes)
    asked = rule.rows(graph, graph.places(graph.ids), 0, learning=False) / SCALE
    found = fitted.evidence(ensemble, every)
    np.testing.assert_allclose(found[:, 0], 8.0 * asked @ weights, atol=1e-4)


@each_member
@pytest.mark.parametrize("share", [0.3, 1.0])
def test_the_sample_is_judged_by_the_regression_without_it(name: str, share: float) -> None:
    rule, graph = MEMBERS[name]
    ensemble = ensemble_of(graph)
    sample = sample_of(ensemble, share)
    assert len(sample)
    rest = graph.places([v for v in known(graph) if v not in set(sample.tolist())])
    H = rule.rows(graph, rest, 0, learning=True)
    weights = regressed(rule, H, labels_at(graph.table, rest), graph.num_classes)
    asked = rule.rows(graph, graph.places(sample), 0, learning=False) / SCALE
    fitted = rule.fit(ensemble, sample)
    found = fitted.held_out(ensemble, sample)
    np.testing.assert_allclose(found[:, 0], 8.0 * asked @ weights, atol=1e-4)
    # What was kept to judge by is not needed.
    again = rule.restore(fitted.tensors).held_out(ensemble, sample)
    assert again.tobytes() == found.tobytes()


@each_member
def test_blocks_change_nothing(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rule, graph = MEMBERS[name]
    ensemble, every = ensemble_of(graph), np.arange(graph.num_nodes)
    whole = rule.fit(ensemble, sample_of(ensemble))
    answers = whole.evidence(ensemble, every)
    monkeypatch.setattr(ridge_module, "_MAX_NUMBERS", 7 * rule.width(graph))
    parts = rule.fit(ensemble, sample_of(ensemble))
    for key, tensor in whole.tensors.items():
        assert tensor.tobytes() == parts.tensors[key].tobytes()
    assert parts.evidence(ensemble, every).tobytes() == answers.tobytes()


def test_blocks_hold_as_many_rows_as_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ridge_module, "_MAX_NUMBERS", 30)
    assert [len(block) for block in blocks(np.arange(10), 8)] == [3, 3, 3, 1]
    assert [len(block) for block in blocks(np.arange(2), 100)] == [1, 1]
    assert not list(blocks(np.arange(0), 8))


@each_member
def test_only_rows_that_are_called_stale_change(name: str) -> None:
    """And `stale` names at most what is within two hops."""
    rule, graph = MEMBERS[name]
    ensemble = ensemble_of(graph)
    for gone in graph.ids[::7].tolist():
        removal = coalesce(graph, ge.Nodes([gone]))
        after = graph.without(removal)
        touched = plan_removal(graph, ensemble.partition, removal).touched
        change = Change(ensemble, frozenset(), touched, removal.nodes)
        for learning in (False, True):
            stale = rule.stale(change, after, 0, learning=learning).nodes
            near = graph.ids[graph.within_hops(graph.positions([gone]), 2)]
            assert np.isin(stale, near).all()
            nodes = np.setdiff1d(list(known(after)) if learning else after.ids, stale)
            old = rule.rows(graph, graph.places(nodes), 0, learning=learning)
            new = rule.rows(after, after.places(nodes), 0, learning=learning)
            assert old.tobytes() == new.tobytes()


def test_fewer_nodes_than_columns_are_enough() -> None:
    graph = random_graph(n=10, num_features=12)
    ensemble = ensemble_of(graph)
    fitted = FeatureRegression().fit(ensemble, sample_of(ensemble, 1.0))
    assert np.isfinite(fitted.evidence(ensemble, np.arange(3))).all()


@pytest.mark.parametrize("n", [1, 2, 47, 48, 49, 97, 150])
def test_the_solver_agrees_with_lapack(n: int) -> None:
    rng = np.random.default_rng(n)
    H = rng.normal(size=(n + 3, n))
    A, B = H.T @ H + np.eye(n), rng.normal(size=(n, 3))
    np.testing.assert_allclose(solve_positive(A, B), np.linalg.solve(A, B), rtol=1e-8, atol=1e-10)
    # Only the lower half is read.
    np.testing.assert_array_equal(solve_positive(np.tril(A), B), solve_positive(A, B))
