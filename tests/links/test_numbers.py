"""The numbers of a pair, against a count by hand on sets of neighbours and dense matrices."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import grapheraser as ge
from grapheraser.links import link_graph
from grapheraser.links.counts import MOST_AROUND
from grapheraser.links.numbers import NUMBERS, numbers_of
from grapheraser.links.rows import FIRST, OWN_WEIGHT, SECOND
from tests.links.graphs import hub_graph
from tests.strategies import small_graph


def by_hand(graph: ge.Graph, u: int, v: int) -> dict[str, float]:
    """All numbers of a pair in a graph whose nodes have few neighbours."""
    if bool(graph.has_edges(np.array([[u, v]]))[0]):
        graph = graph.without(ge.Edges([(u, v)]))
    near = {node: {*graph.neighbours(node).tolist()} for node in graph.ids.tolist()}
    both = near[u] & near[v]
    degree = {node: len(others) for node, others in near.items()}
    paths = sum(
        1 / math.sqrt(degree[a] * degree[b]) for a in near[u] for b in near[v] if b in near[a]
    )
    rows = {node: _rows(graph, near, node) for node in (u, v)}
    (own, one, two), (other, other_one, other_two) = rows[u], rows[v]
    return {
        "common neighbours": len(both),
        "Adamic-Adar": sum(1 / math.log(degree[w]) for w in both),
        "resource allocation": sum(1 / degree[w] for w in both),
        "paths of three edges": paths,
        "smaller degree": min(degree[u], degree[v]),
        "larger degree": max(degree[u], degree[v]),
        "own features": float(own @ other),
        "one step": float(one @ other_one),
        "two steps": float(two @ other_two),
        "own and one step": float(own @ other_one + other @ one),
    }


def _rows(graph: ge.Graph, near: dict[int, set[int]], node: int) -> tuple[NDArray[Any], ...]:
    x = dict(zip(graph.ids.tolist(), map(_unit, graph.x.toarray().astype(float)), strict=True))
    step = {w: np.mean([x[w], *(x[o] for o in near[w])], axis=0) for w in (node, *near[node])}
    two = _unit(np.mean([step[w] for w in (node, *near[node])], axis=0))
    return x[node], _unit(step[node]), _unit(two + OWN_WEIGHT * x[node])


def _unit(row: NDArray[Any]) -> NDArray[Any]:
    length = float(np.linalg.norm(row))
    return row / length if length else row


def few_neighbours(seed: int) -> ge.Graph:
    """A graph in which all neighbours count."""
    graph = link_graph(small_graph(seed, n=50, ties=1))
    assert graph.degree.max() <= SECOND
    crowded = graph.ids[graph.degree > FIRST]
    while len(crowded):
        graph = graph.without(ge.Edges([(int(crowded[0]), int(graph.neighbours(crowded[0])[0]))]))
        crowded = graph.ids[graph.degree > FIRST]
    return graph


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_numbers_are_those_counted_by_hand(seed: int) -> None:
    graph = few_neighbours(seed)
    rng = np.random.default_rng(seed)
    pairs = np.concatenate([graph.edges[:20], np.sort(rng.choice(graph.ids, (80, 2)), axis=1)])
    pairs = pairs[pairs[:, 0] < pairs[:, 1]]
    found = numbers_of(graph, pairs, 0)
    for (u, v), row in zip(pairs.tolist(), found, strict=True):
        expected = by_hand(graph, u, v)
        for name, value in zip(NUMBERS, row.tolist(), strict=True):
            assert value == pytest.approx(expected[name], abs=1e-5), (name, u, v)


@pytest.mark.parametrize("graph", [small_graph(n=60, ties=12), hub_graph()], ids=["small", "hubs"])
def test_an_edge_is_judged_without_itself(graph: ge.Graph) -> None:
    graph = link_graph(graph)
    for edge in graph.edges[::97].tolist():
        pair = np.array([edge])
        rest = graph.without(ge.Edges([edge]))
        assert numbers_of(graph, pair, 0).tobytes() == numbers_of(rest, pair, 0).tobytes()


def test_a_pair_has_the_same_numbers_whatever_is_asked_with_it() -> None:
    graph = link_graph(hub_graph())
    pairs = np.stack([np.arange(0, 100), np.arange(200, 300)], axis=1)
    together = numbers_of(graph, pairs, 0)
    for at in (0, 3, 57):
        assert numbers_of(graph, pairs[at : at + 1], 0).tobytes() == together[at].tobytes()


def test_counts_around_hubs_are_near_the_truth() -> None:
    rng = np.random.default_rng(0)
    graph = link_graph(crowd(rng, n=700))
    assert graph.degree.min() > 4 * MOST_AROUND
    pairs = np.array([[0, 1], [2, 3]])
    exact = [by_counting(graph, u, v) for u, v in pairs.tolist()]
    found = numbers_of(graph, pairs, 0)[:, [0, 3]]
    np.testing.assert_allclose(found, exact, rtol=0.15)


def crowd(rng: np.random.Generator, n: int) -> ge.Graph:
    """Half of all pairs have an edge."""
    pairs = np.argwhere(np.triu(rng.random((n, n)) < 0.5, 1)).T
    return ge.Graph.from_arrays(rng.random((n, 3)), pairs, np.zeros(n, dtype=int))


def by_counting(graph: ge.Graph, u: int, v: int) -> tuple[float, float]:
    n = graph.num_nodes
    A = np.zeros((n, n))
    A[graph.sources, graph.indices] = 1.0
    A[u, v] = A[v, u] = 0.0
    degree = np.maximum(A.sum(axis=0), 1.0)
    scaled = A / np.sqrt(np.outer(degree, degree))
    return float(A[u] @ A[v]), float(A[u] @ scaled @ A[v])


def test_dense_and_sparse_features_give_the_same_numbers() -> None:
    sparse = small_graph(n=40)
    x, edges = sparse.x.toarray(), sparse.edges.T
    dense = ge.Graph.from_arrays(x, edges, sparse.y, ids=sparse.ids, each_edge_once=True)
    pairs = np.sort(sparse.ids[np.array([[0, 5], [3, 20], [7, 30]])], axis=1)
    one, other = (numbers_of(link_graph(graph), pairs, 0) for graph in (sparse, dense))
    assert one.tobytes() == other.tobytes()
