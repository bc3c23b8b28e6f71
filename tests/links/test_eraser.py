"""LinkEraser: verbs, bad input, files, bipartite graphs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from torch_geometric.data import Data

import grapheraser as ge
from grapheraser import errors
from grapheraser.eraser import load_eraser
from grapheraser.graph.edge_values import EdgeKind
from grapheraser.links.answers import fitted_links
from grapheraser.links.counts import DIRECTIONS
from grapheraser.receipts import digest_of
from tests.links.graphs import bipartite_graph
from tests.strategies import TwoHops, small_graph, with_edge_values


@pytest.fixture(scope="module")
def graph() -> ge.Graph:
    return small_graph(n=60)


@pytest.fixture
def links(graph: ge.Graph) -> ge.LinkEraser:
    return ge.LinkEraser().fit(graph)


def pairs_of(graph: ge.Graph, count: int = 5) -> list[tuple[int, int]]:
    ids = graph.ids.tolist()
    return [(ids[i], ids[-1 - i]) for i in range(count)]


# -- predicting -----------------------------------------------------------------------------------


def test_a_pair_has_one_probability_in_either_order_and_as_often_as_asked(
    links: ge.LinkEraser, graph: ge.Graph
) -> None:
    (u, v), other = pairs_of(graph, 2)
    found = links.predict_proba([(u, v), (v, u), other, (u, v)])
    assert found.shape == (4,)
    assert found.dtype == np.float32
    assert found[0] == found[1] == found[3]
    assert ((found >= 0) & (found <= 1)).all()


def test_no_pairs_have_no_probabilities(links: ge.LinkEraser) -> None:
    assert links.predict_proba([]).shape == (0,)
    assert links.predict_proba(np.zeros((0, 2), dtype=np.int64)).shape == (0,)


def test_edges_of_a_graph_with_groups_score_higher(demo: ge.Graph) -> None:
    links = ge.LinkEraser().fit(demo)
    rng = np.random.default_rng(0)
    others = demo.ids[rng.integers(demo.num_nodes, size=(500, 2))]
    others = others[others[:, 0] != others[:, 1]]
    others = others[~demo.has_edges(others)]
    edges = demo.edges[rng.permutation(demo.num_edges)[: len(others)]]
    labels = np.repeat([1, 0], [len(edges), len(others)])
    score = links.score(np.concatenate([edges, others]), labels)
    assert score.auc > 0.7
    assert links.score(np.concatenate([edges, others]), 1 - labels).auc == pytest.approx(
        1 - score.auc
    )


@pytest.mark.parametrize(
    ("pairs", "error", "words"),
    [
        ([(0, 10**6)], errors.UnknownNodeError, "node 1000000 is not in the graph"),
        ([(-3, 5)], errors.UnknownNodeError, "node -3 is not in the graph"),
        ([1, 2, 3], errors.ParameterError, "must have the shape \\[m, 2\\]"),
        ([[1, 2, 3]], errors.ParameterError, "must have the shape \\[m, 2\\]"),
        ([(0.5, 1.5)], errors.InputError, "node ids must be 64-bit integers"),
    ],
)
def test_bad_pairs_are_refused(
    links: ge.LinkEraser, pairs: Any, error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        links.predict_proba(pairs)


def test_a_node_with_itself_is_no_pair(links: ge.LinkEraser, graph: ge.Graph) -> None:
    node = int(graph.ids[3])
    with pytest.raises(errors.ParameterError, match=f"must be two nodes. Got \\[{node}, {node}\\]"):
        links.predict_proba([*pairs_of(graph), (node, node)])


@pytest.mark.parametrize("labels", [[1], [0, 1, 2, 0, 1], [[1, 0, 1, 0, 1]]])
def test_bad_labels_are_refused(links: ge.LinkEraser, graph: ge.Graph, labels: Any) -> None:
    with pytest.raises(errors.ParameterError, match="must be 0 or 1 for each of 5 pairs"):
        links.score(pairs_of(graph), labels)


def test_nothing_works_before_fit() -> None:
    with pytest.raises(errors.NotFittedError, match="this LinkEraser is not fitted yet"):
        ge.LinkEraser().predict_proba([(1, 2)])


# -- fitting --------------------------------------------------------------------------------------


def test_labels_and_roles_have_no_part_in_it(graph: ge.Graph) -> None:
    x, edges = graph.x, graph.edges.T
    bare = ge.Graph.from_arrays(
        x, edges, np.full(graph.num_nodes, -1), ids=graph.ids, num_classes=1, each_edge_once=True
    )
    one, other = ge.LinkEraser().fit(graph), ge.LinkEraser().fit(bare)
    assert one.graph_ == other.graph_
    assert one.weights_ == other.weights_


def test_a_pyg_data_needs_no_labels_and_stays_as_it_is(graph: ge.Graph) -> None:
    full = graph.to_pyg()
    bare = Data(x=full.x, edge_index=full.edge_index, node_id=full.node_id)
    keys = sorted(full.keys())
    one, other = ge.LinkEraser().fit(full), ge.LinkEraser().fit(bare)
    assert one.graph_ == other.graph_ == ge.LinkEraser().fit(graph).graph_
    assert sorted(full.keys()) == keys
    assert int(full.y.max()) > 0
    with pytest.raises(errors.GraphError, match="needs 'x', 'edge_index' and 'y'"):
        ge.LinkEraser().fit(Data(edge_index=full.edge_index))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"members": "all"}, "'members' of LinkEraser must be 'closed-form', 'shards' or 'both'"),
        ({"sample": 0}, "'sample' of LinkEraser must be a positive int or 'auto'"),
        ({"sample": "some"}, "'sample' of LinkEraser must be a positive int or 'auto'"),
        ({"sides": 1.5}, "'sides' of LinkEraser must be None, 'labels', or the smallest id"),
        ({"num_shards": 3}, "'num_shards' of LinkEraser must be 20 with members 'closed-form'"),
        ({"model": "sage"}, "'model' of LinkEraser must be 'gcn' with members 'closed-form'"),
        ({"members": "shards", "num_shards": 1}, "'num_shards' of LinkEraser"),
        ({"members": "both", "model": "sgc"}, "'model' of LinkEraser must be the name of a GNN"),
        ({"seed": "x"}, "'seed' of LinkEraser must be an int"),
    ],
)
def test_bad_arguments_are_refused(graph: ge.Graph, arguments: dict[str, Any], words: str) -> None:
    with pytest.raises(errors.ParameterError, match=words):
        ge.LinkEraser(**arguments).fit(graph)


def test_a_graph_without_edges_teaches_no_links() -> None:
    bare = ge.Graph.from_arrays(np.eye(3), np.zeros((2, 0), dtype=int), [0, 0, 0])
    with pytest.raises(errors.GraphError, match="has no edges to learn links from"):
        ge.LinkEraser().fit(bare)


def test_a_complete_graph_says_that_it_teaches_nothing() -> None:
    pairs = np.array([(u, v) for u in range(5) for v in range(u)]).T
    complete = ge.Graph.from_arrays(np.eye(5), pairs, np.zeros(5, dtype=int), each_edge_once=True)
    links = ge.LinkEraser().fit(complete)
    assert links.predict_proba([(0, 1)]).tolist() == [0.5]
    assert "no pair without an edge could be sampled" in fitted_links(links._snapshot).notes[0]
    assert len(links.rank(0).nodes) == 0


# -- forgetting -----------------------------------------------------------------------------------


def test_forgetting_is_receipted_and_verified(links: ge.LinkEraser, graph: ge.Graph) -> None:
    u, v = graph.edges[3].tolist()
    receipt = links.unlearn([ge.Edges([(u, v)]), ge.Nodes([int(graph.ids[9])])])
    assert receipt.statement == "exact"
    assert (receipt.counts["nodes"], receipt.sequence) == (1, 1)
    assert links._snapshot.document["graph"] == links.graph_.fingerprint
    assert receipt.after == digest_of(links._snapshot.document)
    assert links.verify().identical
    assert [part.about["forget"] for part in receipt.parts] in (["edge", "node"], ["node", "edge"])
    with pytest.raises(errors.UnknownNodeError, match="not in the graph"):
        links.unlearn([ge.Edges([(u, v)]), ge.Nodes([int(graph.ids[9])])])
    with pytest.raises(errors.UnknownNodeError):
        links.predict_proba([(int(graph.ids[9]), u)])


def test_a_plan_changes_nothing(links: ge.LinkEraser, graph: ge.Graph) -> None:
    before = links.graph_
    plan = links.plan(ge.Nodes([int(graph.ids[2])]))
    assert len(plan.touched) == len(graph.neighbours(int(graph.ids[2])))
    assert links.graph_ is before
    assert not links.receipts_


def test_the_last_edges_can_not_be_forgotten() -> None:
    pair = ge.Graph.from_arrays(np.eye(4), [[0, 1], [2, 3]], np.zeros(4, dtype=int))
    links = ge.LinkEraser().fit(pair)
    before = links.graph_
    for request in (ge.Edges([(0, 2), (1, 3)]), ge.Nodes([0, 1]), ge.Nodes([0, 1, 2, 3])):
        with pytest.raises(errors.EmptyEnsembleError):
            links.unlearn(request)
        assert links.graph_ is before
    links.unlearn(ge.Edges([(0, 2)]))
    assert links.verify().identical


def test_a_tampered_weight_is_found(links: ge.LinkEraser, graph: ge.Graph) -> None:
    links.unlearn(ge.Nodes([int(graph.ids[0])]))
    fitted = fitted_links(links._snapshot)
    fitted.weights.flags.writeable = True
    fitted.weights[2] += 1e-9
    found = links.verify()
    assert not found.identical
    assert any("aggregator" in difference for difference in found.differences)


# -- keeping --------------------------------------------------------------------------------------


@pytest.mark.parametrize("members", ["closed-form", "both"])
def test_a_saved_run_predicts_and_forgets_as_before(
    members: str, graph: ge.Graph, tmp_path: Path
) -> None:
    options: dict[str, Any] = {"num_shards": 3, "epochs": 2} if members == "both" else {}
    links = ge.LinkEraser(members, **options).fit(graph)
    links.unlearn(ge.Nodes([int(graph.ids[4])]))
    links.save(tmp_path / "run")
    loaded = ge.LinkEraser.load(tmp_path / "run")
    assert loaded.get_params() == links.get_params()
    rest = links.graph_.ids
    pairs = [(int(rest[i]), int(rest[-1 - i])) for i in range(10)]
    assert np.array_equal(loaded.predict_proba(pairs), links.predict_proba(pairs))
    assert np.array_equal(loaded.rank(pairs[0][0]).nodes, links.rank(pairs[0][0]).nodes)
    request = ge.Nodes([int(rest[6])])
    links.unlearn(request)
    loaded.unlearn(request)
    assert loaded.weights_ == links.weights_
    assert loaded.verify().identical
    loaded.save(tmp_path / "run")
    assert ge.LinkEraser.load(tmp_path / "run").verify().identical


def test_an_encoder_of_ones_own_is_asked_for_again(graph: ge.Graph, tmp_path: Path) -> None:
    options: dict[str, Any] = {"num_shards": 2, "epochs": 1, "model": TwoHops}
    ge.LinkEraser("shards", **options).fit(graph).save(tmp_path / "run")
    with pytest.raises(errors.ParameterError, match="fitted with 'model' of its own"):
        ge.LinkEraser.load(tmp_path / "run")
    assert ge.LinkEraser.load(tmp_path / "run", model=TwoHops).verify().identical


def test_a_run_of_the_other_kind_is_refused_by_name(graph: ge.Graph, tmp_path: Path) -> None:
    ge.LinkEraser().fit(graph).save(tmp_path / "links")
    ge.GraphEraser("closed-form").fit(graph).save(tmp_path / "nodes")
    with pytest.raises(errors.RunKindError, match="a run that predicts links"):
        ge.GraphEraser.load(tmp_path / "links")
    with pytest.raises(errors.RunKindError, match="a run that predicts the classes of nodes"):
        ge.LinkEraser.load(tmp_path / "nodes")
    assert isinstance(load_eraser(tmp_path / "links"), ge.LinkEraser)
    assert isinstance(load_eraser(tmp_path / "nodes"), ge.GraphEraser)


def test_a_run_keeps_no_labels(graph: ge.Graph, tmp_path: Path) -> None:
    ge.LinkEraser().fit(graph).save(tmp_path / "run")
    assert set(ge.LinkEraser.load(tmp_path / "run").graph_.y.tolist()) == {0}


# -- bipartite graphs -----------------------------------------------------------------------------


@pytest.mark.parametrize("by_label", [True, False])
def test_items_are_recommended_to_users(by_label: bool) -> None:
    graph, second = bipartite_graph()
    shop = ge.LinkEraser(sides="labels" if by_label else second).fit(graph)
    ranked = shop.rank(0, top=5)
    assert len(ranked.nodes) == 5
    assert (ranked.nodes >= second).all()
    assert not set(ranked.nodes.tolist()) & set(graph.neighbours(0).tolist())
    assert (shop.rank(second, top=3).nodes < second).all()


def test_pairs_and_edges_within_a_side_are_refused() -> None:
    graph, second = bipartite_graph()
    shop = ge.LinkEraser(sides=second).fit(graph)
    with pytest.raises(errors.ParameterError, match="must be of both sides"):
        shop.predict_proba([(0, second), (0, 1)])
    with pytest.raises(errors.GraphError, match="between two nodes of one side"):
        ge.LinkEraser(sides=second).fit(small_graph())
    with pytest.raises(errors.GraphError, match="needs the class 0 or 1 of every node"):
        ge.LinkEraser(sides="labels").fit(small_graph())
    with pytest.raises(errors.GraphError, match=r"must join both sides .* are on one side"):
        shop.insert(second - 1, [1.0, 0, 0], [0])


def test_a_new_user_joins_the_side_that_the_id_or_the_caller_says() -> None:
    graph, second = bipartite_graph()
    by_id = ge.LinkEraser(sides=second).fit(graph)
    by_id.insert(second - 1, [1.0, 0, 0], [second])
    assert by_id.graph_.labels([second - 1]).tolist() == [0]
    with pytest.raises(errors.ParameterError, match=r"'side' of LinkEraser.insert has no part"):
        by_id.insert(second - 2, [1.0, 0, 0], [second], side=0)
    by_label = ge.LinkEraser(sides="labels").fit(graph)
    with pytest.raises(errors.ParameterError, match=r"'side' of LinkEraser.insert must be"):
        by_label.insert(second - 1, [1.0, 0, 0], [second])
    by_label.insert(second - 1, [1.0, 0, 0], [second], side=0)
    assert by_label.verify().identical


# -- what edges carry, and labels -----------------------------------------------------------------


def test_features_of_edges_are_left_out_and_said(graph: ge.Graph) -> None:
    carrying = with_edge_values(graph, columns=2, weighted=False)
    plain = ge.LinkEraser().fit(graph)
    with pytest.warns(UserWarning, match="links are learned without the features of edges"):
        links = ge.LinkEraser().fit(carrying)
    assert links.weights_ == plain.weights_
    assert links.graph_ == plain.graph_
    assert "the features of edges" in links.graph_.notes[-1]


def groups(*, directed: bool = False) -> tuple[ge.Graph, NDArray[Any], NDArray[Any]]:
    """Two groups with heavy edges inside and light ones between; pairs, and which are inside.

    If directed, edges lead from odd ids to even ones, and pairs are told apart by that alone.
    """
    rng = np.random.default_rng(0)
    pairs = np.argwhere(np.triu(rng.random((120, 120)) < 0.15, 1))
    same = pairs[:, 0] % 4 // 2 == pairs[:, 1] % 4 // 2
    asked = np.argwhere(np.triu(rng.random((120, 120)) < 0.05, 1))
    labels = asked[:, 0] % 4 // 2 == asked[:, 1] % 4 // 2
    weights = np.where(same, 4.0, 0.01)
    if directed:
        crossing = pairs.sum(axis=1) % 2 == 1
        pairs, weights = pairs[crossing], weights[crossing]
        pairs = np.where(pairs[:, :1] % 2 == 1, pairs, pairs[:, ::-1])
        asked = asked[asked.sum(axis=1) % 2 == 1]
        labels = asked[:, 0] % 2 == 1
    return (
        ge.Graph.from_arrays(
            rng.random((120, 5)),
            pairs.T,
            np.zeros(120, dtype=int),
            edge_weight=None if directed else weights,
            directed=directed,
            each_edge_once=True,
        ),
        asked,
        labels,
    )


def test_weights_say_which_edges_count() -> None:
    graph, pairs, labels = groups()
    light = graph.edges[graph.edge_weight[graph.sources < graph.indices] < 1]  # type: ignore[index]
    graph = graph.without(ge.Edges(light[::2]))
    with_weights, without = ge.LinkEraser().fit(graph), ge.LinkEraser().fit(graph.without_weights())
    assert with_weights.graph_.edge_kind.weighted
    assert with_weights.score(pairs, labels).auc > without.score(pairs, labels).auc + 0.1


def test_directions_say_which_way_a_link_leads() -> None:
    graph, pairs, labels = groups(directed=True)
    links = ge.LinkEraser().fit(graph)
    assert links.score(pairs, labels).auc > 0.95
    assert links.score(pairs[:, ::-1], labels).auc < 0.05
    assert set(links.weights_) - set(ge.LinkEraser().fit(graph.undirected()).weights_) == {
        *DIRECTIONS
    }
    ranked = links.rank(7, top=20)  # an odd id
    assert (ranked.nodes % 2 == 0).all()
    leads = {(u, v) for u, v in graph.ids[graph.edge_index].T.tolist()}
    assert not {(7, v) for v in ranked.nodes.tolist()} & leads


def test_an_edge_that_leads_one_way_may_be_suggested_the_other_way() -> None:
    ring = np.stack([np.arange(6), (np.arange(6) + 1) % 6])
    graph = ge.Graph.from_arrays(np.eye(6), ring, np.zeros(6, dtype=int), directed=True)
    ranked = ge.LinkEraser().fit(graph).rank(0)
    assert 1 not in ranked.nodes
    assert 5 in ranked.nodes


@pytest.mark.parametrize("directed", [False, True])
def test_runs_with_weights_and_directions_are_kept(
    graph: ge.Graph, tmp_path: Path, directed: bool
) -> None:
    valued = with_edge_values(graph, directed=directed)
    links = ge.LinkEraser(sample=8).fit(valued)
    links.unlearn(ge.Edges([valued.edges[2].tolist()]))
    new = int(graph.ids[-1]) + 1
    near = graph.ids[:2].tolist()
    links.insert(new, np.ones(graph.num_features), near, edge_weight=[0.5, 2.0])
    links.save(tmp_path / "run")
    loaded = ge.LinkEraser.load(tmp_path / "run")
    assert loaded.graph_ == links.graph_
    assert loaded.graph_.edge_kind == EdgeKind(directed=directed, weighted=True)
    assert loaded.weights_ == links.weights_
    pairs = [(new, near[0]), (near[1], new)]
    assert loaded.predict_proba(pairs).tolist() == links.predict_proba(pairs).tolist()
    assert loaded.verify().identical
    with pytest.raises(errors.GraphError, match="needs one"):
        loaded.insert(new + 1, np.ones(graph.num_features), near)


@pytest.mark.parametrize("weight", [-0.5, 1e13])
def test_weights_that_can_not_be_counted_are_refused(graph: ge.Graph, weight: float) -> None:
    valued = with_edge_values(graph)
    links = ge.LinkEraser().fit(valued)
    a, b = graph.ids[0], graph.ids[-1]
    before = links.graph_
    with pytest.raises(errors.GraphError, match=r"weights must be in \[0, 1e\+12\] \(found"):
        links.update([ge.Edges([valued.edges[2]]), ge.AddEdges([(a, b)], [weight])])
    assert links.graph_ is before
    with pytest.raises(errors.GraphError, match="an edge counts by the root of its weight"):
        ge.LinkEraser().fit(valued.updated(ge.AddEdges([(a, b)], [weight])))


@pytest.mark.parametrize("members", ["shards", "both"])
def test_encoders_refuse_what_they_can_not_use(graph: ge.Graph, members: str) -> None:
    options: dict[str, Any] = {"num_shards": 2, "epochs": 1, "width": 4}
    directed = with_edge_values(graph, weighted=False, directed=True)
    with pytest.raises(errors.GraphError, match="not which way"):
        ge.LinkEraser(members, **options).fit(directed)
    weighted = with_edge_values(graph)
    with pytest.raises(errors.GraphError, match="model 'sage' can't use the 'edge_weight'"):
        ge.LinkEraser(members, model="sage", **options).fit(weighted)
    one, other = (ge.LinkEraser(members, **options).fit(g) for g in (weighted, graph))
    assert one.shards_[0].tensors["conv1.lin.weight"].tobytes() != (
        other.shards_[0].tensors["conv1.lin.weight"].tobytes()
    )


def test_labels_of_a_link_run_can_not_be_forgotten(links: ge.LinkEraser, graph: ge.Graph) -> None:
    before = links.graph_
    with pytest.raises(errors.NothingToForgetError, match="a link run keeps no labels"):
        links.unlearn([ge.Nodes([int(graph.ids[0])]), ge.Labels([int(graph.ids[1])])])
    assert links.graph_ is before
