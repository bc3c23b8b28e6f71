"""Labels: shares around a node, by dictionaries. Edges: naive Bayes over pairs of classes."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from numpy.typing import NDArray

import grapheraser as ge
from grapheraser.aggregation.members.around import FAR, NEAR, Around
from grapheraser.aggregation.members.base import FLOOR
from grapheraser.aggregation.members.neighbour_labels import (
    changed_edge_counts,
    edge_counts,
    edge_evidence,
    label_evidence,
)
from grapheraser.aggregation.members.words import WordCounts
from tests.aggregation.members.oracle import (
    GRAPHS,
    as_test_nodes,
    chosen,
    known,
    labels_key,
    prior,
    unlabelled,
)

GUESSED, WORDS = 16, 0.3


def classes_of(graph: ge.Graph) -> NDArray[np.int64]:
    return np.bincount(list(known(graph).values()), minlength=graph.num_classes)


def found_label_evidence(
    graph: ge.Graph,
    nodes: object,
    seed: int,
    classes: NDArray[np.int64],
    words: WordCounts | None,
) -> NDArray[np.float64]:
    around = Around.of(graph, graph.places(nodes), seed)  # type: ignore[arg-type]
    return label_evidence(graph, around, classes, words)


def shares(graph: ge.Graph, node: int, seed: int, words: WordCounts | None) -> NDArray[np.float64]:
    y, key, pi = known(graph), labels_key(seed), prior(graph)
    total = np.zeros(graph.num_classes)
    for other in chosen(graph, node, y, NEAR, key):
        total[y[other]] += 1
    for other in chosen(graph, node, set(graph.ids.tolist()) - set(y), GUESSED, key):
        guess = pi.copy()
        for far in chosen(graph, other, y, FAR, key):
            guess[y[far]] += far != node
        if words is not None:
            hint = words.evidence(graph, graph.places([other]), held_out=False)[0]
            guess *= np.exp(WORDS * hint)
        total += guess / guess.sum()
    found: NDArray[np.float64] = np.log((total + pi) / (total.sum() + 1))
    return found


@pytest.mark.parametrize("hints", [False, True])
@pytest.mark.parametrize("kind", GRAPHS)
def test_labels_count_where_they_are_known_and_are_guessed_elsewhere(
    kind: str, hints: bool
) -> None:
    graph, classes = GRAPHS[kind], classes_of(GRAPHS[kind])
    words = WordCounts.of(graph, classes) if hints else None
    found = found_label_evidence(graph, graph.ids, 2, classes, words)
    for row, node in zip(found, graph.ids.tolist(), strict=True):
        np.testing.assert_allclose(row, shares(graph, node, 2, words), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(np.exp(found).sum(axis=1), 1.0)


@pytest.mark.parametrize("kind", ["sparse", "many edges", "hub"])
def test_a_nodes_own_label_never_counts_for_itself(kind: str) -> None:
    """As if the label were not known, but for the classes' shares and its words: those are given.

    Where a neighbour has more labels around it than count, a known label may keep another out.
    """
    graph, classes = GRAPHS[kind], classes_of(GRAPHS[kind])
    for node in list(known(graph))[:20]:
        at = graph.positions([node])
        around = graph.indices[graph.indptr[at[0]] : graph.indptr[at[0] + 1]]
        if (graph.degree[around] > FAR).any():
            continue
        found = found_label_evidence(graph, [node], 0, classes, None)
        for other in (unlabelled(graph, [node]), as_test_nodes(graph, [node])):
            assert (
                found.tobytes() == found_label_evidence(other, [node], 0, classes, None).tobytes()
            )


def test_without_neighbours_only_the_classes_shares_are_left() -> None:
    graph = GRAPHS["no edges"]
    found = found_label_evidence(graph, graph.ids, 0, classes_of(graph), None)
    np.testing.assert_allclose(np.exp(found), np.tile(prior(graph), (graph.num_nodes, 1)))


def test_a_hub_guesses_some_of_its_neighbours() -> None:
    graph = GRAPHS["hub"]
    hub = int(graph.ids[graph.degree.argmax()])
    unknown = set(graph.ids.tolist()) - set(known(graph))
    assert len(set(graph.neighbours(hub).tolist()) & unknown) > GUESSED
    found = found_label_evidence(graph, [hub], 0, classes_of(graph), None)
    # 64 labels, 16 guesses and one spread like the classes.
    parts = np.exp(found[0]) * (NEAR + GUESSED + 1)
    assert parts.sum() == pytest.approx(NEAR + GUESSED + 1)


def pairs_of(graph: ge.Graph) -> Counter[tuple[int, int]]:
    y = known(graph)
    counts: Counter[tuple[int, int]] = Counter()
    for u, v in graph.edges.tolist():
        if u in y and v in y:
            counts[y[u], y[v]] += 1
            counts[y[v], y[u]] += 1
    return counts


def found_edge_evidence(
    counts: NDArray[np.int64], graph: ge.Graph, nodes: object, seed: int, *, held_out: bool
) -> NDArray[np.float64]:
    places = graph.places(nodes)  # type: ignore[arg-type]
    own = graph.labels(nodes) if held_out else np.full(len(places), -1)  # type: ignore[arg-type]
    return edge_evidence(counts, Around.of(graph, places, seed), own)


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
    counts = edge_counts(graph)
    found = {(a, b): n for (a, b), n in np.ndenumerate(counts) if n}
    assert found == dict(pairs_of(graph))
    assert np.array_equal(counts, counts.T)


@pytest.mark.parametrize("kind", GRAPHS)
def test_evidence_is_naive_bayes_over_the_neighbours(kind: str) -> None:
    graph = GRAPHS[kind]
    counts = edge_counts(graph)
    found = found_edge_evidence(counts, graph, graph.ids, 1, held_out=False)
    for row, node in zip(found, graph.ids.tolist(), strict=True):
        np.testing.assert_allclose(row, bayes(graph, node, graph, 1), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("kind", ["sparse", "many edges", "hub", "one class"])
def test_a_held_out_node_is_judged_without_its_own_edges(kind: str) -> None:
    graph = GRAPHS[kind]
    nodes = list(known(graph))
    counts = edge_counts(graph)
    found = found_edge_evidence(counts, graph, nodes, 1, held_out=True)
    for row, node in zip(found, nodes, strict=True):
        without = as_test_nodes(graph, [node])
        np.testing.assert_allclose(row, bayes(graph, node, without, 1), rtol=1e-9, atol=1e-9)
        # The very bits, too: whole numbers are what differs.
        rest = edge_counts(without)
        again = found_edge_evidence(rest, graph, [node], 1, held_out=False)
        assert again[0].tobytes() == row.tobytes()


def test_unlike_neighbours_are_evidence_as_good_as_like_ones() -> None:
    ring = np.stack([np.arange(30), (np.arange(30) + 1) % 30])
    graph = ge.Graph.from_arrays(np.ones((30, 1)), ring, np.arange(30) % 2, test=[4, 9])
    found = found_edge_evidence(edge_counts(graph), graph, [4, 9], 0, held_out=False)
    assert found.argmax(axis=1).tolist() == [0, 1]


def test_without_edges_all_classes_are_alike() -> None:
    graph = GRAPHS["no edges"]
    counts = edge_counts(graph)
    found = found_edge_evidence(counts, graph, graph.ids[:5], 0, held_out=False)
    np.testing.assert_allclose(found, np.log(1 / 3))


def test_edges_between_two_nodes_that_go_are_taken_out_once() -> None:
    """Whether their neighbours are named beside them or not."""
    graph = GRAPHS["many edges"]
    gone = np.array(list(known(graph))[:8])
    after = graph.without(ge.Nodes(gone))
    around = np.unique(np.concatenate([graph.neighbours(v) for v in gone.tolist()] + [gone]))
    for named in (gone, around):
        found = changed_edge_counts(edge_counts(graph), graph, after, named)
        assert np.array_equal(found, edge_counts(after))
        back = changed_edge_counts(found, after, graph, named)
        assert np.array_equal(back, edge_counts(graph))


def test_a_node_that_loses_its_label_takes_its_pairs_along() -> None:
    graph = GRAPHS["many edges"]
    nodes = np.array(list(known(graph))[3:6])
    for after in (unlabelled(graph, nodes), as_test_nodes(graph, nodes)):
        found = changed_edge_counts(edge_counts(graph), graph, after, nodes)
        assert np.array_equal(found, edge_counts(after))
