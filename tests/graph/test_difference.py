"""Which feature rows differ between two graphs, against a comparison of dense rows."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import grapheraser as ge
from grapheraser.graph import changed_feature_rows
from tests.graph.oracle import plain
from tests.strategies import small_graph

IDS = range(9)


@st.composite
def _graphs(draw: st.DrawFn) -> ge.Graph:
    """A few nodes of a small universe, with so few columns and values that rows often agree."""
    ids = draw(st.lists(st.sampled_from(IDS), unique=True, max_size=9))
    value = st.sampled_from([0.0, 1.0, 2.0])
    rows = [draw(st.lists(value, min_size=3, max_size=3)) for _ in ids]
    x = np.array(rows, dtype=np.float32).reshape(len(ids), 3)
    return ge.Graph.from_arrays(x, np.zeros((2, 0), dtype=int), [0] * len(ids), ids=ids)


@settings(max_examples=300)
@given(before=_graphs(), after=_graphs(), nodes=st.lists(st.sampled_from(IDS), max_size=12))
def test_a_row_is_changed_where_its_dense_form_is(
    before: ge.Graph, after: ge.Graph, nodes: list[int]
) -> None:
    old, new = plain(before).nodes, plain(after).nodes
    expected = [v not in old or v not in new or old[v][0] != new[v][0] for v in nodes]
    assert changed_feature_rows(before, after, nodes).tolist() == expected


def test_a_changed_value_or_column_shows_though_the_row_keeps_its_length() -> None:
    x = np.array([[1, 0, 2], [1, 0, 2], [1, 0, 2], [0, 0, 0]], dtype=np.float32)
    other = np.array([[1, 0, 2], [1, 0, 3], [1, 2, 0], [0, 0, 0]], dtype=np.float32)
    before = ge.Graph.from_arrays(x, [[0], [1]], [0, 0, 0, 0])
    after = ge.Graph.from_arrays(other, [[0], [1]], [0, 0, 0, 0])
    found = changed_feature_rows(before, after, [3, 2, 1, 0, 1])
    assert found.tolist() == [False, True, True, False, True]


def test_removed_features_and_nodes_are_changes_and_removed_edges_are_none() -> None:
    graph = small_graph()
    filled = graph.ids[np.diff(graph.x.indptr) > 0]
    (u, v) = graph.edges[0].tolist()
    lost, gone = (int(node) for node in np.setdiff1d(filled, [u, v])[:2])
    rest = graph.without([ge.Features([lost]), ge.Nodes([gone]), ge.Edges([(u, v)])])
    changed = graph.ids[changed_feature_rows(graph, rest, graph.ids)]
    assert changed.tolist() == sorted([lost, gone])


@pytest.mark.parametrize("nodes", [[], np.zeros(0, dtype=np.int64)])
def test_no_nodes_have_no_changes(nodes: list[int]) -> None:
    graph = small_graph()
    assert changed_feature_rows(graph, graph, nodes).shape == (0,)
