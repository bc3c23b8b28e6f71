"""Thinned neighbourhoods: bounded, and changed by nothing that does not count."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import grapheraser as ge
from grapheraser import graph as graphs
from grapheraser.aggregation.sample.view import FANOUT, most_seen, moved, seen_ids, sees, thinning
from grapheraser.eraser.plan import plan_removal
from grapheraser.errors import GraphEraserError
from grapheraser.inference.gather import NO_FEATURES, gather_field
from tests.inference.oracle import counted
from tests.strategies import requests_for, small_graph


def seen(graph: ge.Graph, node: int, seed: int) -> tuple[object, ...]:
    """All that a two-layer model sees of a node in a thinned neighbourhood, by ids."""

    def around(position: int, steps: int) -> tuple[object, ...]:
        row = counted(graph, position, *thinning(seed))
        x = graph.x[[position]]
        own = (int(graph.ids[position]), len(row), tuple(x.indices.tolist()), x.data.tobytes())
        return own if steps == 0 else (own, *(around(p, steps - 1) for p in row))

    return around(int(graph.positions([node])[0]), 2)


def ids_seen(graph: ge.Graph, nodes: NDArray[np.int64], seed: int) -> NDArray[np.int64]:
    at = graph.positions(nodes)
    return seen_ids(gather_field(graph, at, thinning(seed), features=NO_FEATURES), 2)


def test_a_node_sees_no_more_than_allowed_and_all_of_it_is_real() -> None:
    graph = small_graph(n=60, ties=4)
    found = ids_seen(graph, graph.ids, 0)
    assert found.shape == (graph.num_nodes, most_seen(2))
    assert graph.degree.max() > FANOUT
    for position, row in enumerate(found):
        near = counted(graph, position, *thinning(0))
        far = [other for p in near for other in counted(graph, p, *thinning(0))]
        expected = {position, *near, *far}
        assert set(row.tolist()) == set(graph.ids[sorted(expected)].tolist())
        assert row[0] == graph.ids[position]


@given(data=st.data())
def test_a_node_that_is_not_stale_sees_what_it_saw(data: st.DataObject) -> None:
    graph = small_graph(data.draw(st.integers(0, 99)), n=40, ties=data.draw(st.integers(1, 6)))
    request = data.draw(requests_for(graph))
    after = graph.without(request)
    nodes = after.ids[:: data.draw(st.integers(1, 3))]
    if len(after.train_nodes) == 0 or len(nodes) == 0:
        return
    cut = ge.partition_graph(graph, "hash", num_shards=1)
    try:
        touched = plan_removal(graph, cut, graphs.coalesce(graph, request)).touched
    except GraphEraserError:
        return
    stale = sees(ids_seen(graph, nodes, 5), moved(graph, after, touched, 5))
    for node, changed in zip(nodes.tolist(), stale, strict=True):
        if not changed:
            assert seen(after, node, 5) == seen(graph, node, 5)


def test_a_neighbour_that_does_not_count_may_go_unnoticed() -> None:
    graph = small_graph(n=200, ties=8)
    cut = ge.partition_graph(graph, "hash", num_shards=1)
    removal = graphs.coalesce(graph, ge.Nodes(graph.train_nodes[:6]))
    touched, after = plan_removal(graph, cut, removal).touched, graph.without(removal)
    different = set(moved(graph, after, touched, 5).tolist())
    for node in touched.tolist():
        before, now = (
            [g.ids[p] for p in counted(g, int(g.positions([node])[0]), *thinning(5))]
            for g in (graph, after)
        )
        assert (node in different) == (before != now)
    assert 0 < len(different) < len(touched) / 2
