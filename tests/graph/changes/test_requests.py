"""Requests are values with one canonical form."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import grapheraser as ge
from grapheraser.errors import NothingToForgetError, ParameterError, UnknownNodeError
from grapheraser.graph import (
    CONTEXT,
    TEST,
    Request,
    as_requests,
    coalesce,
    request_digest,
)
from tests.strategies import small_graph, small_graphs

IDS = st.lists(st.integers(0, 20), max_size=6)
PAIRS = st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20)), max_size=6)
REQUESTS = st.lists(
    st.one_of(IDS.map(ge.Nodes), IDS.map(ge.Features), PAIRS.map(ge.Edges)), max_size=5
)


@given(IDS, st.randoms())
def test_requests_forget_order_and_repeats(ids: list[int], random: Any) -> None:
    shuffled = [*ids, *ids]
    random.shuffle(shuffled)
    assert ge.Nodes(shuffled) == ge.Nodes(ids)
    assert ge.Nodes(ids).ids == tuple(sorted(set(ids)))


def test_an_edge_has_no_direction() -> None:
    assert ge.Edges([(17, 3), (3, 17)]) == ge.Edges([(3, 17)])
    assert ge.Edges([(17, 3)]).pairs == ((3, 17),)


@pytest.mark.parametrize(
    ("request_", "shown"),
    [
        (ge.Nodes([12]), "Nodes(ids=(12,))"),
        (
            ge.Nodes([12], type="user", cascade="payment"),
            "Nodes(ids=(12,), type='user', cascade=('payment',))",
        ),
        (ge.Features(["user/12"]), "Features(ids=('user/12',))"),
        (ge.Edges([(4, 3)]), "Edges(pairs=((3, 4),))"),
        (
            ge.Edges([(3, 17)], type=("user", "buys", "item")),
            "Edges(facts=((3, ('user', 'buys', 'item'), 17),))",
        ),
    ],
)
def test_a_request_shows_what_it_names(request_: Request, shown: str) -> None:
    assert repr(request_) == shown


def test_one_id_and_numpy_ids_are_welcome() -> None:
    assert ge.Nodes(3) == ge.Nodes([3]) == ge.Nodes(np.array([3]))
    assert ge.Features(np.array([1, 2])).ids == (1, 2)
    assert ge.Edges(np.array([[4, 3]])).pairs == ((3, 4),)


@pytest.mark.parametrize("bad", [["a", 1.5], [1.5], [True, 2], None, [None], [b"a"], [[1, 2]]])
def test_ids_that_are_none_are_refused(bad: Any) -> None:
    pairs = bad == [[1, 2]]  # a label of a node may be named by the node and a target
    for request in (ge.Nodes, ge.Features, *(() if pairs else (ge.Labels,))):
        with pytest.raises(ParameterError, match=f"'ids' of {request.__name__}"):
            request(bad)


@pytest.mark.parametrize("bad", [2**63, 2**70, -(2**70)])
def test_ids_beyond_64_bits_are_refused(bad: int) -> None:
    for request in (
        lambda: ge.Nodes([bad]),
        lambda: ge.Features(bad),
        lambda: ge.Edges([(1, bad)]),
    ):
        with pytest.raises(ParameterError, match="64-bit integers"):
            request()


def test_a_node_that_goes_needs_no_features_to_forget(small: ge.Graph) -> None:
    bare = small.ids[np.diff(small.x.indptr) == 0].tolist()
    removal = coalesce(small, [ge.Nodes(bare), ge.Features(bare)])
    assert removal.nodes.tolist() == bare
    assert len(removal.features) == 0
    with pytest.raises(NothingToForgetError, match="no features to forget"):
        coalesce(small, ge.Features(bare))


@pytest.mark.parametrize("bad", [[1, 2], [(1, 2, 3)], [(1,)], ["ab"], [(1, 2.5)], [(True, 2)]])
def test_pairs_that_are_none_are_refused(bad: Any) -> None:
    with pytest.raises(ParameterError, match="of Edges"):
        ge.Edges(bad)


@given(REQUESTS, st.randoms())
def test_the_digest_depends_on_what_is_asked_alone(requests: list[Request], random: Any) -> None:
    form = {
        "edges": sorted({p for r in requests if isinstance(r, ge.Edges) for p in r.pairs}),
        "features": sorted({i for r in requests if isinstance(r, ge.Features) for i in r.ids}),
        "nodes": sorted({i for r in requests if isinstance(r, ge.Nodes) for i in r.ids}),
    }
    text = json.dumps(form, sort_keys=True, separators=(",", ":"))
    shuffled = list(requests)
    random.shuffle(shuffled)
    assert request_digest(shuffled) == hashlib.sha256(text.encode()).hexdigest()


def test_anything_else_is_no_request() -> None:
    with pytest.raises(ParameterError, match="Nodes, Edges, Features, Labels or a list"):
        as_requests([ge.Nodes([1]), 7])


@given(st.data())
def test_a_removal_says_nothing_twice(data: st.DataObject) -> None:
    graph = data.draw(small_graphs())
    nodes = data.draw(st.lists(st.sampled_from(graph.ids.tolist()), max_size=5))
    picks = data.draw(st.lists(st.integers(0, graph.num_edges - 1), min_size=1, max_size=8))
    edges = graph.edges[picks]
    filled = graph.ids[np.diff(graph.x.indptr) > 0].tolist()
    features = data.draw(st.lists(st.sampled_from(filled), max_size=5))
    batch: list[Request] = [
        ge.Nodes(nodes),
        ge.Edges(map(tuple, edges.tolist())),
        ge.Features(features),
    ]
    removal = coalesce(graph, batch)
    assert removal.nodes.tolist() == sorted(set(nodes))
    assert not np.isin(removal.edges, removal.nodes).any()
    assert removal.features.tolist() == sorted(set(features) - set(nodes))
    assert removal.digest == request_digest(batch)


def test_arrays_and_tensors_name_ids_too() -> None:
    forms: list[Any] = [torch.tensor([3, 1, 3]), np.array([1, 3]), [torch.tensor(1), np.int32(3)]]
    for kind in (ge.Nodes, ge.Features):
        assert all(kind(ids) == kind([1, 3]) for ids in forms)
        assert kind(torch.tensor(7)) == kind(np.array(7)) == kind(7)
    for pairs in (torch.tensor([[3, 1], [5, 2]]), np.array([[1, 3], [2, 5]])):
        assert ge.Edges(pairs) == ge.Edges([(1, 3), (2, 5)])
    assert ge.Edges(torch.zeros((0, 2))) == ge.Edges([])


def test_an_edge_index_is_told_to_stand_upright() -> None:
    edge_index = torch.tensor([[1, 2, 3], [4, 5, 6]])
    with pytest.raises(ParameterError, match=r"\[m, 2\]. Got \[2, 3\]") as caught:
        ge.Edges(edge_index)
    assert "edge_index.T" in str(caught.value.hint)
    assert ge.Edges(edge_index.T) == ge.Edges([(1, 4), (2, 5), (3, 6)])


@pytest.mark.parametrize("ids", [None, 1.5, [True, 12], torch.tensor([1.0]), torch.eye(2)])
def test_what_is_no_id_is_an_error(ids: Any) -> None:
    for kind in (ge.Nodes, ge.Features):
        with pytest.raises(ParameterError, match=f"'ids' of {kind.__name__}"):
            kind(ids)


@pytest.mark.parametrize("pairs", [None, 5, "ab", [5], [(1, 2, 3)], np.array([1, 2])])
def test_what_is_no_pair_is_an_error(pairs: Any) -> None:
    with pytest.raises(ParameterError, match="'pairs' of Edges"):
        ge.Edges(pairs)


@pytest.mark.parametrize("request_", [12, None, "ab", ge.Nodes, {"nodes": [1]}])
def test_what_is_no_request_at_all_is_an_error(request_: Any) -> None:
    with pytest.raises(ParameterError, match="Nodes, Edges, Features, Labels or a list"):
        as_requests(request_)


def test_labels_go_and_their_nodes_stay() -> None:
    graph = small_graph(split="mixed")
    trained, tested = int(graph.train_nodes[0]), int(graph.labelled_test_nodes[0])
    rest = graph.without(ge.Labels([trained, tested]))
    assert rest.labels([trained, tested]).tolist() == [-1, -1]
    assert rest.roles([trained, tested]).tolist() == [CONTEXT, TEST]
    assert np.array_equal(rest.ids, graph.ids)
    assert np.array_equal(rest.edges, graph.edges)
    assert np.array_equal(rest.x.toarray(), graph.x.toarray())
    others = np.setdiff1d(graph.ids, [trained, tested])
    assert np.array_equal(rest.labels(others), graph.labels(others))
    assert np.array_equal(rest.roles(others), graph.roles(others))
    known = {"train": rest.train_nodes, "test": rest.test_nodes}
    again = ge.Graph.from_arrays(
        rest.x,
        rest.edges.T,
        rest.y,
        ids=rest.ids,
        validation=rest.validation_nodes,
        num_classes=rest.num_classes,
        **known,  # type: ignore[arg-type]
    )
    assert again == rest
    assert tested not in rest.labelled_test_nodes


def test_a_label_that_is_not_there_can_not_be_forgotten() -> None:
    graph = small_graph(split="mixed")
    known, unknown = int(graph.train_nodes[0]), int(graph.ids[graph.y < 0][0])
    with pytest.raises(NothingToForgetError, match=f"node {unknown} has no label"):
        graph.without(ge.Labels([known, unknown]))
    with pytest.raises(UnknownNodeError):
        graph.without(ge.Labels([10_000]))
    rest = graph.without(ge.Labels([known]))
    with pytest.raises(NothingToForgetError, match="has no label"):
        rest.without(ge.Labels([known]))


def test_a_node_that_goes_takes_its_label_along() -> None:
    graph = small_graph()
    node = int(graph.train_nodes[0])
    removal = coalesce(graph, [ge.Nodes([node]), ge.Labels([node])])
    assert removal.labels.size == 0
    assert graph.without(removal) == graph.without(ge.Nodes([node]))


def test_requests_without_labels_have_the_digest_they_always_had() -> None:
    form = '{"edges":[],"features":[],"nodes":[7]}'
    assert request_digest([ge.Nodes([7])]) == hashlib.sha256(form.encode()).hexdigest()
    assert request_digest([ge.Labels([7])]) != request_digest([ge.Features([7])])
