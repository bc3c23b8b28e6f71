"""Thinned neighbourhoods: bounded, and changed by nothing that does not count."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import grapheraser as ge
from grapheraser import graph as graphs
from grapheraser.aggregation.sample.view import FANOUT, stale_nodes, thinned
from grapheraser.eraser.plan import plan_removal
from grapheraser.errors import GraphEraserError
from tests.strategies import requests_for, small_graph


def seen(graph: ge.Graph, node: int) -> tuple[object, ...]:
    """All that a two-layer model sees of a node in a thinned graph, by ids."""

    def around(position: int, steps: int) -> tuple[object, ...]:
        row = graph.indices[graph.indptr[position] : graph.indptr[position + 1]]
        x = graph.x[[position]]
        own = (int(graph.ids[position]), len(row), tuple(x.indices.tolist()), x.data.tobytes())
        return own if steps == 0 else (own, *(around(int(p), steps - 1) for p in row))

    return around(int(graph.positions([node])[0]), 2)


def test_no_node_has_more_neighbours_than_allowed_and_all_are_real() -> None:
    graph = small_graph(n=60)
    every = np.arange(graph.num_nodes)
    view = thinned(graph, every, 0)
    assert view.degree.max() == FANOUT < graph.degree.max()
    for position in every:
        row = view.indices[view.indptr[position] : view.indptr[position + 1]]
        neighbours = graph.indices[graph.indptr[position] : graph.indptr[position + 1]]
        assert np.isin(row, neighbours).all()
        assert len(row) == min(len(neighbours), FANOUT)


@given(data=st.data())
def test_a_node_that_is_not_stale_sees_what_it_saw(data: st.DataObject) -> None:
    graph = small_graph(data.draw(st.integers(0, 99)), n=40)
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
    view = thinned(after, after.positions(nodes), 5)
    before = thinned(graph, graph.positions(nodes), 5)
    stale = stale_nodes(graph, after, view, nodes, touched, 5)
    for node, changed in zip(nodes.tolist(), stale, strict=True):
        if not changed:
            assert seen(view, node) == seen(before, node)
