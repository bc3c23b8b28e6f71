"""Pattern: rows of label shares, by dictionaries; they learn what goes with what."""

from __future__ import annotations

import numpy as np
import pytest

import grapheraser as ge
from grapheraser.aggregation.members.around import FAR, NEAR
from grapheraser.aggregation.members.base import SCALE
from grapheraser.aggregation.members.pattern import PatternRegression
from tests.aggregation.members.oracle import (
    GRAPHS,
    chosen,
    ensemble_of,
    known,
    labels_key,
    sample_of,
)


def row_of(graph: ge.Graph, node: int, seed: int) -> list[float]:
    y, key, c = known(graph), labels_key(seed), graph.num_classes
    one, two = np.full(c, 1 / c), np.full(c, 1 / c)
    for near in chosen(graph, node, y, NEAR, key):
        one[y[near]] += 1
    for middle in chosen(graph, node, graph.ids.tolist(), FAR, key):
        for far in chosen(graph, middle, y, FAR + 1, key):
            if far != node:
                two[y[far]] += 1
    one, two = one / one.sum(), two / two.sum()
    row = np.concatenate([one, two, np.sqrt(one), np.sqrt(two), [1.0]])
    found: list[float] = (row * SCALE).tolist()
    return found


@pytest.mark.parametrize("learning", [False, True])
@pytest.mark.parametrize("kind", GRAPHS)
def test_rows_are_shares_at_one_and_two_steps_and_their_roots(kind: str, learning: bool) -> None:
    graph = GRAPHS[kind]
    rows = PatternRegression().rows(graph, graph.places(graph.ids), 4, learning=learning)
    assert rows.shape == (graph.num_nodes, 4 * graph.num_classes + 1)
    expected = [row_of(graph, node, 4) for node in graph.ids.tolist()]
    np.testing.assert_allclose(rows, expected, atol=0.5 + 1e-6)
    assert np.array_equal(rows, np.rint(rows))


def test_the_size_of_classes_has_no_part_in_a_row() -> None:
    graph = GRAPHS["sparse"]
    isolated = graph.places(graph.ids[graph.degree == 0])
    row = PatternRegression().rows(graph, isolated, 0, learning=True)[0]
    third, root = np.rint(SCALE / 3), np.rint(SCALE / np.sqrt(3))
    assert row.tolist() == [third] * 6 + [root] * 6 + [SCALE]


def test_classes_that_go_with_others_are_learned() -> None:
    """On a ring of classes 0, 1, 2, 0, ... no neighbour is like a node."""
    n = 90
    ring = np.stack([np.arange(n), (np.arange(n) + 1) % n])
    y = np.arange(n) % 3
    graph = ge.Graph.from_arrays(np.ones((n, 1)), ring, y, test=np.arange(0, n, 7))
    ensemble = ensemble_of(graph)
    fitted = PatternRegression().fit(ensemble, sample_of(ensemble))
    at = graph.positions(graph.test_nodes)
    found = fitted.evidence(ensemble, at)[:, 0].argmax(axis=1)
    assert np.array_equal(found, y[at])
