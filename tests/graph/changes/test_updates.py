"""Additions and changes of a graph: what they lead to, and what is refused."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import grapheraser as ge
from grapheraser.errors import (
    GraphError,
    NothingToForgetError,
    ParameterError,
    UnknownEdgeError,
    UnknownNodeError,
)
from grapheraser.graph import GraphChange, Request, coalesce, edit_of
from grapheraser.graph.pages.directory import Directory
from grapheraser.graph.proof.merkle import MerkleTree
from grapheraser.graph.roles import SHARDED_ROLES
from tests.graph.oracle import Plain, plain
from tests.strategies import changes_for, small_graph, small_graphs, with_edge_values


def changed(before: Plain, changes: list[GraphChange]) -> Plain:
    """What a list of changes makes of a plain graph: deletions first."""
    requests: list[Any] = [
        change
        for change in changes
        if isinstance(change, ge.Nodes | ge.Edges | ge.Features | ge.Labels)
    ]
    after = before.without(requests)
    for change in changes:
        if isinstance(change, ge.AddNodes):
            rows = change.x.toarray().tolist()
            for node, row, y in zip(change.ids.tolist(), rows, change.y.tolist(), strict=True):
                after.nodes[node] = tuple(row), y, 0 if y < 0 else 1
        elif isinstance(change, ge.SetFeatures):
            for node, row in zip(change.ids.tolist(), change.x.toarray().tolist(), strict=True):
                after.nodes[node] = tuple(row), *after.nodes[node][1:]
        elif isinstance(change, ge.SetLabels):
            for node, y in zip(change.ids.tolist(), change.y.tolist(), strict=True):
                features, _, role = after.nodes[node]
                after.nodes[node] = features, y, 1 if role == 0 else role
        if isinstance(change, ge.AddNodes | ge.AddEdges):
            after.edges |= {frozenset(pair) for pair in change.edges.pairs.tolist()}
    return after


@pytest.mark.filterwarnings("ignore:graph 'small'")
@given(st.data())
def test_a_list_of_changes_does_what_it_says(data: st.DataObject) -> None:
    graph = data.draw(small_graphs())
    context = data.draw(st.sampled_from(list(SHARDED_ROLES)))
    graph = graph.with_context(context)
    if data.draw(st.booleans(), label="known before"):
        _ = graph.fingerprint, graph.num_train, graph.num_sharded
    expected = plain(graph)
    for _ in range(data.draw(st.integers(1, 3))):
        changes = data.draw(changes_for(graph))
        expected = changed(expected, changes)
        before, content = graph, plain(graph)
        graph = graph.updated(data.draw(st.permutations(changes)))
        assert plain(before) == content, "the graph before is what it was"
        assert plain(graph) == expected
        assert graph.num_train == len(graph.train_nodes)
        assert graph.num_sharded == len(graph.sharded_nodes)
        assert graph.tree.root == MerkleTree.of(graph.pages).root
        blocks = Directory.of(graph.ids)
        for name in ("starts", "sizes", "counts"):
            assert np.array_equal(getattr(graph.pages.directory, name), getattr(blocks, name))


@pytest.mark.parametrize("dense", [False, True])
def test_many_nodes_at_once_are_as_one_after_the_other(dense: bool) -> None:
    rng = np.random.default_rng(0)
    x = rng.random((600, 4)) if dense else np.eye(600, 4)
    ids = np.sort(rng.choice(5000, size=600, replace=False))
    edges = ids[rng.integers(600, size=(2, 900))]
    graph = ge.Graph.from_arrays(x, edges, ids % 3, ids=ids)
    assert graph.pages.dense == dense
    _ = graph.fingerprint
    free = np.setdiff1d(np.arange(6000), ids)
    new = np.concatenate([rng.choice(free, 700, replace=False), [10**9, 10**15, 2**63 - 1]])
    rows, y = rng.random((len(new), 4)), rng.integers(3, size=len(new))
    pairs = np.stack([new, rng.choice(ids, len(new))], axis=1)
    at_once = graph.updated(ge.AddNodes(new, rows, y, pairs))
    one_by_one = graph
    for at in range(len(new)):
        one_by_one = one_by_one.updated(ge.AddNodes(new[at], rows[at], y[at], pairs[[at]]))
    every = np.concatenate([ids, new])
    built = ge.Graph.from_arrays(
        np.concatenate([graph.x.toarray(), rows.astype(np.float32)]),
        np.concatenate([graph.edges, pairs]).T,
        np.concatenate([graph.y, y]),
        ids=every,
        each_edge_once=True,
    )
    assert at_once == one_by_one == built
    blocks = built.pages.directory
    assert np.array_equal(at_once.pages.directory.starts, blocks.starts)
    assert np.array_equal(at_once.pages.directory.sizes, blocks.sizes)
    assert np.array_equal(at_once.pages.directory.counts, blocks.counts)


def test_an_empty_graph_can_grow() -> None:
    none = ge.Graph.from_arrays(np.zeros((0, 2)), np.zeros((2, 0), int), [], num_classes=2)
    grown = none.updated(ge.AddNodes(range(300), np.eye(300, 2), [0] * 300, [(0, 299), (5, 6)]))
    assert grown == ge.Graph.from_arrays(
        np.eye(300, 2), [[0, 5], [299, 6]], [0] * 300, num_classes=2, each_edge_once=True
    )


def carried(graph: ge.Graph) -> dict[tuple[int, int], tuple[float, ...]]:
    """What each edge carries, by its ends in PyG's order."""
    parts = [
        part.reshape(graph.edge_index.shape[1], -1)
        for part in (graph.edge_weight, graph.edge_attr)
        if part is not None
    ]
    values = np.concatenate(parts, axis=1).tolist() if parts else [[]] * graph.edge_index.shape[1]
    ends = graph.ids[graph.edge_index].T.tolist()
    return {(u, v): tuple(row) for (u, v), row in zip(ends, values, strict=True)}


@pytest.mark.parametrize("directed", [False, True])
@settings(max_examples=30)
@given(seed=st.integers(0, 999))
def test_new_edges_carry_their_values_and_old_ones_the_mean(directed: bool, seed: int) -> None:
    graph = with_edge_values(small_graph(seed), columns=1, directed=directed)
    rng = np.random.default_rng(seed)
    pairs = rng.choice(graph.ids, size=(30, 2))
    pairs = np.concatenate([pairs[pairs[:, 0] != pairs[:, 1]], graph.edges[:3], graph.edges[:1]])
    weight, attr = rng.random(len(pairs)), rng.random((len(pairs), 1))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        grown = graph.updated(ge.AddEdges(pairs, weight, attr))
    assert any("are there already: they get the mean" in str(w.message) for w in caught)
    given_: dict[tuple[int, int], list[tuple[float, ...]]] = {}
    for (u, v), w, a in zip(pairs.tolist(), weight.tolist(), attr[:, 0].tolist(), strict=True):
        given_.setdefault((u, v), []).append((w, a))
    means = {pair: np.mean(values, axis=0) for pair, values in given_.items()}
    expected = {pair: np.array(values) for pair, values in carried(graph).items()}
    for (u, v), one_way in means.items():
        mean = one_way if directed else (one_way + means.get((v, u), one_way)) / 2
        for pair in [(u, v)] if directed else [(u, v), (v, u)]:
            old = carried(graph).get(pair)
            expected[pair] = mean if old is None else (mean + old) / 2
    found = carried(grown)
    assert found.keys() == expected.keys()
    for pair, values in found.items():
        assert values == pytest.approx(expected[pair].tolist(), rel=1e-6)


def test_both_directions_of_an_edge_are_one_edge_without_a_word(small: ge.Graph) -> None:
    u, v = small.ids[[0, -1]].tolist()
    if small.has_edges(np.array([[u, v]]))[0]:
        small = small.without(ge.Edges([(u, v)]))
    assert small.updated(ge.AddEdges([(u, v), (v, u)])).num_edges == small.num_edges + 1


def test_an_edge_that_is_deleted_and_added_is_replaced() -> None:
    graph = with_edge_values(small_graph())
    u, v = graph.edges[0].tolist()
    found = graph.updated([ge.AddEdges([(v, u)], [7.0]), ge.Edges([(u, v)])])
    assert carried(found)[u, v] == carried(found)[v, u] == (7.0,)
    assert found.num_edges == graph.num_edges


def test_duplicates_in_a_plain_graph_are_warned_of(small: ge.Graph) -> None:
    edge = small.edges[0].tolist()
    with pytest.warns(UserWarning, match="1 of the edges to add are there already: left as is"):
        assert small.updated(ge.AddEdges([edge])) == small
    new = [(1000, edge[0]), (1000, edge[0])]
    with pytest.warns(UserWarning, match="1 duplicate edges dropped"):
        small.updated(ge.AddNodes([1000], np.ones((1, 12)), edges=new))


@pytest.mark.gnn
def test_sparse_rows_tensors_and_scalars_are_understood(small: ge.Graph) -> None:
    import torch

    rows = np.eye(2, 12)
    found = [
        small.updated(ge.AddNodes(ids, x, y, edges))
        for ids, x, y, edges in (
            ([1000, 1001], rows, [0, -1], [(1000, 1001)]),
            (torch.tensor([1000, 1001]), sp.csr_matrix(rows), np.array([0, -1]), [[1001, 1000]]),
            (range(1000, 1002), torch.tensor(rows), (0, -1), torch.tensor([[1000, 1001]])),
        )
    ]
    assert found[0] == found[1] == found[2]
    node = int(small.ids[0])
    assert small.updated(ge.SetLabels(node, 2)) == small.updated(ge.SetLabels([node], [2]))
    row = np.arange(12)
    assert small.updated(ge.SetFeatures(node, row)) == small.updated(ge.SetFeatures([node], [row]))


def test_the_digest_does_not_depend_on_the_order_of_changes(small: ge.Graph) -> None:
    a, b, c = small.ids[:3].tolist()
    changes: list[GraphChange] = [
        ge.SetLabels([a, b], [0, 1]),
        ge.SetFeatures([c], np.ones((1, 12))),
        ge.AddNodes([1000, 1001], np.ones((2, 12)), edges=[(1000, a)]),
        ge.Nodes(small.ids[-1:]),
    ]
    digest = edit_of(small, changes).digest
    assert edit_of(small, changes[::-1]).digest == digest
    assert edit_of(small, [ge.SetLabels([b, a], [1, 0]), *changes[1:]]).digest == digest
    assert edit_of(small, changes[:-1]).digest != digest
    assert edit_of(small, [ge.SetLabels([a, b], [0, 2]), *changes[1:]]).digest != digest


SMALL = small_graph()
WEIGHTED = with_edge_values(SMALL)
A, B, C = SMALL.ids[:3].tolist()
ROW = np.ones((1, 12))
BAD: dict[str, tuple[Any, type[Exception], str]] = {
    "nothing": (lambda: [], ParameterError, "names nothing"),
    "empty parts": (lambda: [ge.AddEdges([]), ge.Nodes([])], ParameterError, "names nothing"),
    "not a change": (lambda: [17], ParameterError, "a change must be AddNodes"),
    "an id that is there": (
        lambda: ge.AddNodes([1000, A, B], np.ones((3, 12))),
        GraphError,
        f"nodes {A} and {B} are in the graph already",
    ),
    "an id that goes": (
        lambda: [ge.Nodes([A]), ge.AddNodes([A], ROW)],
        GraphError,
        "in the graph already",
    ),
    "a negative id": (lambda: ge.AddNodes([-1], ROW), GraphError, "non-negative"),
    "an id twice": (
        lambda: ge.AddNodes([7, 7], np.ones((2, 12))),
        ParameterError,
        "each node once",
    ),
    "an id in two parts": (
        lambda: [ge.AddNodes([1000], ROW), ge.AddNodes([1000], ROW)],
        ParameterError,
        "in one AddNodes only",
    ),
    "floats for ids": (lambda: ge.AddNodes([1.5], ROW), ParameterError, "integers"),
    "too few rows": (lambda: ge.AddNodes([1000, 1001], ROW), GraphError, "one row for each of 2"),
    "more columns": (
        lambda: ge.AddNodes([1000], np.ones((1, 13))),
        GraphError,
        r"the 12 columns of the graph \(found 13\): new feature columns need a new fit",
    ),
    "NaN features": (lambda: ge.SetFeatures([A], ROW * np.nan), GraphError, "finite"),
    "columns to set": (lambda: ge.SetFeatures([A], [[1.0]]), GraphError, "12 columns"),
    "features of unknown nodes": (
        lambda: ge.SetFeatures([998, 999], np.ones((2, 12))),
        UnknownNodeError,
        "nodes 998 and 999 are not in the graph",
    ),
    "features set twice": (
        lambda: [ge.SetFeatures([A], ROW), ge.SetFeatures([A], ROW)],
        ParameterError,
        "in one SetFeatures only",
    ),
    "a new class": (
        lambda: ge.AddNodes([1000], ROW, [3]),
        GraphError,
        r"in \[0, 2\] \(found 3\): new classes need a new fit",
    ),
    "a class to set": (lambda: ge.SetLabels([A], [3]), GraphError, "new classes need a new fit"),
    "a label below -1": (lambda: ge.AddNodes([1000], ROW, [-2]), GraphError, "found -2"),
    "no label to set": (lambda: ge.SetLabels([A], [-1]), GraphError, "must be a class"),
    "float labels": (lambda: ge.SetLabels([A], [0.5]), GraphError, "integer"),
    "too few labels": (lambda: ge.SetLabels([A, B], [1]), GraphError, "one label for each of 2"),
    "labels of unknown nodes": (lambda: ge.SetLabels([999], [1]), UnknownNodeError, "node 999"),
    "an edge to nobody": (lambda: ge.AddEdges([(A, 999)]), UnknownNodeError, "node 999"),
    "an edge of another node": (
        lambda: ge.AddNodes([1000], ROW, edges=[(A, B)]),
        GraphError,
        "one of its nodes at an end",
    ),
    "a loop": (lambda: ge.AddEdges([(A, A)]), GraphError, "must join two nodes"),
    "an edge index": (
        lambda: ge.AddEdges(np.array([[A, B, C], [B, C, A]])),
        ParameterError,
        r"shape \[m, 2\]",
    ),
    "weights in a plain graph": (
        lambda: ge.AddEdges([(A, B)], [1.0]),
        GraphError,
        "have no 'edge_weight'",
    ),
    "too few weights": (lambda: ge.AddEdges([(A, B)], [1.0, 2.0]), GraphError, "one number per"),
    "a change of a node that goes": (
        lambda: [ge.Nodes([A, B]), ge.SetLabels([A], [1]), ge.SetFeatures([B], ROW)],
        GraphError,
        f"both changes and forgets nodes {A} and {B}",
    ),
    "an edge to a node that goes": (
        lambda: [ge.Nodes([A]), ge.AddEdges([(A, B)])],
        GraphError,
        f"adds edges to node {A}, which it forgets",
    ),
    "features that go": (
        lambda: [ge.Features([A]), ge.SetFeatures([A], ROW)],
        GraphError,
        "forgets the features of",
    ),
    "a label that goes": (
        lambda: [ge.Labels([A]), ge.SetLabels([A], [1])],
        GraphError,
        "forgets the label of",
    ),
    "unknown deletions": (
        lambda: [ge.AddNodes([1000], ROW), ge.Nodes([999])],
        UnknownNodeError,
        "node 999",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_changes_have_their_own_errors(case: str) -> None:
    make, error, message = BAD[case]
    with pytest.raises(error, match=message):
        SMALL.updated(make())


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        (None, "each of the 1 new edges needs one"),
        ([np.nan], "edge_weight must be finite"),
        ([np.inf], "edge_weight must be finite"),
        (["a"], "must be made of numbers"),
    ],
)
def test_bad_weights_are_refused(weight: Any, message: str) -> None:
    with pytest.raises(GraphError, match=message):
        WEIGHTED.updated(ge.AddEdges([(A, B)], weight))


# -- what is not there ----------------------------------------------------------------------------


def test_an_error_names_all_that_is_unknown(small: ge.Graph) -> None:
    unknown = list(range(1000, 1025))
    with pytest.raises(UnknownNodeError, match=r"1000, 1001, .* 1009 and 15 more are not") as nodes:
        small.without([ge.Nodes(unknown[:20]), ge.Features(unknown[20:]), ge.Nodes(small.ids[:2])])
    assert nodes.value.ids == tuple(unknown)
    assert "25 of 27 ids are unknown" in str(nodes.value)
    missing = [(u, v) for u in small.ids[:6].tolist() for v in small.ids[:6].tolist() if u < v]
    missing = [pair for pair in missing if not small.has_edges(np.array([pair]))[0]]
    with pytest.raises(UnknownEdgeError, match="there is no edge") as edges:
        small.without(ge.Edges([*missing, small.edges[0]]))
    assert edges.value.edges == tuple(sorted(missing))


@given(small_graphs(), st.integers(0, 99))
def test_what_is_not_there_can_be_skipped(graph: ge.Graph, seed: int) -> None:
    rng = np.random.default_rng(seed)
    bare = graph.ids[np.diff(graph.x.indptr) == 0]
    unlabelled = graph.ids[graph.y == -1]
    nodes, pairs = rng.choice(graph.ids, size=3), rng.choice(graph.ids, size=(8, 2))
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    has = graph.has_edges(pairs)
    request: list[Request] = [
        ge.Nodes([*nodes, 998, 999]),
        ge.Edges([*pairs, (998, 1001)]),
        ge.Features([*bare, 1000]),
        ge.Labels([*unlabelled, 1000]),
    ]
    removal = coalesce(graph, request, missing="skip")
    expected: list[Request] = [ge.Nodes([998, 999]), ge.Edges([*pairs[~has], (998, 1001)])]
    expected += [ge.Features([*np.setdiff1d(bare, nodes), 1000])]
    expected += [ge.Labels([*np.setdiff1d(unlabelled, nodes), 1000])]
    assert removal.skipped == tuple(expected)
    assert removal.num_skipped == sum(
        len(part.pairs if isinstance(part, ge.Edges) else part.ids) for part in expected
    )
    there: list[Request] = [ge.Nodes(nodes), *([ge.Edges(pairs[has])] if has.any() else ())]
    assert graph.without(removal) == graph.without(there)


def test_skipping_everything_leaves_nothing_to_do(small: ge.Graph) -> None:
    with pytest.raises(NothingToForgetError, match="nothing of what the request names"):
        coalesce(small, ge.Nodes([998, 999]), missing="skip")
    with pytest.raises(ParameterError, match="'missing' of unlearn"):
        coalesce(small, ge.Nodes(small.ids[:1]), missing="ignore")
