"""Which pairs weights are learned from: a function of ids and of the current graph, and local."""

from __future__ import annotations

import numpy as np
import pytest

import grapheraser as ge
from grapheraser.links import link_graph
from grapheraser.links.sample import PairSample
from tests.links.graphs import bipartite_graph
from tests.strategies import small_graph, with_edge_values


def sample_of(graph: ge.Graph, count: int = 10, *, sides: bool = False) -> PairSample:
    return PairSample.of(graph, count, 0, sides=sides)


def edges_of(sample: PairSample) -> set[tuple[int, int]]:
    return {(u, v) for u, v in sample.pairs[sample.labels == 1].tolist()}


def others_of(sample: PairSample) -> set[tuple[int, int]]:
    return {(u, v) for u, v in sample.pairs[sample.labels == 0].tolist()}


def test_edges_are_edges_and_others_are_not() -> None:
    graph = link_graph(small_graph(n=60))
    sample = sample_of(graph)
    edges = {(u, v) for u, v in graph.edges.tolist()}
    assert edges_of(sample) <= edges
    assert not others_of(sample) & edges
    assert len(edges_of(sample)) == 10
    assert all(u < v for u, v in sample.pairs.tolist())
    assert len({*map(tuple, sample.pairs.tolist())}) == len(sample.pairs)


def test_fewer_edges_than_wanted_are_all_taken() -> None:
    graph = link_graph(small_graph(n=20))
    sample = sample_of(graph, 10_000)
    assert edges_of(sample) == {(u, v) for u, v in graph.edges.tolist()}


def test_a_sampled_edge_that_goes_lets_in_one_other_and_moves_none() -> None:
    graph = link_graph(small_graph(n=60))
    before = edges_of(sample_of(graph))
    for edge in sorted(before):
        after = edges_of(sample_of(graph.without(ge.Edges([edge]))))
        assert len(after - before) == 1
        assert before - after == {edge}


def test_an_edge_that_is_not_sampled_changes_no_other_edge() -> None:
    graph = link_graph(small_graph(n=60))
    before = edges_of(sample_of(graph))
    others = [(u, v) for u, v in graph.edges.tolist() if (u, v) not in before][:10]
    for edge in others:
        assert edges_of(sample_of(graph.without(ge.Edges([edge])))) == before


def test_an_edge_that_goes_moves_only_pairs_of_its_ends() -> None:
    graph = link_graph(small_graph(n=60, ties=12))
    before = others_of(sample_of(graph, 60))
    for u, v in graph.edges[::20].tolist():
        after = others_of(sample_of(graph.without(ge.Edges([(u, v)])), 60))
        assert all({u, v} & {*pair} for pair in before ^ after)


def test_a_node_that_goes_moves_few_pairs() -> None:
    """Its own, those of the sources that had found it, and one source that is let in."""
    graph = link_graph(small_graph(n=200))
    before = others_of(sample_of(graph, 30))
    moved = []
    for node in graph.ids[:40].tolist():
        after = others_of(sample_of(graph.without(ge.Nodes([node])), 30))
        own = {pair for pair in before if node in pair}
        assert before - after <= own | {p for p in before if _touches(graph, node, p)}
        moved.append(len(before - after))
    assert np.mean(moved) < 2


def _touches(graph: ge.Graph, node: int, pair: tuple[int, int]) -> bool:
    """Whether an end of the pair has lost an edge."""
    near = {*graph.neighbours(node).tolist()}
    return bool(near & {*pair})


@pytest.mark.parametrize("count", [3, 10, 1000])
def test_a_sample_that_followed_changes_is_a_fresh_one(count: int) -> None:
    graph = link_graph(small_graph(n=60))
    sample = sample_of(graph, count)
    for node in graph.ids[::7].tolist():
        changed = np.union1d(graph.neighbours(node), [node])
        graph = graph.without(ge.Nodes([node]))
        sample = sample.changed(graph, changed, 0, sides=False)
        fresh = sample_of(graph, count)
        assert np.array_equal(sample.pairs, fresh.pairs)
        assert np.array_equal(sample.labels, fresh.labels)


def test_pairs_of_a_bipartite_graph_have_both_sides() -> None:
    graph, second = bipartite_graph()
    sample = sample_of(link_graph(graph, second), 30, sides=True)
    assert len(others_of(sample)) > 5
    assert all(u < second <= v for u, v in sample.pairs.tolist())


def test_pairs_of_a_directed_graph_lead_from_one_node_to_the_other() -> None:
    graph = link_graph(with_edge_values(small_graph(n=60, ties=6), directed=True))
    leads = {(u, v) for u, v in graph.ids[graph.edge_index].T.tolist()}
    sample = sample_of(graph, 10_000)
    assert edges_of(sample) == leads
    others = others_of(sample)
    assert not others & leads
    turned = {(u, v) for u, v in others if (v, u) in leads}
    only_one_way = {(u, v) for u, v in leads if (v, u) not in leads}
    assert 0.1 < len(turned) / len(only_one_way) < 0.5
    assert any(u > v for u, v in others)


@pytest.mark.parametrize("count", [3, 10, 1000])
def test_a_directed_sample_that_followed_changes_is_a_fresh_one(count: int) -> None:
    graph = link_graph(with_edge_values(small_graph(n=60), directed=True))
    sample = sample_of(graph, count)
    for node in graph.ids[::7].tolist():
        changed = np.union1d(graph.neighbours(node), [node])
        graph = graph.without(ge.Nodes([node]))
        sample = sample.changed(graph, changed, 0, sides=False)
        fresh = sample_of(graph, count)
        assert np.array_equal(sample.pairs, fresh.pairs)
        assert np.array_equal(sample.labels, fresh.labels)


def test_another_seed_takes_other_pairs() -> None:
    graph = link_graph(small_graph(n=60))
    other = PairSample.of(graph, 10, 1, sides=False)
    assert edges_of(other) != edges_of(sample_of(graph))
    assert others_of(other) != others_of(sample_of(graph))
