"""What is gathered is what the graph holds, and no more than was asked for."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grapheraser.inference.gather import (
    ALL_FEATURES,
    NO_FEATURES,
    OWN_FEATURES,
    WHOLE,
    Bound,
    gather_field,
    part_of,
)
from tests.inference.oracle import counted
from tests.strategies import graphs_with_edge_values, small_graphs


@settings(max_examples=40)
@given(data=st.data(), most=st.sampled_from([1, 2, 5, 10**6]), hops=st.integers(0, 2))
def test_rings_hold_the_neighbours_that_count(data: st.DataObject, most: int, hops: int) -> None:
    graph = data.draw(small_graphs())
    wanted = data.draw(st.lists(st.integers(0, graph.num_nodes - 1), max_size=6))
    found = gather_field(graph, np.array(wanted, dtype=np.int64), Bound(most, 7), hops=hops)
    rows = graph.positions(found.nodes)
    assert found.wanted == len(wanted)
    assert rows[: len(wanted)].tolist() == wanted
    reached, rings = set(wanted), set(wanted)
    for _ in range(hops):
        rings = {other for p in rings for other in counted(graph, p, most, 7)}
        reached |= rings
    assert set(rows.tolist()) == reached
    assert len(rows) == len(reached) + len(wanted) - len(set(wanted))
    for r in range(len(found.indptr) - 1):
        row = rows[found.indices[found.indptr[r] : found.indptr[r + 1]]]
        assert row.tolist() == counted(graph, int(rows[r]), most, 7)
    np.testing.assert_array_equal(found.degree, np.minimum(graph.degree[rows], most))


@pytest.mark.parametrize("features", [NO_FEATURES, OWN_FEATURES, ALL_FEATURES])
@given(data=st.data())
def test_features_are_those_of_the_graph(features: int, data: st.DataObject) -> None:
    graph = data.draw(small_graphs())
    wanted = np.array(data.draw(st.lists(st.integers(0, graph.num_nodes - 1), max_size=4)), int)
    found = gather_field(graph, wanted, features=features)
    rows = graph.positions(found.nodes[: (0, len(wanted), len(found.nodes))[features]])
    expected = graph.x[rows]
    np.testing.assert_array_equal(found.x_indptr, expected.indptr)
    np.testing.assert_array_equal(found.x_indices, expected.indices)
    np.testing.assert_array_equal(found.x_data, expected.data)
    assert found.num_features == graph.num_features


@given(data=st.data(), bound=st.sampled_from([WHOLE, Bound(2, 3)]))
def test_a_part_is_what_gathering_it_alone_gives(data: st.DataObject, bound: Bound) -> None:
    graph = data.draw(small_graphs())
    every = gather_field(graph, np.arange(graph.num_nodes), bound)
    some = data.draw(st.lists(st.integers(0, graph.num_nodes - 1), max_size=5, unique=True))
    room = np.full(len(every.nodes), -1, dtype=np.int32)
    part = part_of(every, np.array(some, dtype=np.int32), room, 2)
    alone = gather_field(graph, np.array(some, dtype=np.int64), bound)
    np.testing.assert_array_equal(every.nodes[part.numbers], alone.nodes)
    np.testing.assert_array_equal(part.indptr, alone.indptr)
    np.testing.assert_array_equal(part.indices, alone.indices)
    np.testing.assert_array_equal(part.degree, alone.degree)
    assert (room == -1).all()


@settings(max_examples=40)
@given(data=st.data(), most=st.sampled_from([1, 2, 10**6]), hops=st.integers(0, 2))
def test_weights_are_those_that_come_in_along_the_edges_that_count(
    data: st.DataObject, most: int, hops: int
) -> None:
    graph = data.draw(graphs_with_edge_values())
    wanted = data.draw(st.lists(st.integers(0, graph.num_nodes - 1), max_size=6))
    found = gather_field(graph, np.array(wanted, dtype=np.int64), Bound(most, 7), hops=hops)
    weights = graph.edge_weight
    pairs = graph.edge_index.T.tolist()
    incoming = {
        (target, source): 1.0 if weights is None else float(weights[i])
        for i, (source, target) in enumerate(pairs)
    }
    rows = graph.positions(found.nodes).tolist()
    if graph.edge_kind.weighted or graph.directed:
        for r in range(len(found.indptr) - 1):
            part = slice(found.indptr[r], found.indptr[r + 1])
            expected = [incoming.get((rows[r], rows[i]), 0.0) for i in found.indices[part]]
            np.testing.assert_array_equal(found.weights[part], expected)
    else:
        assert len(found.weights) == 0
    sums = [
        sum(incoming.get((row, other), 0.0) for other in counted(graph, row, most, 7))
        for row in rows
    ]
    np.testing.assert_allclose(found.degree, sums, rtol=1e-6)


@given(data=st.data(), bound=st.sampled_from([WHOLE, Bound(2, 3)]))
def test_a_part_has_the_weights_that_gathering_it_alone_gives(
    data: st.DataObject, bound: Bound
) -> None:
    graph = data.draw(graphs_with_edge_values())
    every = gather_field(graph, np.arange(graph.num_nodes), bound)
    some = data.draw(st.lists(st.integers(0, graph.num_nodes - 1), max_size=5, unique=True))
    room = np.full(len(every.nodes), -1, dtype=np.int32)
    part = part_of(every, np.array(some, dtype=np.int32), room, 2)
    alone = gather_field(graph, np.array(some, dtype=np.int64), bound)
    assert part.weights.tobytes() == alone.weights.tobytes()
    assert part.degree.tobytes() == alone.degree.tobytes()
