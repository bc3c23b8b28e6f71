"""Edges: counts of pairs by dictionaries, and naive Bayes over them."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from numpy.typing import NDArray

import grapheraser as ge
from grapheraser.aggregation.members import edges
from grapheraser.aggregation.members.around import NEAR, Around
from grapheraser.aggregation.members.base import FLOOR
from tests.aggregation.members.oracle import (
    GRAPHS,
    as_test_nodes,
    chosen,
    known,
    labels_key,
    unlabelled,
)


def pairs_of(graph: ge.Graph) -> Counter[tuple[int, int]]:
    y = known(graph)
    counts: Counter[tuple[int, int]] = Counter()
    for u, v in graph.edges.tolist():
        if u in y and v in y:
            counts[y[u], y[v]] += 1
            counts[y[v], y[u]] += 1
    return counts


def evidence(
    counts: NDArray[np.int64], graph: ge.Graph, nodes: object, seed: int, *, held_out: bool
) -> NDArray[np.float64]:
    places = graph.places(nodes)  # type: ignore[arg-type]
    own = graph.labels(nodes) if held_out else np.full(len(places), -1)  # type: ignore[arg-type]
    return edges.evidence(counts, Around.of(graph, places, seed), own)


def bayes(graph: ge.Graph, node: int, counted: ge.Graph, seed: int) -> NDArray[np.float64]:
    """What the counts of one graph say about a node of another."""
    counts, y, c = pairs_of(counted), known(graph), graph.num_classes
    scores = np.zeros(c)
    for other in chosen(graph, node, y, NEAR, labels_key(seed)):
        for k in range(c):
            total = sum(counts[k, label] for label in range(c))
            scores[k] += np.log((counts[k, y[other]] + 0.1) / (total + 0.1 * c))
    scores -= scores.max()
    found: NDArray[np.float64] = np.maximum(scores - np.log(np.exp(scores).sum()), FLOOR)
    return found


@pytest.mark.parametrize("kind", GRAPHS)
def test_pairs_of_adjacent_training_nodes_are_counted_both_ways(kind: str) -> None:
    graph = GRAPHS[kind]
    counts = edges.edge_counts(graph)
    found = {(a, b): n for (a, b), n in np.ndenumerate(counts) if n}
    assert found == dict(pairs_of(graph))
    assert np.array_equal(counts, counts.T)


@pytest.mark.parametrize("kind", GRAPHS)
def test_evidence_is_naive_bayes_over_the_neighbours(kind: str) -> None:
    graph = GRAPHS[kind]
    counts = edges.edge_counts(graph)
    found = evidence(counts, graph, graph.ids, 1, held_out=False)
    for row, node in zip(found, graph.ids.tolist(), strict=True):
        np.testing.assert_allclose(row, bayes(graph, node, graph, 1), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("kind", ["sparse", "many edges", "hub", "one class"])
def test_a_held_out_node_is_judged_without_its_own_edges(kind: str) -> None:
    graph = GRAPHS[kind]
    nodes = list(known(graph))
    counts = edges.edge_counts(graph)
    found = evidence(counts, graph, nodes, 1, held_out=True)
    for row, node in zip(found, nodes, strict=True):
        without = as_test_nodes(graph, [node])
        np.testing.assert_allclose(row, bayes(graph, node, without, 1), rtol=1e-9, atol=1e-9)
        # The very bits, too: whole numbers are what differs.
        rest = edges.edge_counts(without)
        again = evidence(rest, graph, [node], 1, held_out=False)
        assert again[0].tobytes() == row.tobytes()


def test_unlike_neighbours_are_evidence_as_good_as_like_ones() -> None:
    ring = np.stack([np.arange(30), (np.arange(30) + 1) % 30])
    graph = ge.Graph.from_arrays(np.ones((30, 1)), ring, np.arange(30) % 2, test=[4, 9])
    found = evidence(edges.edge_counts(graph), graph, [4, 9], 0, held_out=False)
    assert found.argmax(axis=1).tolist() == [0, 1]


def test_without_edges_all_classes_are_alike() -> None:
    graph = GRAPHS["no edges"]
    counts = edges.edge_counts(graph)
    found = evidence(counts, graph, graph.ids[:5], 0, held_out=False)
    np.testing.assert_allclose(found, np.log(1 / 3))


def test_edges_between_two_nodes_that_go_are_taken_out_once() -> None:
    """Whether their neighbours are named beside them or not."""
    graph = GRAPHS["many edges"]
    gone = np.array(list(known(graph))[:8])
    after = graph.without(ge.Nodes(gone))
    around = np.unique(np.concatenate([graph.neighbours(v) for v in gone.tolist()] + [gone]))
    for named in (gone, around):
        found = edges.changed_edge_counts(edges.edge_counts(graph), graph, after, named)
        assert np.array_equal(found, edges.edge_counts(after))
        back = edges.changed_edge_counts(found, after, graph, named)
        assert np.array_equal(back, edges.edge_counts(graph))


def test_a_node_that_loses_its_label_takes_its_pairs_along() -> None:
    graph = GRAPHS["many edges"]
    nodes = np.array(list(known(graph))[3:6])
    for after in (unlabelled(graph, nodes), as_test_nodes(graph, nodes)):
        found = edges.changed_edge_counts(edges.edge_counts(graph), graph, after, nodes)
        assert np.array_equal(found, edges.edge_counts(after))
