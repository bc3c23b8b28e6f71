"""Labels: shares around a node, by dictionaries."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

import grapheraser as ge
from grapheraser.aggregation.members import labels
from grapheraser.aggregation.members.around import FAR, NEAR, Around
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


def evidence(
    graph: ge.Graph,
    nodes: object,
    seed: int,
    classes: NDArray[np.int64],
    words: WordCounts | None,
) -> NDArray[np.float64]:
    around = Around.of(graph, graph.places(nodes), seed)  # type: ignore[arg-type]
    return labels.evidence(graph, around, classes, words)


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
    found = evidence(graph, graph.ids, 2, classes, words)
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
        found = evidence(graph, [node], 0, classes, None)
        for other in (unlabelled(graph, [node]), as_test_nodes(graph, [node])):
            assert found.tobytes() == evidence(other, [node], 0, classes, None).tobytes()


def test_without_neighbours_only_the_classes_shares_are_left() -> None:
    graph = GRAPHS["no edges"]
    found = evidence(graph, graph.ids, 0, classes_of(graph), None)
    np.testing.assert_allclose(np.exp(found), np.tile(prior(graph), (graph.num_nodes, 1)))


def test_a_hub_guesses_some_of_its_neighbours() -> None:
    graph = GRAPHS["hub"]
    hub = int(graph.ids[graph.degree.argmax()])
    unknown = set(graph.ids.tolist()) - set(known(graph))
    assert len(set(graph.neighbours(hub).tolist()) & unknown) > GUESSED
    found = evidence(graph, [hub], 0, classes_of(graph), None)
    # 64 labels, 16 guesses and one spread like the classes.
    parts = np.exp(found[0]) * (NEAR + GUESSED + 1)
    assert parts.sum() == pytest.approx(NEAR + GUESSED + 1)
