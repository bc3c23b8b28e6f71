"""The numbers of a pair, against a count by hand on sets of neighbours and dense matrices."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import grapheraser as ge
from grapheraser.links import link_graph
from grapheraser.links.counts import DIRECTIONS, MAX_AROUND, NUMBERS
from grapheraser.links.pair_features import numbers_of
from grapheraser.links.rows import FIRST, OWN_WEIGHT, SECOND
from tests.links.graphs import hub_graph
from tests.strategies import small_graph, with_edge_values

BACK = len(NUMBERS) + DIRECTIONS.index("edge back")


def by_hand(graph: ge.Graph, u: int, v: int) -> dict[str, float]:
    """All numbers of a pair in a graph whose nodes have few neighbours."""
    leads = {(a, b) for a, b in graph.ids[graph.edge_index].T.tolist()}
    if bool(graph.has_edges(np.array([[u, v]]))[0]):
        graph = graph.without(ge.Edges([(u, v)]))
    counts = counted(graph)
    near = {node: {*graph.neighbours(node).tolist()} for node in graph.ids.tolist()}
    both = near[u] & near[v]
    degree = {node: len(others) for node, others in near.items()}
    total = {node: sum(counts[node, w] for w in others) for node, others in near.items()}
    weight = {w: counts[u, w] * counts[v, w] for w in both}
    paths = sum(
        counts[u, a] * counts[a, b] * counts[b, v] / math.sqrt(degree[a] * degree[b])
        for a in near[u]
        for b in near[v]
        if b in near[a]
    )
    rows = {node: _rows(graph, near, counts, node) for node in (u, v)}
    (own, one, two), (other, other_one, other_two) = rows[u], rows[v]
    return {
        "common neighbours": sum(weight.values()),
        "Adamic-Adar": sum(weight[w] / math.log(degree[w]) for w in both),
        "resource allocation": sum(weight[w] / degree[w] for w in both),
        "paths of three edges": paths,
        "smaller degree": min(total[u], total[v]),
        "larger degree": max(total[u], total[v]),
        "own features": float(own @ other),
        "one step": float(one @ other_one),
        "two steps": float(two @ other_two),
        "own and one step": float(own @ other_one + other @ one),
        **directions(leads, {w: weight[w] / degree[w] for w in both}, u, v),
    }


def counted(graph: ge.Graph) -> dict[tuple[int, int], float]:
    """What each edge counts, by its ends either way: the root of the mean of its weights."""
    ends = graph.ids[graph.edge_index].T.tolist()
    weights = [1.0] * len(ends) if graph.edge_weight is None else graph.edge_weight.tolist()
    found: dict[tuple[int, int], list[float]] = {}
    for (a, b), weight in zip(ends, weights, strict=True):
        found.setdefault((a, b), []).append(weight)
        found.setdefault((b, a), []).append(weight)
    return {pair: math.sqrt(np.mean(values)) for pair, values in found.items()}


def directions(
    leads: set[tuple[int, int]], shares: dict[int, float], u: int, v: int
) -> dict[str, float]:
    """What a pair has besides in a directed graph; ``leads`` are all edges by their ends."""
    return {
        "edge back": float((v, u) in leads),
        "between source and target": sum(s for w, s in shares.items() if {(u, w), (w, v)} <= leads),
        "between target and source": sum(s for w, s in shares.items() if {(v, w), (w, u)} <= leads),
        "targets of both": sum(s for w, s in shares.items() if {(u, w), (v, w)} <= leads),
        "sources of both": sum(s for w, s in shares.items() if {(w, u), (w, v)} <= leads),
        "edges out of the source": sum(a == u and b != v for a, b in leads),
        "edges into the source": sum(b == u and a != v for a, b in leads),
        "edges out of the target": sum(a == v and b != u for a, b in leads),
        "edges into the target": sum(b == v and a != u for a, b in leads),
    }


def _rows(
    graph: ge.Graph,
    near: dict[int, set[int]],
    counts: dict[tuple[int, int], float],
    node: int,
) -> tuple[NDArray[Any], ...]:
    x = dict(zip(graph.ids.tolist(), map(_unit, graph.x.toarray().astype(float)), strict=True))

    def mean(rows: dict[int, NDArray[Any]], at: int) -> NDArray[Any]:
        shares = {at: 1.0} | {other: counts[at, other] for other in near[at]}
        found: NDArray[Any] = np.average(
            [rows[other] for other in shares], axis=0, weights=list(shares.values())
        )
        return found

    step = {w: mean(x, w) for w in (node, *near[node])}
    two = _unit(mean(step, node))
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


@pytest.mark.parametrize("weighted", [False, True], ids=["", "weighted"])
@pytest.mark.parametrize("directed", [False, True], ids=["", "directed"])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_numbers_are_those_counted_by_hand(seed: int, directed: bool, weighted: bool) -> None:
    graph = few_neighbours(seed)
    if directed or weighted:
        graph = with_edge_values(graph, seed, weighted=weighted, directed=directed)
    rng = np.random.default_rng(seed)
    pairs = np.concatenate([graph.edges[:20], np.sort(rng.choice(graph.ids, (80, 2)), axis=1)])
    pairs = pairs[pairs[:, 0] < pairs[:, 1]]
    pairs = rng.permuted(pairs, axis=1) if directed else pairs
    found, names = numbers_of(graph, pairs, 0), (*NUMBERS, *DIRECTIONS) if directed else NUMBERS
    for (u, v), row in zip(pairs.tolist(), found, strict=True):
        expected = by_hand(graph, u, v)
        for name, value in zip(names, row.tolist(), strict=True):
            assert value == pytest.approx(expected[name], abs=1e-5), (name, u, v)


def test_weights_of_1_count_as_none() -> None:
    graph = link_graph(small_graph(n=60, ties=12))
    ones = np.ones(graph.num_edges)
    weighted = ge.Graph.from_arrays(
        graph.x, graph.edges.T, graph.y, ids=graph.ids, edge_weight=ones, each_edge_once=True
    )
    pairs = graph.edges[::3]
    assert numbers_of(weighted, pairs, 0).tobytes() == numbers_of(graph, pairs, 0).tobytes()


def test_directions_come_on_top_of_what_is_counted_without_them() -> None:
    graph = with_edge_values(hub_graph(), directed=True)
    pairs = graph.edges[::29]
    found, plain = (numbers_of(g, pairs, 0) for g in (graph, graph.undirected()))
    assert found[:, : len(NUMBERS)].tobytes() == plain.tobytes()
    assert np.count_nonzero(found[:, len(NUMBERS) :], axis=0).all()


VALUED = [with_edge_values(hub_graph(), weighted=True, directed=d) for d in (False, True)]


@pytest.mark.parametrize(
    "graph",
    [small_graph(n=60, ties=12), hub_graph(), *VALUED],
    ids=["small", "hubs", "weighted", "directed"],
)
def test_an_edge_is_judged_without_itself(graph: ge.Graph) -> None:
    graph = link_graph(graph)
    for edge in graph.edges[::97].tolist():
        pair = np.array([edge])
        rest = graph.without(ge.Edges([edge]))
        found, without = numbers_of(graph, pair, 0), numbers_of(rest, pair, 0)
        if graph.directed:  # what goes is the edge back as well
            without[:, BACK] = found[:, BACK]
        assert found.tobytes() == without.tobytes()


def test_a_pair_has_the_same_numbers_whatever_is_asked_with_it() -> None:
    graph = link_graph(hub_graph())
    pairs = np.stack([np.arange(0, 100), np.arange(200, 300)], axis=1)
    together = numbers_of(graph, pairs, 0)
    for at in (0, 3, 57):
        assert numbers_of(graph, pairs[at : at + 1], 0).tobytes() == together[at].tobytes()


def test_counts_around_hubs_are_near_the_truth() -> None:
    rng = np.random.default_rng(0)
    graph = link_graph(crowd(rng, n=700))
    assert graph.degree.min() > 4 * MAX_AROUND
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
