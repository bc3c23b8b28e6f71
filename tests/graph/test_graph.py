"""Deletion, subgraphs, insertion and fingerprints against plain dictionaries and networkx."""

from __future__ import annotations

import dataclasses
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import grapheraser as ge
from grapheraser.errors import (
    GraphError,
    NothingToForgetError,
    ParameterError,
    UnknownEdgeError,
    UnknownNodeError,
)
from grapheraser.graph import TRAIN, Request
from tests.graph.oracle import Plain, plain, rebuilt
from tests.strategies import batches_for, requests_for, small_graphs


@given(st.data())
def test_without_equals_the_plain_oracle(data: st.DataObject) -> None:
    graph = data.draw(small_graphs())
    batch = data.draw(st.lists(requests_for(graph), min_size=1, max_size=4))
    assert plain(graph.without(batch)) == plain(graph).without(batch)


@given(st.data())
def test_without_leaves_the_graph_as_it_was(data: st.DataObject) -> None:
    graph = data.draw(small_graphs())
    before = plain(graph)
    graph.without(data.draw(requests_for(graph)))
    assert plain(graph) == before


@given(st.data())
def test_the_order_of_deletions_does_not_matter(data: st.DataObject) -> None:
    graph = data.draw(small_graphs())
    batch = data.draw(batches_for(graph))
    one_by_one = graph
    for request in data.draw(st.permutations(batch)):
        one_by_one = one_by_one.without(request)
    assert one_by_one == graph.without(batch)


@given(st.data())
def test_subgraph_equals_the_plain_oracle(data: st.DataObject) -> None:
    graph = data.draw(small_graphs())
    nodes = data.draw(st.lists(st.sampled_from(graph.ids.tolist()), unique=True))
    assert plain(graph.subgraph(nodes)) == plain(graph).subgraph(set(nodes))


@given(small_graphs())
def test_the_training_graph_has_no_test_node_and_no_edge_to_one(graph: ge.Graph) -> None:
    roles = {node: role for node, (_, _, role) in plain(graph).nodes.items()}
    expected = plain(graph).subgraph({node for node, role in roles.items() if role in (0, TRAIN)})
    for node, (features, label, role) in expected.nodes.items():
        expected.nodes[node] = features, label if role == TRAIN else -1, role
    assert plain(graph.training_graph) == expected


@given(st.data())
def test_with_node_equals_the_plain_oracle(data: st.DataObject) -> None:
    graph = data.draw(small_graphs())
    node = data.draw(st.integers(0, 200).filter(lambda n: not graph.contains([n])[0]))
    row = data.draw(
        st.lists(st.integers(0, 3), min_size=graph.num_features, max_size=graph.num_features).map(
            tuple
        )
    )
    others = data.draw(st.lists(st.sampled_from(graph.ids.tolist())))
    before = plain(graph)
    expected = Plain(
        {**before.nodes, node: (row, 1, TRAIN)},
        before.edges | {frozenset((node, other)) for other in others},
    )
    assert plain(graph.with_node(node, row, 1, others)) == expected
    assert plain(graph) == before


@given(st.data())
def test_deleting_what_was_inserted_gives_the_graph_back(data: st.DataObject) -> None:
    graph = data.draw(small_graphs())
    others = data.draw(st.lists(st.sampled_from(graph.ids.tolist()), max_size=5))
    longer = graph.with_node(1000, np.ones(graph.num_features), 0, others)
    assert longer != graph
    assert longer.without(ge.Nodes([1000])) == graph


@given(st.data())
def test_the_fingerprint_depends_on_content_not_on_the_order_of_rows_or_edges(
    data: st.DataObject,
) -> None:
    graph = data.draw(small_graphs())
    order = np.random.default_rng(data.draw(st.integers(0, 100)))
    assert rebuilt(graph, order).fingerprint == graph.fingerprint


@given(st.data())
def test_the_fingerprint_after_deletions_is_that_of_a_fresh_graph(data: st.DataObject) -> None:
    graph = data.draw(small_graphs())
    if data.draw(st.booleans(), label="hashed before the first deletion"):
        assert graph.fingerprint
    for request in data.draw(batches_for(graph)):
        graph = graph.without(request)
        if data.draw(st.booleans(), label="hashed in between"):
            assert graph.fingerprint
    assert graph.fingerprint == rebuilt(graph).fingerprint


@given(st.data())
def test_the_fingerprint_after_an_insertion_is_that_of_a_fresh_graph(data: st.DataObject) -> None:
    graph = data.draw(small_graphs())
    assert graph.fingerprint
    others = data.draw(st.lists(st.sampled_from(graph.ids.tolist()), max_size=5))
    node = int(np.setdiff1d(np.arange(graph.num_nodes + 1), graph.ids)[0])
    longer = graph.with_node(node, np.ones(graph.num_features), 0, others)
    assert longer.fingerprint == rebuilt(longer).fingerprint


def changed_by(graph: ge.Graph, what: str) -> ge.Graph:
    x, y = graph.x.toarray(), graph.y.copy()
    edges, ids, train = graph.edges, graph.ids.copy(), graph.train_nodes
    num_classes = graph.num_classes
    match what:
        case "feature":
            x[3, 0] += 1
        case "column":
            x = np.concatenate([x, np.zeros((len(x), 1))], axis=1)
        case "label":
            y[3] = (y[3] + 1) % num_classes
        case "edge":
            edges = edges[1:]
        case "role":
            train = train[1:]
        case "classes":
            num_classes += 1
        case "id":
            ids[-1] += 1
            edges = np.where(edges == graph.ids[-1], ids[-1], edges)
            train = np.where(train == graph.ids[-1], ids[-1], train)
    test = np.intersect1d(graph.test_nodes, ids)
    return ge.Graph.from_arrays(
        x, edges.T, y, ids=ids, train=train, test=test, num_classes=num_classes
    )


@pytest.mark.parametrize("what", ["feature", "column", "label", "edge", "role", "classes", "id"])
def test_the_fingerprint_notices_every_kind_of_change(small: ge.Graph, what: str) -> None:
    assert changed_by(small, "nothing") == small
    assert changed_by(small, what) != small


def test_the_fingerprint_ignores_name_and_notes(small: ge.Graph) -> None:
    assert small.with_fields(name="other", notes=("said",)) == small
    assert hash(small.with_fields(name="other")) == hash(small)


def test_every_array_is_read_only(small: ge.Graph) -> None:
    for graph in (
        small,
        small.without(ge.Nodes(small.ids[:2])),
        small.without(ge.Features(small.ids[:1])),
        small.with_node(1000, np.ones(small.num_features), 0, small.ids[:2]),
        small.with_split(seed=1),
        small.training_graph,
    ):
        parts: list[Any] = [graph.ids, graph.indptr, graph.indices, graph.y, graph.role]
        parts += [graph.x.data, graph.x.indices, graph.x.indptr]
        parts += [graph.train_nodes, graph.test_nodes, graph.degree, graph.sources]
        parts += [block for page in graph.pages.pages for block in page]
        for array in parts:
            with pytest.raises(ValueError, match="read-only"):
                array[:1] = 0


def test_the_constructor_neither_freezes_nor_shares_arrays_that_can_be_written_to(
    small: ge.Graph,
) -> None:
    arrays = {name: getattr(small, name).copy() for name in ("ids", "indptr", "indices", "y")}
    x, role = small.x.copy(), small.role.copy()
    graph = ge.Graph(**arrays, x=x, role=role, num_classes=small.num_classes)
    for array in (*arrays.values(), x.data, x.indices, x.indptr, role):
        assert array.flags.writeable
        array[:] = 0
    assert graph == small
    assert plain(graph) == plain(small)


def test_the_constructor_shares_read_only_arrays(small: ge.Graph) -> None:
    other = small.with_fields(name="other")
    assert other.x is small.x
    assert np.shares_memory(other.indices, small.indices)


def test_a_changed_copy_does_not_take_over_what_was_cached(small: ge.Graph) -> None:
    assert small.fingerprint
    other = small.with_fields(y=(small.y + 1) % small.num_classes)
    assert other != small
    assert other.with_fields(y=small.y) == small


def test_a_removal_leaves_no_trace_in_the_graph_that_it_starts_from(small: ge.Graph) -> None:
    assert small.fingerprint
    before = {**vars(small), **vars(small._contents)}
    rest = small.without(ge.Nodes(small.ids[:2]))
    after = {**vars(small), **vars(small._contents)}
    assert after.keys() == before.keys()
    assert all(after[name] is value for name, value in before.items())
    assert rest._contents.known_tree is not None, "known without hashing all nodes"


def test_attributes_can_not_be_replaced(small: ge.Graph) -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        small.y = small.y.copy()  # type: ignore[misc]


def test_ids_survive_deletion(small: ge.Graph) -> None:
    rest = small.without(ge.Nodes(small.ids[:5]))
    assert rest.ids.tolist() == small.ids[5:].tolist()
    last = int(small.ids[-1])
    kept = np.setdiff1d(small.neighbours(last), small.ids[:5])
    assert rest.neighbours(last).tolist() == kept.tolist()


def test_deleting_the_last_node_of_a_class_keeps_the_classes(small: ge.Graph) -> None:
    rest = small.without(ge.Nodes(small.ids[small.y == 2]))
    assert rest.num_classes == small.num_classes == 3


@given(st.data())
def test_within_hops_equals_networkx(data: st.DataObject) -> None:
    graph = data.draw(small_graphs())
    hops = data.draw(st.integers(0, 4))
    starts = data.draw(st.lists(st.integers(0, graph.num_nodes - 1), max_size=4))
    other = nx.Graph()
    other.add_nodes_from(range(graph.num_nodes))
    other.add_edges_from(graph.edge_index.T.tolist())
    expected: set[int] = set()
    for start in starts:
        expected |= set(nx.single_source_shortest_path_length(other, start, cutoff=hops))
    assert graph.within_hops(np.array(starts, dtype=np.int64), hops).tolist() == sorted(expected)


@given(small_graphs())
def test_edges_and_edge_index_say_the_same(graph: ge.Graph) -> None:
    pairs = graph.ids[graph.edge_index]
    assert {frozenset(pair) for pair in pairs.T.tolist()} == plain(graph).edges
    assert {frozenset(pair) for pair in graph.edges.tolist()} == plain(graph).edges
    assert (graph.edges[:, 0] < graph.edges[:, 1]).all()
    assert len(graph.edges) == graph.num_edges == pairs.shape[1] // 2


def test_unknown_ids_are_named(small: ge.Graph) -> None:
    with pytest.raises(UnknownNodeError, match=r"node 999 .*\(1 of 2 ids") as caught:
        small.positions([small.ids[0], 999])
    assert "forgotten already" in str(caught.value.hint)


@pytest.mark.parametrize("request_type", [ge.Nodes, ge.Features])
def test_unknown_nodes_can_not_be_forgotten(small: ge.Graph, request_type: Any) -> None:
    with pytest.raises(UnknownNodeError, match="node 999"):
        small.without(request_type([int(small.ids[0]), 999]))


def test_unknown_edges_can_not_be_forgotten(small: ge.Graph) -> None:
    known = tuple(small.edges[0].tolist())
    apart = int(small.ids[0]), int(small.ids[40 // 3])  # the second has no neighbours at all
    with pytest.raises(UnknownEdgeError, match=f"{apart[0]}-{apart[1]} .*1 of 2"):
        small.without(ge.Edges([known, apart]))
    with pytest.raises(UnknownNodeError, match="node 999"):
        small.without(ge.Edges([(int(small.ids[0]), 999)]))


def test_features_that_are_not_there_can_not_be_forgotten(small: ge.Graph) -> None:
    bare = int(small.ids[20])
    with pytest.raises(NothingToForgetError, match=f"node {bare} has no features"):
        small.without(ge.Features([bare]))


def test_an_empty_request_is_refused(small: ge.Graph) -> None:
    nothings: list[list[Request]] = [[], [ge.Nodes([])], [ge.Edges([]), ge.Features([])]]
    for nothing in nothings:
        with pytest.raises(NothingToForgetError):
            small.without(nothing)


NEW: dict[str, tuple[dict[str, Any], type[Exception], str]] = {
    "id taken": ({"node": None}, GraphError, "in the graph already"),
    "negative id": ({"node": -1}, GraphError, "non-negative"),
    "several ids": ({"node": [1000, 1001]}, ParameterError, "one node id"),
    "id beyond int64": ({"node": 2**63}, ParameterError, "64-bit"),
    "short row": ({"features": [1.0]}, GraphError, r"the 12 columns of the graph \(found 1\)"),
    "NaN": ({"features": [np.nan] * 12}, GraphError, "finite"),
    "class out of range": ({"label": 3}, GraphError, r"\(found 3\)"),
    "no label": ({"label": -1}, GraphError, "need a label"),
    "unknown neighbour": ({"neighbours": [999]}, UnknownNodeError, "node 999"),
}


@pytest.mark.parametrize("case", NEW)
def test_a_bad_new_node_has_its_own_error(small: ge.Graph, case: str) -> None:
    changes, error, message = NEW[case]
    arguments = {"node": 1000, "features": [1.0] * 12, "label": 0, "neighbours": [], **changes}
    if arguments["node"] is None:
        arguments["node"] = int(small.ids[3])
    with pytest.raises(error, match=message):
        small.with_node(**arguments)


def test_the_split_has_the_share_and_leaves_unlabelled_nodes_out(small: ge.Graph) -> None:
    y = small.y.copy()
    y[:10] = -1
    graph = ge.Graph.from_arrays(small.x, small.edges.T, y, ids=small.ids, num_classes=3)
    split = graph.with_split(test_share=0.2, seed=3)
    assert (len(split.train_nodes), len(split.test_nodes)) == (24, 6)
    both = np.concatenate([split.train_nodes, split.test_nodes])
    assert sorted(both.tolist()) == small.ids[10:].tolist()


def test_the_split_is_a_function_of_its_seed(small: ge.Graph) -> None:
    assert small.with_split(seed=1) == small.with_split(seed=1)
    assert small.with_split(seed=1) != small.with_split(seed=2)
    for share in (1.0, -0.1, "a", None, True, np.nan):
        with pytest.raises(ParameterError, match="'test_share'"):
            small.with_split(test_share=share)  # type: ignore[arg-type]
    for seed in ("a", None, 1.5, True):
        with pytest.raises(ParameterError, match="'seed'"):
            small.with_split(seed=seed)  # type: ignore[arg-type]


def test_repr_says_what_is_in_it(small: ge.Graph) -> None:
    text = repr(small)
    assert "nodes=40" in text
    assert f"edges={small.num_edges}" in text
