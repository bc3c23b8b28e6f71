"""Rings: who counts within one step. Stale: the rows that see a change, no more and no fewer."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import grapheraser as ge
from grapheraser.aggregation import Change
from grapheraser.aggregation.members.base import Places
from grapheraser.aggregation.members.walks import (
    Reach,
    Ring,
    Walk,
    ring_around,
    rings_and_steps,
    stale_nodes,
)
from grapheraser.kernels.neighbourhoods import ANY, LABELLED, TRAINED
from grapheraser.kernels.paged import nodes_at
from tests.aggregation.members.oracle import GRAPHS, as_test_nodes, chosen, ensemble_of, known

KEY = 7
Steps = dict[int, tuple[object, ...]]


def allowed(graph: ge.Graph, kind: int) -> list[int]:
    if kind == ANY:
        return graph.ids.tolist()
    return list(known(graph)) if kind == LABELLED else graph.train_nodes.tolist()


def steps_of(graph: ge.Graph, reach: Reach, *, features: bool) -> Steps:
    """What the second step of each node is made of."""
    x = graph.x.toarray()
    row = dict(zip(graph.ids.tolist(), x, strict=True))
    counted, y = allowed(graph, reach.kind), known(graph)
    found: Steps = {}
    for node in graph.ids.tolist():
        near = chosen(graph, node, counted, reach.most, KEY)
        part = [row[v].tobytes() for v in (node, *near)] if features else [y[v] for v in near]
        found[node] = (tuple(near), *part)
    return found


@pytest.mark.parametrize("kind", ["sparse", "hub", "many edges", "far ids"])
@pytest.mark.parametrize("features", [True, False])
def test_stale_are_the_nodes_that_see_one_that_moved(kind: str, features: bool) -> None:
    graph = GRAPHS[kind]
    graph = graph.without(ge.Nodes(graph.ids[:1]))
    first, second = (TRAINED, TRAINED) if features else (ANY, LABELLED)
    walk = Walk(Reach(first, 4), Reach(second, 3), np.uint64(KEY), features)
    before = steps_of(graph, walk.second, features=features)
    ensemble = ensemble_of(graph)
    for gone in graph.ids[3::29].tolist():
        after = graph.without(ge.Nodes([gone]))
        touched = graph.neighbours(gone)
        change = Change(ensemble, frozenset(), touched, np.array([gone]))
        nodes, moved = (part.tolist() for part in stale_nodes(change, after, walk))
        now = steps_of(after, walk.second, features=features)
        assert moved == [node for node in now if now[node] != before[node]]
        counted = allowed(after, walk.first.kind)
        sees = {
            node
            for node in after.ids.tolist()
            if set(chosen(after, node, counted, walk.first.most, KEY)) & set(moved)
        }
        assert nodes == sorted(sees | set(touched.tolist()))
        among = after.ids[::2]
        some = stale_nodes(change, after, walk, among).nodes.tolist()
        assert some == [node for node in nodes if node in set(among.tolist())]


@pytest.mark.parametrize("features", [True, False])
def test_a_node_with_another_role_moves_those_around_it(features: bool) -> None:
    graph = GRAPHS["many edges"]
    node = list(known(graph))[4]
    after = as_test_nodes(graph, [node])
    walk = Walk(Reach(TRAINED, 50), Reach(TRAINED, 50), np.uint64(KEY), features)
    change = Change(ensemble_of(graph), frozenset(), np.array([node]), np.zeros(0, dtype=np.int64))
    found = stale_nodes(change, after, walk)
    near = set(graph.neighbours(node).tolist())
    assert near <= set(found.moved.tolist())
    trained = set(after.train_nodes.tolist())
    far = {v for u in near & trained for v in graph.neighbours(u).tolist()}
    assert far <= set(found.nodes.tolist())


RING_KEY, REACH = 5, Reach(LABELLED, 3)


def rows_of(graph: ge.Graph, ring: Ring, steps: list[object]) -> list[list[object]]:
    """The steps of each node of a ring."""
    ends = ring.indptr.tolist()
    entries = [steps[entry] for entry in ring.entries.tolist()]
    return [entries[a:b] for a, b in itertools.pairwise(ends)]


def expected(graph: ge.Graph) -> list[list[int]]:
    nodes = graph.ids.tolist()
    return [[node, *chosen(graph, node, known(graph), REACH.most, RING_KEY)] for node in nodes]


@pytest.mark.parametrize("kind", GRAPHS)
def test_a_ring_is_a_node_and_its_chosen_neighbours(kind: str) -> None:
    graph = GRAPHS[kind]
    ring = ring_around(graph, graph.places(graph.ids), REACH, np.uint64(RING_KEY))
    ids = nodes_at(graph.table, ring.places).tolist()
    assert len(set(ids)) == len(ids)
    assert rows_of(graph, ring, ids) == expected(graph)


@pytest.mark.parametrize("kind", ["sparse", "hub", "many edges", "far ids"])
def test_two_graphs_share_the_steps_of_nodes_that_have_not_moved(kind: str) -> None:
    graph = GRAPHS[kind]
    gone = list(known(graph))[2]
    after = graph.without(ge.Nodes([gone]))
    change = Change(ensemble_of(graph), frozenset(), graph.neighbours(gone), np.array([gone]))
    walk = Walk(REACH, Reach(ANY, 4), np.uint64(RING_KEY), features=False)
    moved = stale_nodes(change, after, walk).moved
    asked: list[tuple[bool, int]] = []

    def steps(part: ge.Graph, places: Places) -> np.ndarray[tuple[int, ...], np.dtype[np.object_]]:
        nodes = nodes_at(part.table, places).tolist()
        asked.extend((part is after, node) for node in nodes)
        found = np.empty(len(nodes), dtype=object)
        found[:] = [(node, tuple(part.neighbours(node).tolist())) for node in nodes]
        return found

    parts = (graph, graph.places(graph.ids)), (after, after.places(after.ids))
    was, now, found = rings_and_steps(*parts, moved, REACH, np.uint64(RING_KEY), steps)
    for part, ring in ((graph, was), (after, now)):
        rows = rows_of(part, ring, [node for node, _ in found])
        assert rows == expected(part)
    assert {node for late, node in asked if not late} == {gone, *moved.tolist()}
    assert len(asked) == len(set(asked))
