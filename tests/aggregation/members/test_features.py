"""Features: rows by dense matrices, whatever their width."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import grapheraser as ge
from grapheraser.aggregation.members import closed_form
from grapheraser.aggregation.members.base import SCALE
from grapheraser.aggregation.members.features import FeatureRegression
from grapheraser.aggregation.members.smoothing import (
    FIRST,
    OWN,
    OWN_APART,
    SECOND,
    Projection,
    Sketch,
)
from grapheraser.errors import ParameterError
from grapheraser.seeding import derive
from tests.aggregation.members.oracle import GRAPHS, chosen, known, random_graph

Matrix = NDArray[np.float64]
# Rounded to whole numbers of float32 sums.
CLOSE = 1e-4


def unit(rows: Matrix) -> Matrix:
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.divide(rows, length, out=np.zeros_like(rows), where=length > 0)


def neighbours(graph: ge.Graph, most: int, seed: int, allowed: NDArray[np.int64]) -> Matrix:
    """The matrix of the neighbours that count."""
    A = np.zeros((graph.num_nodes, graph.num_nodes))
    for row, node in enumerate(graph.ids.tolist()):
        near = chosen(graph, node, allowed.tolist(), most, derive(seed, "smoothing"))
        A[row, graph.positions(near)] = 1.0
    return A


def mean(A: Matrix) -> Matrix:
    return A / np.maximum(A.sum(axis=1, keepdims=True), 1)


def in_blocks(graph: ge.Graph, seed: int, allowed: NDArray[np.int64]) -> Matrix:
    x = graph.x.toarray().astype(np.float64)
    first, second = (mean(neighbours(graph, most, seed, allowed)) for most in (FIRST, SECOND))
    ones = np.ones((graph.num_nodes, 1))
    return np.hstack([unit(x), unit(second @ x), unit(second @ first @ x), ones])


def around(graph: ge.Graph, seed: int, allowed: NDArray[np.int64], x: Matrix) -> Matrix:
    eye = np.eye(graph.num_nodes)
    first, second = (mean(eye + neighbours(graph, most, seed, allowed)) for most in (FIRST, SECOND))
    return unit(second @ (first @ x))


def dense(projection: Projection, num_features: int, width: int) -> Matrix:
    P = np.zeros((num_features, width))
    spread = len(projection.targets) // num_features
    for t, (target, sign) in enumerate(zip(projection.targets, projection.signs, strict=True)):
        P[t // spread, target] += sign
    return P


def expected_rows(graph: ge.Graph, columns: int, seed: int, allowed: NDArray[np.int64]) -> Matrix:
    features = graph.num_features
    if 3 * features <= 512:
        return in_blocks(graph, seed, allowed)
    x = unit(graph.x.toarray().astype(np.float64))
    if 2 * features <= 512:
        return unit(np.hstack([around(graph, seed, allowed, x), OWN_APART * x]))
    if features > 512:
        x = x @ dense(Sketch.of(features, columns, seed).around, features, columns)
    return unit(OWN * unit(x) + around(graph, seed, allowed, x))


@pytest.mark.parametrize("learning", [False, True])
@pytest.mark.parametrize("edges", [40, 500])
@pytest.mark.parametrize(
    ("features", "width"), [(10, 31), (170, 511), (171, 342), (256, 512), (257, 257), (513, 50)]
)
def test_rows_are_what_dense_matrices_give(
    features: int, width: int, edges: int, learning: bool
) -> None:
    graph = random_graph(11, num_features=features, density=0.1, edges=edges)
    assert (graph.degree.max() > SECOND) == (edges > 40)
    rule = FeatureRegression(columns=50)
    assert rule.width(graph) == width
    rows = rule.rows(graph, graph.places(graph.ids), 3, learning=learning)
    allowed = graph.train_nodes if learning else graph.ids
    np.testing.assert_allclose(rows / SCALE, expected_rows(graph, 50, 3, allowed), atol=CLOSE)
    assert np.array_equal(rows, np.rint(rows))


@pytest.mark.parametrize("kind", GRAPHS)
def test_so_they_are_on_every_kind_of_graph(kind: str) -> None:
    graph = GRAPHS[kind]
    rows = FeatureRegression().rows(graph, graph.places(graph.ids), 0, learning=False)
    np.testing.assert_allclose(rows / SCALE, in_blocks(graph, 0, graph.ids), atol=CLOSE)


def test_the_layout_follows_from_the_number_of_columns_alone() -> None:
    for features in (10, 200, 300, 600):
        graph = random_graph(1, num_features=features)
        less = graph.without(ge.Nodes(list(known(graph))[1:]))
        assert FeatureRegression().width(graph) == FeatureRegression().width(less)


def test_more_counts_where_there_is_no_other_member() -> None:
    (alone,) = closed_form(["features"]).values()
    beside = closed_form(["words", "features"])["features"]
    assert isinstance(alone, FeatureRegression)
    assert isinstance(beside, FeatureRegression)
    assert (alone.columns, alone.spread, alone.second) == (384, 4, 16)
    assert (beside.columns, beside.spread, beside.second) == (256, 2, SECOND)


def test_a_feature_goes_to_as_many_columns_as_asked_for() -> None:
    for spread in (1, 2, 4):
        projection = Sketch.of(50, 10, 3, spread=spread).around
        assert projection.targets.shape == projection.signs.shape == (50 * spread,)
        np.testing.assert_allclose(projection.signs**2, 1 / spread, rtol=1e-6)


def test_the_projection_depends_on_the_seed_and_nothing_else() -> None:
    first, again, other = (Sketch.of(50, 10, seed) for seed in (3, 3, 4))
    assert first.width == 10
    targets = first.around.targets
    assert np.array_equal(targets, again.around.targets)
    assert not np.array_equal(targets, other.around.targets)
    # A wider table of features starts with the same columns.
    assert np.array_equal(Sketch.of(80, 10, 3).around.targets[: len(targets)], targets)
    # A node's own features go their own way only where they are kept apart.
    assert first.own is first.around
    apart = Sketch.of(50, 10, 3, apart=True)
    assert np.array_equal(apart.around.targets, targets)
    assert not np.array_equal(apart.own.targets, targets)


@pytest.mark.parametrize(
    "bad",
    [{"columns": 0}, {"columns": 2**16}, {"spread": 0}, {"second": 0}, {"ridge": 0.0}],
    ids=repr,
)
def test_bad_options_are_refused(bad: dict[str, Any]) -> None:
    with pytest.raises(ParameterError, match=f"'{next(iter(bad))}' of FeatureRegression"):
        FeatureRegression(**bad)
