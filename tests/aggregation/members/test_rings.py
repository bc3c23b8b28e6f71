"""Rings: who counts within one step, each once, and whose steps two graphs share."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import grapheraser as ge
from grapheraser.aggregation import Change
from grapheraser.aggregation.members.base import Places
from grapheraser.aggregation.members.rings import Ring, ring_around, rings_and_steps
from grapheraser.aggregation.members.stale import Reach, Walk, stale_nodes
from grapheraser.kernels.neighbourhoods import ANY, LABELLED
from grapheraser.kernels.paged import nodes_at
from tests.aggregation.members.oracle import GRAPHS, chosen, ensemble_of, known

KEY, REACH = 5, Reach(LABELLED, 3)


def rows_of(graph: ge.Graph, ring: Ring, steps: list[object]) -> list[list[object]]:
    """The steps of each node of a ring."""
    ends = ring.indptr.tolist()
    entries = [steps[entry] for entry in ring.entries.tolist()]
    return [entries[a:b] for a, b in itertools.pairwise(ends)]


def expected(graph: ge.Graph) -> list[list[int]]:
    nodes = graph.ids.tolist()
    return [[node, *chosen(graph, node, known(graph), REACH.most, KEY)] for node in nodes]


@pytest.mark.parametrize("kind", GRAPHS)
def test_a_ring_is_a_node_and_its_chosen_neighbours(kind: str) -> None:
    graph = GRAPHS[kind]
    ring = ring_around(graph, graph.places(graph.ids), REACH, np.uint64(KEY))
    ids = nodes_at(graph.table, ring.places).tolist()
    assert len(set(ids)) == len(ids)
    assert rows_of(graph, ring, ids) == expected(graph)


@pytest.mark.parametrize("kind", ["sparse", "hub", "many edges", "far ids"])
def test_two_graphs_share_the_steps_of_nodes_that_have_not_moved(kind: str) -> None:
    graph = GRAPHS[kind]
    gone = list(known(graph))[2]
    after = graph.without(ge.Nodes([gone]))
    change = Change(ensemble_of(graph), frozenset(), graph.neighbours(gone), np.array([gone]))
    walk = Walk(REACH, Reach(ANY, 4), np.uint64(KEY), features=False)
    moved = stale_nodes(change, after, walk).moved
    asked: list[tuple[bool, int]] = []

    def steps(part: ge.Graph, places: Places) -> np.ndarray[tuple[int, ...], np.dtype[np.object_]]:
        nodes = nodes_at(part.table, places).tolist()
        asked.extend((part is after, node) for node in nodes)
        found = np.empty(len(nodes), dtype=object)
        found[:] = [(node, tuple(part.neighbours(node).tolist())) for node in nodes]
        return found

    parts = (graph, graph.places(graph.ids)), (after, after.places(after.ids))
    was, now, found = rings_and_steps(*parts, moved, REACH, np.uint64(KEY), steps)
    for part, ring in ((graph, was), (after, now)):
        rows = rows_of(part, ring, [node for node, _ in found])
        assert rows == expected(part)
    assert {node for late, node in asked if not late} == {gone, *moved.tolist()}
    assert len(asked) == len(set(asked))
