"""Nodes with names: ids that follow from them, and names that go with their nodes."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import grapheraser as ge
from grapheraser.errors import GraphError, ParameterError, UnknownNodeError
from grapheraser.graph import GraphChange, edit_of, ids
from grapheraser.graph.ids import NamedId, name_id
from tests.graph.oracle import plain
from tests.strategies import called, small_graph, with_names


def test_ids_follow_from_names_and_the_rest_from_ids(small: ge.Graph) -> None:
    graph = with_names(small)
    assert graph.named
    assert not small.named
    assert small.names is None
    assert graph.ids.tolist() == sorted(name_id(called(n)) for n in small.ids)
    for node in small.ids.tolist():
        name = called(node)
        assert graph.names[graph.positions([name])[0]] == name  # type: ignore[index]
        around = [called(other) for other in small.neighbours(node)]
        assert sorted(graph.names_of(graph.neighbours(name))) == sorted(around)
        assert graph.labels(name) == small.labels([node])
    assert small.names_of(small.ids[:2]).tolist() == small.ids[:2].tolist()


def test_the_order_of_arrival_does_not_matter(small: ge.Graph) -> None:
    rng = np.random.default_rng(0)
    graph, other = with_names(small), with_names(small, rng.permutation(small.num_nodes))
    assert graph == other
    assert graph.names.tolist() == other.names.tolist()  # type: ignore[union-attr]
    for one, two in zip(graph.pages.pages, other.pages.pages, strict=True):
        assert all(a.tobytes() == b.tobytes() for a, b in zip(one, two, strict=True))


@settings(max_examples=20)
@given(st.integers(0, 5), st.lists(st.integers(0, 19), min_size=1, max_size=15, unique=True))
def test_names_leave_with_their_nodes(seed: int, gone: list[int]) -> None:
    graph = with_names(small_graph(seed=seed))
    assert graph.names is not None
    lost = graph.names[gone].tolist()
    rest = graph.without(ge.Nodes(lost))
    assert rest.names is not None
    assert set(rest.names) == set(graph.names) - set(lost)
    assert rest.ids.tolist() == [name_id(name) for name in rest.names]
    held = b"".join(page.names.tobytes() for page in rest.pages.pages)
    assert not any(name.encode() in held for name in lost)
    fresh = graph.subgraph(rest.names)
    assert plain(fresh) == plain(rest)
    assert fresh.names.tolist() == rest.names.tolist()  # type: ignore[union-attr]
    with pytest.raises(UnknownNodeError, match=r"nodes? 'person"):
        rest.places(lost)


def test_pages_split_and_join_with_their_names() -> None:
    n = 1000
    name = [f"user-{i}" for i in range(n)]
    graph = ge.Graph.from_arrays(np.ones((n, 1)), [name[:-1], name[1:]], [0] * n, ids=name)
    assert len(graph.pages.pages) > 4
    rest = graph.without(ge.Nodes(name[50:]))
    assert len(rest.pages.pages) == 1
    assert set(rest.names_of(rest.ids)) == set(name[:50])
    grown = rest.with_node("new one", [1.0], 0, ["user-3"])
    assert grown.names_of(grown.neighbours("new one")).tolist() == ["user-3"]
    assert set(grown.names_of(grown.ids)) == {*name[:50], "new one"}
    for made in (grown.with_split(seed=1), grown.with_context("all"), grown.undirected()):
        assert made.names.tolist() == grown.names.tolist()  # type: ignore[union-attr]
    again = pickle.loads(pickle.dumps(grown))
    assert again.names.tolist() == grown.names.tolist()  # type: ignore[union-attr]


def test_shards_see_no_names(small: ge.Graph) -> None:
    graph = with_names(small)
    assert graph.training_graph.names is None
    assert graph.subgraph(graph.ids[:3]).named


@pytest.mark.gnn
def test_names_survive_pyg(small: ge.Graph) -> None:
    graph = with_names(small)
    again = ge.Graph.from_pyg(graph.to_pyg(), num_classes=graph.num_classes)
    assert again == graph
    assert again.names.tolist() == graph.names.tolist()  # type: ignore[union-attr]


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "a name twice": ({"ids": ["a", "b", "a"]}, r"unique \(found 'a' twice\)"),
    "names and ids": ({"ids": ["a", "b", 3]}, r"not both \(found 'a' and 3\)"),
    "too few": ({"ids": ["a", "b"]}, "3 rows"),
    "an unknown end": ({"edge_index": [["a"], ["d"]]}, r"among the 3 node ids \(found 'd'\)"),
    "an unknown training node": ({"train": ["a", "d"]}, "training node 'd' is not a node id"),
    "two roles": ({"train": ["a"], "test": ["a"]}, "node 'a' is both a training and a test"),
    "no label": ({"train": ["a"], "y": [-1, 0, 0]}, "node 'a' has none"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_named_as_it_was_given(case: str) -> None:
    changes, message = BAD[case]
    given: dict[str, Any] = {"edge_index": [["a"], ["b"]], "y": [0, 0, 1], "ids": ["a", "b", "c"]}
    with pytest.raises(GraphError, match=message):
        ge.Graph.from_arrays(np.eye(3), **given | changes)


def test_names_with_the_same_id_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def short(name: str) -> NamedId:
        made = NamedId(len(name))
        made.name = name
        return made

    monkeypatch.setattr(ids, "name_id", short)
    with pytest.raises(GraphError, match="'ab' and 'cd' have the same id"):
        ge.Graph.from_arrays(np.eye(3), [[], []], [0, 0, 0], ids=["ab", "c", "cd"])


def test_a_new_node_has_a_name_where_the_others_have(small: ge.Graph) -> None:
    row = np.ones(small.num_features)
    with pytest.raises(GraphError, match=r"have names: a new one needs one \(found 5000\)"):
        with_names(small).with_node(5000, row, 0, [])
    with pytest.raises(GraphError, match=r"have no names: .*\(found 'ada'\)"):
        small.with_node("ada", row, 0, [])
    taken = called(small.ids[0])
    with pytest.raises(GraphError, match=r"node 'person .*is in the graph already"):
        with_names(small).with_node(taken, row, 0, [])


UNKNOWN: dict[str, tuple[Any, type[Exception], str]] = {
    "features": (
        lambda row, one: ge.SetFeatures([one, "zoe"], np.vstack([row, row])),
        UnknownNodeError,
        r"node 'zoe' is not in the graph \(1 of 2 ids are unknown\)",
    ),
    "labels": (
        lambda row, one: ge.SetLabels(("ada", "zoe"), [0, 1]),
        UnknownNodeError,
        r"nodes '(ada|zoe)' and '(ada|zoe)' are not",
    ),
    "edges": (lambda row, one: ge.AddEdges([(one, "zoe")]), UnknownNodeError, "node 'zoe' is not"),
    "edges of new nodes": (
        lambda row, one: ge.AddNodes(["ada"], row, edges=[("ada", "zoe")]),
        UnknownNodeError,
        "node 'zoe' is not",
    ),
    "an edge of another node": (
        lambda row, one: ge.AddNodes(["ada"], row, edges=[(one, "zoe")]),
        GraphError,
        r"one of its nodes at an end \(found \['person .*: Zoë', 'zoe'\]\)",
    ),
    "a loop": (
        lambda row, one: ge.AddEdges([(one, one)]),
        GraphError,
        r"two nodes \(found \['person .*', 'person .*'\]\)",
    ),
    "features twice": (
        lambda row, one: ge.SetFeatures(["zoe", "zoe"], np.vstack([row, row])),
        ParameterError,
        "Got 'zoe' twice",
    ),
    "labels in two parts": (
        lambda row, one: [ge.SetLabels([one], [0]), ge.SetLabels([one], [1])],
        ParameterError,
        "Got 'person .*' in several",
    ),
    "new nodes in two parts": (
        lambda row, one: [ge.AddNodes(["ada"], row), ge.AddNodes(["ada"], row)],
        ParameterError,
        "Got 'ada' in several",
    ),
    "no label": (
        lambda row, one: ge.SetLabels([one], [-1]),
        GraphError,
        "found none for node 'person ",
    ),
    "changed and forgotten": (
        lambda row, one: [ge.Nodes([one]), ge.SetLabels([one], [1])],
        GraphError,
        "forgets node 'person .*'",
    ),
    "joined and forgotten": (
        lambda row, one: [
            ge.Nodes([one]),
            ge.AddNodes(["ada"], row, edges=[("ada", one)]),
        ],
        GraphError,
        "adds edges to node 'person .*', which",
    ),
}


@pytest.mark.parametrize("case", UNKNOWN)
def test_bad_changes_name_nodes_as_they_were_given(small: ge.Graph, case: str) -> None:
    make, error, message = UNKNOWN[case]
    row, one = np.ones((1, small.num_features)), called(small.ids[0])
    with pytest.raises(error, match=message):
        with_names(small).updated(make(row, one))


# -- names of classes -----------------------------------------------------------------------------


def _animals() -> ge.Graph:
    words = ["cat", "dog", "", "cat", "emu"]
    return ge.Graph.from_arrays(np.eye(5), [[0, 1], [1, 2]], words, train=[0, 1, 3, 4])


def test_labels_are_set_by_the_names_of_classes() -> None:
    graph = _animals()
    row = np.ones((3, 5))
    by_word: list[GraphChange] = [
        ge.SetLabels([0, 2], ["emu", "dog"]),
        ge.AddNodes([5, 6, 7], row, ["dog", None, "cat"]),
    ]
    by_number: list[GraphChange] = [
        ge.SetLabels([0, 2], [2, 1]),
        ge.AddNodes([5, 6, 7], row, [1, -1, 0]),
    ]
    after = graph.updated(by_word)
    assert after == graph.updated(by_number)
    assert after.labels([0, 2, 5, 6, 7]).tolist() == [2, 1, 1, -1, 0]
    assert after.class_names == ("cat", "dog", "emu")
    assert edit_of(graph, by_word).digest == edit_of(graph, by_number).digest
    assert graph.updated(ge.SetLabels(0, "dog")).labels([0]).tolist() == [1]
    assert graph.with_node(9, row[0], "emu", [0]) == graph.with_node(9, row[0], 2, [0])


def test_bad_names_of_classes_are_refused(small: ge.Graph) -> None:
    graph, mixed = _animals(), list[Any](["cat", 1])
    with pytest.raises(GraphError, match=r"cat, dog, emu \(found 'fox'\): new classes need a new"):
        graph.updated(ge.SetLabels([0, 1], ["cat", "fox"]))
    with pytest.raises(GraphError, match=r"words, or integers, and not both \(found 1\)"):
        ge.SetLabels([0, 1], mixed)
    with pytest.raises(GraphError, match="must be a class"):
        ge.SetLabels([0, 1], ["cat", None])
    with pytest.raises(GraphError, match=r"have no names: .* integers \(found 'cat'\)"):
        small.updated(ge.SetLabels([small.ids[0]], ["cat"]))
    with pytest.raises(GraphError, match="have no names"):
        ge.LinkEraser().fit(graph).update(ge.AddNodes([9], np.ones((1, 5)), ["cat"]))
