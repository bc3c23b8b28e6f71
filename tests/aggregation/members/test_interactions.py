"""Rows of interactions against rows that are put together by hand; runs from before there were."""

from __future__ import annotations

import numpy as np

import grapheraser as ge
from grapheraser.aggregation.members.base import SCALE
from grapheraser.aggregation.members.interactions import InteractionRegression
from grapheraser.aggregation.members.pattern import PatternRegression
from grapheraser.seeding import derive, keyed_hash
from tests.aggregation.members.oracle import GRAPHS, random_graph


def both(graph: ge.Graph, rule: InteractionRegression) -> tuple[np.ndarray, np.ndarray]:
    """The columns of a regression's own, and those of `pattern`, of all nodes."""
    places = graph.places(graph.ids)
    rows = rule.rows(graph, places, 3, learning=True)
    pattern = PatternRegression().rows(graph, places, 3, learning=True)
    assert np.array_equal(rows[:, -pattern.shape[1] :], pattern)
    return rows[:, : -pattern.shape[1]], pattern


def test_many_features_are_hashed_beside_the_labels_around() -> None:
    graph = random_graph(9, num_features=600, density=0.02)
    found, _ = both(graph, InteractionRegression(columns=16))
    x = graph.x.toarray().astype(np.float64)
    x /= np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-12)
    hashes = keyed_hash(np.arange(1200), derive(3, "sketch", "own"))
    project = np.zeros((600, 16))
    for number, value in enumerate(hashes.tolist()):
        project[number // 2, (value >> 1) % 16] += (1 if value & 1 else -1) / np.sqrt(2)
    np.testing.assert_allclose(found, (x @ project).clip(-1, 1) * SCALE, atol=1.5)


def test_few_features_go_through_a_random_layer_with_the_labels_around() -> None:
    graph = GRAPHS["dense"]
    found, pattern = both(graph, InteractionRegression(columns=11))
    x = graph.x.toarray() if hasattr(graph.x, "toarray") else np.asarray(graph.x)
    features, classes = x.shape[1], graph.num_classes
    signs = keyed_hash(np.arange((3 * features + 2 * classes + 1) * 11), derive(3, "interactions"))
    signs = np.where(signs & np.uint64(1), 1.0, -1.0).reshape(-1, 11)
    alone = np.flatnonzero(graph.degree == 0)
    own = x / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-12) * SCALE
    blank = np.zeros((graph.num_nodes, 2 * features))
    inputs = 2 * np.hstack([np.rint(own), blank, pattern[:, 2 * classes :]])
    expected = np.rint(inputs @ signs / 8).clip(0, SCALE)
    np.testing.assert_allclose(found[alone], expected[alone], atol=4)
    assert (found >= 0).all()
    assert (found > 0).any()


def test_where_labels_are_few_the_labels_around_are_left() -> None:
    graph = GRAPHS["sparse"]
    found, _ = both(graph, InteractionRegression().of_few())
    assert found.shape[1] == 0
