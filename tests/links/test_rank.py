"""Ranking: the best of all pairs of a node, where all are candidates."""

from __future__ import annotations

import numpy as np
import pytest

import grapheraser as ge
from grapheraser import errors
from grapheraser.links.index import Index
from tests.strategies import small_graph


@pytest.fixture(scope="module")
def links() -> ge.LinkEraser:
    return ge.LinkEraser().fit(small_graph(n=60))


def test_the_ranking_is_that_of_the_probabilities_of_all_new_links(links: ge.LinkEraser) -> None:
    graph = links.graph_
    node = int(graph.ids[1])
    others = np.setdiff1d(graph.ids, [*graph.neighbours(node), node])
    found = links.predict_proba([(node, int(other)) for other in others])
    ranked = links.rank(node, top=8)
    assert ranked.candidates <= len(others)
    best = others[np.lexsort((others, -found))]
    if ranked.candidates == len(others):
        assert ranked.nodes.tolist() == best[:8].tolist()
    assert set(ranked.nodes.tolist()) <= set(others.tolist())
    assert np.array_equal(np.sort(ranked.probabilities)[::-1], ranked.probabilities)
    assert links.predict_proba([(node, int(ranked.nodes[0]))])[0] == ranked.probabilities[0]


def test_fewer_candidates_than_wanted_are_all_there_are(links: ge.LinkEraser) -> None:
    ranked = links.rank(int(links.graph_.ids[0]), top=10_000)
    assert len(ranked.nodes) == ranked.candidates


def test_a_node_without_features_and_edges_has_no_candidates() -> None:
    x = np.eye(4)
    x[3] = 0
    graph = ge.Graph.from_arrays(x, [[0, 1], [1, 2]], np.zeros(4, dtype=int))
    ranked = ge.LinkEraser().fit(graph).rank(3)
    assert (len(ranked.nodes), ranked.candidates) == (0, 0)


@pytest.mark.parametrize("top", [0, -1, 1.5, True])
def test_bad_numbers_are_refused(links: ge.LinkEraser, top: int) -> None:
    with pytest.raises(errors.ParameterError, match=r"'top' of LinkEraser.rank"):
        links.rank(int(links.graph_.ids[0]), top=top)


def test_an_unknown_node_is_refused(links: ge.LinkEraser) -> None:
    with pytest.raises(errors.UnknownNodeError):
        links.rank(10**6)


def test_the_index_finds_the_closest_rows(links: ge.LinkEraser) -> None:
    graph = links.graph_
    index = Index.of(graph, 0)
    rows = np.concatenate([block.rows for block in index.blocks]).astype(np.int64)
    node = int(graph.ids[7])
    products = rows @ rows[7]
    order = np.lexsort((graph.ids, -products))
    expected = [int(graph.ids[i]) for i in order if i != 7 and products[i] > 0]
    found = index.alike(graph, node, 3, sides=False).tolist()
    assert found == expected[: 3 + len(graph.neighbours(node))]
