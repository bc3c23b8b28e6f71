"""Typed graphs: ids, relations, requests and changes, against plain sets of facts."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import grapheraser as ge
from grapheraser.errors import GraphError, ParameterError, UnknownEdgeError, UnknownNodeError
from grapheraser.graph import coalesce

WRITES, CITES = ("author", "writes", "paper"), ("paper", "cites", "paper")
LIKES, AT = ("author", "likes", "paper"), ("paper", "at", "venue")
EDGES: dict[tuple[str, str, str], dict[str, list[Any]]] = {
    WRITES: {"source": [0, 0, 1, 2, 2], "target": [10, 11, 11, 12, 13]},
    LIKES: {"source": [0, 3], "target": [10, 12]},
    CITES: {"source": [10, 11, 13, 12], "target": [11, 10, 12, 13], "weight": [2.0, 3.0, 4.0, 5.0]},
    AT: {"source": [10, 11, 12, 13], "target": [0, 0, 1, 1]},
}


def tables(edges: dict[Any, Any] = EDGES, **more: Any) -> ge.Graph:
    nodes = {
        "author": {"id": range(4), "age": [1.0, 2.0, 3.0, 0.5], "label": [0, 1, 0, 1]},
        "paper": {"id": range(10, 15), "a": [1.0, 0, 2, 0, 1], "b": [0.0, 1, 1, 0, 0]},
        "venue": 2,
    }
    return ge.Graph.from_typed_tables(nodes, edges, target="author", num_classes=2, **more)


def said(graph: ge.Graph) -> set[tuple[str, str, str]]:
    """All facts in words."""
    assert graph.types is not None
    names = [name for _, name, _ in graph.types.relations]
    found = graph.facts
    heads, tails = graph.names_of(found[:, 0].copy()), graph.names_of(found[:, 2].copy())
    return {(str(h), names[r], str(t)) for h, r, t in zip(heads, found[:, 1], tails, strict=True)}


def expected(edges: dict[Any, Any] = EDGES) -> set[tuple[str, str, str]]:
    return {
        (f"{a}/{u}", name, f"{b}/{v}")
        for (a, name, b), part in edges.items()
        for u, v in zip(part["source"], part["target"], strict=True)
    }


def test_a_typed_graph_has_the_facts_features_and_labels_of_its_tables() -> None:
    graph = tables()
    assert said(graph) == expected()
    assert graph.types is not None
    assert graph.types.names == ("author", "paper", "venue")
    assert graph.num_features == 3
    assert graph.train_nodes.tolist() == [0, 1, 2, 3]
    assert graph.labels([0, 1, 2, 3]).tolist() == [0, 1, 0, 1]
    paper = graph.positions(["paper/12"])
    assert graph.x[paper].toarray().tolist() == [[0.0, 2.0, 1.0]]
    assert (graph.labels(["venue/0", "paper/10"]) == -1).all()
    assert "types=author|paper|venue" in repr(graph)


def test_ids_follow_from_type_and_number_alone() -> None:
    graph, fewer = tables(), tables({WRITES: EDGES[WRITES], AT: EDGES[AT]})
    assert np.array_equal(graph.ids, fewer.ids)
    assert graph.ids_of(["author/3"]).tolist() == [3]
    assert graph.names_of(graph.ids_of(["paper/12"])).tolist() == ["paper/12"]
    node = ge.Nodes(["paper/12"])
    assert pickle.loads(pickle.dumps(node)) == node


def test_one_relation_between_two_nodes_goes_and_the_others_stay() -> None:
    graph = tables()
    rest = graph.without(ge.Edges([(0, 10)], type=LIKES))
    assert said(rest) == expected() - {("author/0", "likes", "paper/10")}
    one_way = graph.without(ge.Edges([(10, 11)], type=CITES))
    assert said(one_way) == expected() - {("paper/10", "cites", "paper/11")}
    again = one_way.without(ge.Edges([["paper/11", "cites", "paper/10"]]))
    assert said(again) == said(one_way) - {("paper/11", "cites", "paper/10")}
    both = graph.without(ge.Edges([("paper/10", "paper/11")]))
    assert both == again


@pytest.mark.parametrize(
    ("request_", "gone"),
    [
        (ge.Edges([(0, 10)], type=LIKES), [(LIKES, 0)]),
        (ge.Edges([(10, 11), (13, 12)], type=CITES), [(CITES, 0), (CITES, 2)]),
        (
            [ge.Edges([(0, 10)], type=LIKES), ge.Edges([(0, 10)], type=WRITES)],
            [(LIKES, 0), (WRITES, 0)],
        ),
    ],
)
def test_a_graph_without_a_relation_is_the_one_built_without_it(request_: Any, gone: Any) -> None:
    left: dict[Any, Any] = {
        key: {
            name: [v for at, v in enumerate(column) if (key, at) not in gone]
            for name, column in part.items()
        }
        for key, part in EDGES.items()
    }
    assert tables().without(request_).fingerprint == tables(left).fingerprint


def test_a_node_of_any_type_can_be_forgotten() -> None:
    graph = tables()
    rest = graph.without([ge.Nodes([1], type="venue"), ge.Nodes([13], type="paper")])
    assert said(rest) == {f for f in expected() if not {"venue/1", "paper/13"} & set(f)}
    assert not rest.contains(["venue/1"]).any()


def test_a_cascade_takes_what_exists_only_through_a_forgotten_node() -> None:
    graph = tables({WRITES: EDGES[WRITES], AT: EDGES[AT]})
    removal = coalesce(graph, ge.Nodes([2], cascade="paper"))
    # Papers 12 and 13 have no other author; venue 1 has no other papers, but may stay.
    assert graph.names_of(removal.followers).tolist() == ["paper/12", "paper/13"]
    more = coalesce(graph, ge.Nodes([2], type="author", cascade=["paper", "venue"]))
    assert graph.names_of(more.followers).tolist() == ["paper/12", "paper/13", "venue/1"]
    assert not len(coalesce(graph, ge.Nodes([1], cascade="paper")).followers)


def test_masks_are_over_the_nodes_of_a_type() -> None:
    graph = tables()
    rest = graph.without(ge.Nodes(np.array([True, False]), type="venue"))
    assert rest == graph.without(ge.Nodes(["venue/0"]))


def test_what_is_not_there_is_named_with_its_type() -> None:
    graph = tables()
    with pytest.raises(UnknownNodeError, match="venue/7"):
        graph.without(ge.Nodes([7], type="venue"))
    with pytest.raises(UnknownEdgeError, match=r"author/1.*paper/10"):
        graph.without(ge.Edges([(1, 10)], type=WRITES))
    with pytest.raises(GraphError, match="a type is one of author, paper, venue"):
        graph.without(ge.Nodes([7], type="shop"))
    with pytest.raises(GraphError, match="a type is one of author, paper, venue"):
        graph.without(ge.Nodes(["shop/7"]))
    with pytest.raises(GraphError, match="a relation is one of"):
        graph.without(ge.Edges([(0, 10)], type=("author", "reads", "paper")))
    with pytest.raises(ParameterError, match="no types"):
        ge.load_dataset("demo").without(ge.Nodes([1], type="author"))
    skipped = coalesce(graph, [ge.Edges([(1, 10)], type=WRITES), ge.Nodes([0])], missing="skip")
    assert skipped.num_skipped == 1


def test_named_nodes_are_called_by_type_and_name() -> None:
    nodes = {"person": {"id": ["ada", "bob"], "label": [0, 1]}, "card": 3}
    edges: dict[Any, Any] = {
        ("person", "has", "card"): {"source": ["ada", "bob"], "target": [0, 2]}
    }
    graph = ge.Graph.from_typed_tables(nodes, edges, target="person")
    assert said(graph) == {("person/ada", "has", "card/0"), ("person/bob", "has", "card/2")}
    assert graph.labels(["ada", "person/bob"]).tolist() == [0, 1]
    rest = graph.without(
        [ge.Nodes([2], type="card"), ge.Edges([("ada", 0)], type=("person", "has", "card"))]
    )
    assert said(rest) == set()
    assert not rest.contains(["card/2"]).any()


def test_facts_come_back_and_can_be_forgotten_one_by_one() -> None:
    rng = np.random.default_rng(0)
    triples = np.unique(
        np.stack(
            [rng.integers(20, size=300), rng.integers(40, size=300), rng.integers(20, size=300)], 1
        ),
        axis=0,
    )
    triples = triples[triples[:, 0] != triples[:, 2]]
    names = [f"r{i}" for i in range(40)]
    graph = ge.Graph.from_facts(triples, entities=20, relations=names)
    assert graph.inferred == ()
    assert sorted(map(tuple, graph.facts.tolist())) == sorted(map(tuple, triples.tolist()))
    head, relation, tail = triples[7].tolist()
    rest = graph.without(ge.Edges([(head, tail)], type=("entity", names[relation], "entity")))
    left = ge.Graph.from_facts(np.delete(triples, 7, axis=0), entities=20, relations=names)
    assert rest.fingerprint == left.fingerprint
    found = ge.Graph.from_facts([("a", "knows", "b"), ("b", "likes", "a")])
    assert found.inferred == ("entities", "relations")
    assert said(found) == {("a", "knows", "b"), ("b", "likes", "a")}


def test_changes_add_nodes_edges_and_features_of_a_type() -> None:
    graph = tables()
    changed = graph.updated(
        [
            ge.AddNodes([14 + 1], [[5.0, 6.0]], type="paper"),
            ge.AddEdges([(3, 15), (0, 10)], type=WRITES),
            ge.AddEdges([(15, 10)], [7.0], type=CITES),
            ge.SetFeatures([10], [[9.0, 9.0]], type="paper"),
        ]
    )
    new = {("author/3", "writes", "paper/15"), ("paper/15", "cites", "paper/10")}
    assert said(changed) == expected() | new
    assert changed.x[changed.positions(["paper/15", "paper/10"])].toarray().tolist() == [
        [0.0, 5.0, 6.0],
        [0.0, 9.0, 9.0],
    ]
    assert changed.without([ge.Nodes([15], type="paper")]).x.shape == graph.x.shape
    with pytest.raises(ParameterError, match="needs 'type'"):
        graph.updated(ge.AddEdges([(0, 12)]))


def test_npz_and_stores_keep_types(tmp_path: Path) -> None:
    graph = tables()
    graph.to_npz(tmp_path / "typed.npz")
    read = ge.Graph.from_npz(tmp_path / "typed.npz")
    assert read.fingerprint == graph.fingerprint
    assert read.types == graph.types
    assert said(read) == expected()


def test_hetero_data_goes_in_and_comes_out() -> None:
    torch = pytest.importorskip("torch")
    data = pytest.importorskip("torch_geometric.data").HeteroData()
    data["author"].x = torch.tensor([[1.0], [2.0], [3.0]])
    data["author"].y = torch.tensor([0, 1, -1])
    data["author"].train_mask = torch.tensor([True, False, False])
    data["author"].test_mask = torch.tensor([False, True, False])
    data["paper"].num_nodes = 4
    data["author", "writes", "paper"].edge_index = torch.tensor([[0, 1, 2, 2], [0, 1, 1, 3]])
    data["paper", "rev_writes", "author"].edge_index = torch.tensor([[0, 1, 1, 3], [0, 1, 2, 2]])
    data["paper", "cites", "paper"].edge_index = torch.tensor([[3, 0], [0, 1]])
    data["paper", "cites", "paper"].edge_weight = torch.tensor([0.5, 0.25])
    with pytest.warns(UserWarning, match="walked both ways"):
        graph = ge.Graph.from_pyg(data, target="author")
    assert graph.train_nodes.tolist() == [0]
    back = graph.to_pyg()
    assert back.metadata()[0] == ["author", "paper"]
    for relation in (("author", "writes", "paper"), ("paper", "cites", "paper")):
        assert sorted(map(tuple, back[relation].edge_index.T.tolist())) == sorted(
            map(tuple, data[relation].edge_index.T.tolist())
        )
    weights = dict(
        zip(
            map(tuple, back["paper", "cites", "paper"].edge_index.T.tolist()),
            back["paper", "cites", "paper"].edge_weight.tolist(),
            strict=True,
        )
    )
    assert weights == {(3, 0): 0.5, (0, 1): 0.25}
    assert ge.Graph.from_pyg(back, target="author").fingerprint == graph.fingerprint
    with pytest.raises(GraphError, match="needs 'target'"):
        ge.Graph.from_pyg(data)
