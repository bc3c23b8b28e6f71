"""Weights, features and directions of edges: kept with their edge, and gone with it."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import grapheraser as ge
from grapheraser.errors import GraphError
from grapheraser.graph.edge_values import PLAIN
from grapheraser.graph.proof.merkle import MerkleTree
from tests.strategies import graphs_with_edge_values, requests_for, small_graph, with_edge_values

Edges = dict[tuple[int, int], tuple[float, ...]]


def edges_of(graph: ge.Graph) -> Edges:
    """What each edge carries, by the ids of its source and its target, in each direction."""
    parts: list[Any] = [np.zeros((graph.edge_index.shape[1], 0))]
    if graph.edge_weight is not None:
        parts.append(graph.edge_weight[:, None])
    if graph.edge_attr is not None:
        parts.append(graph.edge_attr)
    rows = np.concatenate(parts, axis=1).tolist()
    ends = graph.ids[graph.edge_index].T.tolist()
    assert sorted(ends) == ends, "PyG's order"
    found = {(u, v): tuple(row) for (u, v), row in zip(ends, rows, strict=True)}
    assert len(found) == len(ends), "each edge once"
    return found


def without(edges: Edges, pairs: set[frozenset[int]], nodes: set[int]) -> Edges:
    return {
        pair: values
        for pair, values in edges.items()
        if frozenset(pair) not in pairs and not nodes & set(pair)
    }


def is_sound(graph: ge.Graph) -> bool:
    """Whether the tree that changes have led to is that of the content."""
    return MerkleTree.of(graph.pages).root == graph.tree.root


@given(st.data())
def test_a_request_takes_what_its_edges_carry_and_nothing_else(data: st.DataObject) -> None:
    graph = data.draw(graphs_with_edge_values())
    assert graph.fingerprint
    request = data.draw(requests_for(graph))
    rest, edges = graph.without(request), edges_of(graph)
    pairs = {frozenset(p) for p in request.pairs} if isinstance(request, ge.Edges) else set()
    nodes = set(request.ids) if isinstance(request, ge.Nodes) else set()
    assert edges_of(rest) == without(edges, pairs, nodes)
    assert edges_of(graph) == edges, "the graph before is untouched"
    assert rest.edge_kind == graph.edge_kind
    assert is_sound(rest)


@given(st.data())
def test_a_new_node_brings_what_its_edges_carry(data: st.DataObject) -> None:
    graph = data.draw(graphs_with_edge_values())
    assert graph.fingerprint
    others = data.draw(st.lists(st.sampled_from(graph.ids.tolist()), max_size=4, unique=True))
    kind, rng = graph.edge_kind, np.random.default_rng(0)
    weights = rng.random(len(others), dtype=np.float32) if kind.weighted else None
    rows = rng.random((len(others), kind.columns), dtype=np.float32) if kind.columns else None
    grown = graph.with_node(1000, graph.x[[0]], 1, others, edge_weight=weights, edge_attr=rows)
    expected = edges_of(graph)
    for i, other in enumerate(others):
        values = () if weights is None else (float(weights[i]),)
        values += () if rows is None else tuple(rows[i].tolist())
        expected |= {(other, 1000): values, (1000, other): values}
    assert edges_of(grown) == dict(sorted(expected.items()))
    assert is_sound(grown)
    assert grown.without(ge.Nodes([1000])) == graph


@given(st.data())
def test_a_part_of_a_graph_has_what_the_edges_between_its_nodes_carry(data: st.DataObject) -> None:
    graph = data.draw(graphs_with_edge_values())
    nodes = data.draw(st.lists(st.sampled_from(graph.ids.tolist()), unique=True))
    edges = edges_of(graph)
    inside = {pair: values for pair, values in edges.items() if set(pair) <= set(nodes)}
    assert edges_of(graph.subgraph(nodes)) == inside


@pytest.mark.gnn
@given(graphs_with_edge_values(), st.integers(0, 5))
def test_copies_and_splits_keep_what_edges_carry(graph: ge.Graph, seed: int) -> None:
    edges = edges_of(graph)
    assert edges_of(pickle.loads(pickle.dumps(graph.without(ge.Nodes(graph.ids[:1]))))) == without(
        edges, set(), {int(graph.ids[0])}
    )
    assert edges_of(graph.with_split(seed=seed)) == edges
    back = ge.Graph.from_pyg(graph.to_pyg(), num_classes=graph.num_classes, directed=graph.directed)
    assert back == graph
    assert back.notes == ()


@given(graphs_with_edge_values(), st.randoms(use_true_random=False))
def test_the_fingerprint_is_that_of_the_content_whatever_the_order(
    graph: ge.Graph, random: Any
) -> None:
    items = list(edges_of(graph).items())
    random.shuffle(items)
    weighted, columns = graph.edge_kind.weighted, graph.edge_kind.columns
    values = np.array([row for _, row in items]).reshape(len(items), -1)
    again = ge.Graph.from_arrays(
        graph.x,
        np.array([pair for pair, _ in items]).reshape(-1, 2).T,
        graph.y,
        ids=graph.ids,
        train=graph.train_nodes,
        test=graph.test_nodes,
        num_classes=graph.num_classes,
        edge_weight=values[:, 0] if weighted else None,
        edge_attr=values[:, int(weighted) :] if columns else None,
        directed=graph.directed,
    )
    assert again == graph


@pytest.mark.gnn
@given(graphs_with_edge_values())
def test_a_changed_value_or_direction_is_another_graph(graph: ge.Graph) -> None:
    different = {graph, graph.undirected(), graph.without_weights(), graph.without_edge_attr()}
    kinds = {other.edge_kind for other in different}
    assert len(different) == len(kinds)
    if graph.edge_kind.weighted and graph.num_edges:
        data = graph.to_pyg()
        data.edge_weight[:] += 1
        shape: Any = {"num_classes": graph.num_classes, "directed": graph.directed}
        assert ge.Graph.from_pyg(data, **shape) != graph


@given(graphs_with_edge_values())
def test_taking_everything_off_leaves_a_plain_graph(graph: ge.Graph) -> None:
    plain = graph.undirected().without_weights().without_edge_attr()
    assert plain.edge_kind == PLAIN
    assert plain.edge_weight is None
    assert plain.edge_attr is None
    np.testing.assert_array_equal(plain.edges, graph.edges)
    assert plain.without(ge.Nodes(plain.ids[:1])).fingerprint


def built(edges: Any, **carried: Any) -> ge.Graph:
    n = 1 + max(np.max(edges, initial=0), 2)
    return ge.Graph.from_arrays(np.eye(n), np.array(edges).T, np.zeros(n, dtype=int), **carried)


def test_directions_that_there_were_both_of_get_the_mean() -> None:
    edges = [(0, 1), (1, 0), (1, 2)]
    graph = built(edges, edge_weight=[1.0, 4.0, 3.0], directed=True)
    assert edges_of(graph) == {(0, 1): (1.0,), (1, 0): (4.0,), (1, 2): (3.0,)}
    assert edges_of(graph.undirected()) == {
        (0, 1): (2.5,),
        (1, 0): (2.5,),
        (1, 2): (3.0,),
        (2, 1): (3.0,),
    }


def test_an_undirected_edge_with_two_weights_gets_the_mean_and_a_warning() -> None:
    edges = [(0, 1), (1, 0), (1, 2), (2, 1)]
    with pytest.warns(UserWarning, match="two directions of 1 edges .* both got the mean"):
        graph = built(edges, edge_weight=[1.0, 4.0, 3.0, 3.0])
    assert edges_of(graph)[0, 1] == edges_of(graph)[1, 0] == (2.5,)


def test_duplicate_edges_get_the_mean_and_a_warning() -> None:
    edges, rows = [(0, 1), (0, 1), (1, 0)], [[1.0, 0.0], [3.0, 0.0], [6.0, 9.0]]
    with pytest.warns(UserWarning, match="1 duplicate edges merged"):
        graph = built(edges, edge_attr=rows, directed=True)
    assert edges_of(graph) == {(0, 1): (2.0, 0.0), (1, 0): (6.0, 9.0)}


def test_edges_that_are_made_symmetric_and_self_loops_with_weights_are_warned_of() -> None:
    with pytest.warns(UserWarning, match="the reverse of 1 edges was added"):
        built([(0, 1)], edge_weight=[2.0])
    with pytest.warns(UserWarning, match="1 self-loops dropped with what they carry"):
        built([(0, 0), (0, 1)], edge_weight=[2.0, 1.0], each_edge_once=True)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e39])
def test_weights_and_features_are_finite(bad: float) -> None:
    with pytest.raises(GraphError, match=r"edge_weight must be finite \(found .* at edge 1"):
        built([(0, 1), (1, 2)], edge_weight=[1.0, bad])
    with pytest.raises(GraphError, match="edge_attr must be finite"):
        built([(0, 1), (1, 2)], edge_attr=[[1.0, 2.0], [0.0, bad]])


@pytest.mark.parametrize(
    ("carried", "message"),
    [
        ({"edge_weight": [1.0]}, r"one number per edge: 2 \(found shape \[1\]\)"),
        ({"edge_weight": np.ones((2, 2))}, r"one number per edge: 2 \(found shape \[2, 2\]\)"),
        ({"edge_weight": ["a", "b"]}, "edge_weight must be made of numbers"),
        ({"edge_attr": np.ones((3, 2))}, r"one row per edge: 2 \(found shape \[3, 2\]\)"),
        ({"edge_attr": np.ones((2, 2, 2))}, "one row per edge"),
        ({"edge_attr": np.ones((2, 0))}, "one row per edge"),
    ],
)
def test_wrong_shapes_are_refused(carried: dict[str, Any], message: str) -> None:
    with pytest.raises(GraphError, match=message):
        built([(0, 1), (1, 2)], **carried)


def test_negative_weights_are_kept() -> None:
    assert edges_of(built([(0, 1)], edge_weight=[-2.0], each_edge_once=True))[1, 0] == (-2.0,)


def test_new_edges_carry_what_the_others_do() -> None:
    plain = small_graph()
    weighted = with_edge_values(plain, columns=2)
    row, near = plain.x[[0]], plain.ids[:2]
    with pytest.raises(GraphError, match="have 'edge_weight': each of the 2 new edges needs"):
        weighted.with_node(1000, row, 1, near)
    with pytest.raises(GraphError, match="have no 'edge_weight'"):
        plain.with_node(1000, row, 1, near, edge_weight=[1.0, 2.0])
    with pytest.raises(GraphError, match=r"must have 2 columns \(found 1\)"):
        weighted.with_node(1000, row, 1, near, edge_weight=[1, 2], edge_attr=[[1], [2]])
    with pytest.raises(GraphError, match="edge_weight must be finite"):
        weighted.with_node(1000, row, 1, near, edge_weight=[1, np.nan], edge_attr=np.ones((2, 2)))
    assert weighted.with_node(1000, row, 1, []).num_edges == weighted.num_edges
    with pytest.warns(UserWarning, match="1 duplicate edges merged"):
        grown = weighted.with_node(
            1000, row, 1, [near[0], near[0]], edge_weight=[1, 2], edge_attr=np.ones((2, 2))
        )
    assert edges_of(grown)[1000, int(near[0])] == (1.5, 1.0, 1.0)


@given(graphs_with_edge_values())
def test_a_graph_says_what_its_edges_are(graph: ge.Graph) -> None:
    assert ("directed" in repr(graph)) == graph.directed
    assert ("weighted" in repr(graph)) == graph.edge_kind.weighted
    assert ("edge features" in repr(graph)) == (graph.edge_kind.columns > 0)
