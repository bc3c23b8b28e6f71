"""`ge.Embedder` as a user meets it."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline

import grapheraser as ge
from grapheraser.errors import (
    EmptyEnsembleError,
    GraphError,
    NotFittedError,
    NothingToForgetError,
    ParameterError,
    RunKindError,
    UnknownNodeError,
)
from tests.strategies import small_graph


@pytest.fixture(scope="module")
def graph() -> ge.Graph:
    return ge.load_dataset("demo")


@pytest.fixture
def embedder(graph: ge.Graph) -> ge.Embedder:
    return ge.Embedder().fit(graph)


def test_rows_are_by_node_and_the_same_whatever_is_asked_with_them(
    graph: ge.Graph, embedder: ge.Embedder
) -> None:
    rows = embedder.transform(graph.ids)
    assert rows.shape == (graph.num_nodes, 128)
    assert rows.dtype == np.float32
    some = graph.ids[[5, 2, 5]]
    assert embedder.transform(some).tobytes() == rows[[5, 2, 5]].tobytes()
    assert len(embedder.transform([])) == 0
    assert np.array_equal(ge.Embedder().fit_transform(graph), rows)


def test_the_seed_decides(graph: ge.Graph, embedder: ge.Embedder) -> None:
    same, other = (ge.Embedder(seed=seed).fit_transform(graph) for seed in (0, 1))
    assert np.array_equal(same, embedder.transform(graph.ids))
    assert not np.array_equal(other, same)


def test_labels_and_roles_have_no_part(graph: ge.Graph, embedder: ge.Embedder) -> None:
    y = np.arange(graph.num_nodes) % 3
    bare = ge.Graph.from_arrays(graph.x, graph.edges.T, y, each_edge_once=True, ids=graph.ids)
    assert np.array_equal(ge.Embedder().fit_transform(bare), embedder.transform(graph.ids))


def test_features_have_a_part_only_if_wanted(graph: ge.Graph) -> None:
    forget = ge.Features(graph.ids[:1])
    with_features, without = ge.Embedder().fit(graph), ge.Embedder(features=False).fit(graph)
    assert len(with_features.unlearn(forget).changed) > 0
    assert without.unlearn(forget).changed == ()


@pytest.mark.parametrize("steps", [(0, 1, 1), "learned"])
def test_forgetting_leaves_the_rows_of_a_fresh_fit(graph: ge.Graph, steps: Any) -> None:
    embedder = ge.Embedder(steps=steps, seed=3).fit(graph)
    before = embedder.transform(graph.ids)
    receipt = embedder.unlearn(ge.Nodes(graph.ids[:2]))
    rest = graph.ids[2:]
    fresh = ge.Embedder(steps=steps, seed=3).fit(graph.without(ge.Nodes(graph.ids[:2])))
    after = embedder.transform(rest)
    assert np.array_equal(after, fresh.transform(rest))
    differs = rest[(before[2:] != after).any(axis=1)]
    assert set(differs.tolist()) <= set(receipt.changed)
    assert receipt.statement == "exact"
    assert embedder.verify().identical
    with pytest.raises(UnknownNodeError):
        embedder.transform(graph.ids[:1])


def test_verify_finds_signs_that_are_not_those_of_the_graph(embedder: ge.Embedder) -> None:
    tally = embedder._snapshot.state.aggregator.tally  # type: ignore[attr-defined]
    tally._signs[0, 0, 0] ^= np.uint64(1)
    verification = embedder.verify()
    assert not verification.identical
    assert len(verification.differences) == 1
    assert verification.differences[0].startswith("aggregator/signs: 1 of")


def test_what_moved_is_told_once_and_kept_without_those_who_went(
    graph: ge.Graph, embedder: ge.Embedder, tmp_path: Path
) -> None:
    index = embedder.changes()
    assert index.since is None
    assert index.version == 0
    assert len(index) == graph.num_nodes
    known = dict(zip(index.ids.tolist(), index.rows, strict=True))
    first = embedder.unlearn(ge.Nodes(graph.ids[:1]))
    second = embedder.unlearn(ge.Edges([tuple(embedder.graph_.edges[3].tolist())]))
    assert embedder.receipts_[-1].changed == ()
    assert "changed" not in second.to_json()
    delta = embedder.changes(since=index.version, log=index.log)
    assert set(delta.ids.tolist()) == (set(first.changed) | set(second.changed))
    assert embedder.changes(since=1).ids.tolist() == list(second.changed)
    known |= dict(zip(delta.ids.tolist(), delta.rows, strict=True))
    assert delta.gone(list(known)).tolist() == graph.ids[:1].tolist()
    for node in delta.gone(list(known)).tolist():
        del known[node]
    fresh = ge.Embedder().fit(embedder.graph_).changes()
    assert sorted(known) == fresh.ids.tolist()
    assert np.array_equal([known[node] for node in fresh.ids.tolist()], fresh.rows)
    embedder.save(tmp_path / "run")
    loaded = ge.Embedder.load(tmp_path / "run")
    assert np.array_equal(loaded.changes(since=0).rows, delta.rows)
    assert loaded.version_ == 2
    assert loaded.verify().identical


def test_acknowledged_changes_are_let_go_of(graph: ge.Graph, embedder: ge.Embedder) -> None:
    embedder.unlearn(ge.Nodes(graph.ids[:1]))
    embedder.acknowledge(1)
    assert len(embedder.changes(since=1)) == 0
    assert len(embedder._snapshot.state.aggregator.kept["beside/moved nodes"]) == 0  # type: ignore[attr-defined]
    with pytest.raises(ParameterError, match=r"'since' of Embedder.changes must be an int in \[1"):
        embedder.changes(since=0)
    with pytest.raises(ParameterError, match=r"'version' of Embedder.acknowledge"):
        embedder.acknowledge(2)
    assert embedder.verify().identical


def test_versions_of_another_log_are_refused(graph: ge.Graph, embedder: ge.Embedder) -> None:
    filled = embedder.changes()
    embedder.unlearn(ge.Nodes(graph.ids[:1]))
    embedder.begin_log()
    assert embedder.version_ == 0
    assert len(embedder.changes(since=0)) == 0
    with pytest.raises(ParameterError, match="another log"):
        embedder.changes(since=filled.version, log=filled.log)


def test_changes_go_out_as_arrow_parquet_and_json(embedder: ge.Embedder, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    changes = embedder.changes()
    changes.to_parquet(tmp_path / "rows.parquet")
    table = parquet.read_table(tmp_path / "rows.parquet")
    assert table["id"].to_pylist() == changes.ids.tolist()
    assert np.array_equal(np.array(table["row"].to_pylist(), dtype=np.float32), changes.rows)
    assert table.schema.metadata[b"version"] == b"0"
    changes.to_jsonl(tmp_path / "rows.jsonl")
    lines = [json.loads(line) for line in (tmp_path / "rows.jsonl").read_text().splitlines()]
    assert [line["id"] for line in lines] == changes.ids.tolist()
    assert np.array_equal(np.array([x["row"] for x in lines], np.float32), changes.rows)


def test_new_rows_have_the_bits_of_one_by_one_and_keep_nothing(
    graph: ge.Graph, embedder: ge.Embedder
) -> None:
    x = graph.x[:3].toarray()
    near: list[Any] = [graph.ids[4:7], [int(graph.ids[9])], []]
    found = embedder.transform_new(x, near)
    assert found.shape == (3, 128)
    assert found[:2].any(axis=1).all()
    alone = [embedder.transform_new(x[[at]], [near[at]])[0] for at in range(3)]
    assert np.array_equal(found, alone)
    plain = ge.Embedder(features=False).fit(graph)
    nobody_near = plain.transform_new(x, near)[2]
    assert nobody_near.tolist() == [0.0] * 127 + [1.0]  # where all rows lead to a little
    assert embedder.graph_.ids.tolist() == graph.ids.tolist()
    with pytest.raises(ParameterError, match="a row and a list for each node"):
        embedder.transform_new(x, near[:2])


def test_added_nodes_have_rows_and_are_named(graph: ge.Graph, embedder: ge.Embedder) -> None:
    new = int(graph.ids[-1]) + 7
    x = graph.x[[0]].toarray()
    receipt = embedder.update([ge.AddNodes([new], x, edges=[(new, int(graph.ids[0]))])])
    assert new in receipt.changed
    assert np.array_equal(
        embedder.transform(embedder.graph_.ids),
        ge.Embedder().fit(embedder.graph_).transform(embedder.graph_.ids),
    )
    embedder.unlearn(ge.Nodes([new]))
    assert new not in embedder.changes(since=0).ids


def test_a_pipeline_classifies_nodes(graph: ge.Graph) -> None:
    labelled, y = graph.train_nodes, graph.labels(graph.train_nodes)
    rows = ge.Embedder(features=False).on(graph)
    pipeline = Pipeline([("rows", rows), ("model", LogisticRegression(max_iter=300))])
    search = GridSearchCV(pipeline, {"rows__embedder__width": [16, 64]}, cv=2)
    search.fit(labelled, y)
    assert search.best_params_["rows__embedder__width"] in (16, 64)
    test = graph.labelled_test_nodes
    assert search.score(test, graph.labels(test)) > 1.5 / graph.num_classes


def test_an_earlier_state_still_answers_after_a_later_one_took_its_votes(
    graph: ge.Graph, embedder: ge.Embedder
) -> None:
    before, rows = embedder._snapshot, embedder.transform(graph.ids)
    embedder.unlearn(ge.Nodes(graph.ids[:1]))
    fitted: Any = before.state.aggregator
    assert np.array_equal(fitted.rows(before.state.graph, graph.ids, 0), rows)
    copied = pickle.loads(pickle.dumps(embedder))
    assert np.array_equal(copied.transform(graph.ids[1:]), embedder.transform(graph.ids[1:]))


def test_names_lead_to_rows_and_come_back_in_changes() -> None:
    names = ["ada", "bob", "cleo", "dan"]
    graph = ge.Graph.from_arrays(np.eye(4), [names[:-1], names[1:]], [0] * 4, ids=names)
    embedder = ge.Embedder(width=8, landmarks=2).fit(graph)
    assert embedder.transform(["bob"]).shape == (1, 8)
    everyone = embedder.changes()
    embedder.unlearn(ge.Nodes(["bob"]))
    delta = embedder.changes(since=0)
    assert embedder.transform_new(np.eye(4)[:1], [["ada"]]).shape == (1, 8)
    assert "bob" not in delta.ids.tolist()
    assert delta.gone(everyone.ids).tolist() == ["bob"]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("width", 1),
        ("steps", ()),
        ("steps", (1,)),
        ("steps", (1, 0)),
        ("steps", "all"),
        ("features", 1),
        ("neighbours", 32),
        ("landmarks", 3),
        ("seed", "x"),
    ],
)
def test_arguments_out_of_range_are_refused(graph: ge.Graph, name: str, value: Any) -> None:
    with pytest.raises(ParameterError, match=f"'{name}' of Embedder must be"):
        ge.Embedder(**{name: value}).fit(graph)


def test_what_can_not_be_done_is_refused_and_changes_nothing(
    graph: ge.Graph, embedder: ge.Embedder, tmp_path: Path
) -> None:
    rows = embedder.transform(graph.ids)
    with pytest.raises(NothingToForgetError, match="keeps no labels"):
        embedder.unlearn(ge.Labels(graph.ids[:1]))
    with pytest.raises(EmptyEnsembleError, match="no row left"):
        embedder.unlearn(ge.Nodes(graph.ids))
    with pytest.raises(GraphError, match="'y' of AddNodes"):
        embedder.update([ge.AddNodes([10**6], graph.x[[0]].toarray(), y=[1])])
    assert np.array_equal(embedder.transform(graph.ids), rows)
    assert not embedder.receipts_
    with pytest.raises(NotFittedError):
        ge.Embedder().transform([1])
    embedder.save(tmp_path / "run")
    with pytest.raises(RunKindError, match="embeddings of nodes"):
        ge.LinkEraser.load(tmp_path / "run")


def test_what_edges_carry_is_left_out_aloud() -> None:
    graph = small_graph()
    weighted = ge.Graph.from_arrays(
        graph.x,
        graph.edges.T,
        graph.y,
        ids=graph.ids,
        each_edge_once=True,
        edge_weight=np.ones(graph.num_edges),
    )
    with pytest.warns(UserWarning, match="without the weights of edges"):
        embedder = ge.Embedder().fit(weighted)
    assert any("without the weights" in note for note in embedder.graph_.notes)


def test_rows_of_typed_graphs_are_called_by_type_and_forget(tmp_path: Path) -> None:
    visits, pairs = (
        ("user", "visits", "shop"),
        [(u, (3 * u + k) % 7) for u in range(20) for k in (0, 1)],
    )
    ties = {"source": [u for u, _ in pairs], "target": [v for _, v in pairs]}
    graph = ge.Graph.from_typed_tables(
        nodes={"user": {"id": range(20), "label": [0, 1] * 10}, "shop": 7},
        edges={visits: ties},
        target="user",
    )
    embedder = ge.Embedder(width=32, landmarks=4).fit(graph)
    assert embedder.transform(["3", "shop/5"]).shape == (2, 32)
    index = embedder.changes()
    assert {"user/3", "shop/5"} <= set(index.ids.tolist())
    receipt = embedder.unlearn([ge.Nodes([5], type="shop"), ge.Edges([(3, 2)], type=visits)])
    assert embedder.changes(since=0).gone(index.ids).tolist() == ["shop/5"]
    assert list(receipt.changed) == embedder.changes(since=0).ids.tolist()
    embedder.update([ge.AddNodes([9], [[]], type="shop"), ge.AddEdges([(3, 9)], type=visits)])
    fresh = ge.Embedder(width=32, landmarks=4).fit(embedder.graph_)
    ids = fresh.graph_.ids
    assert np.array_equal(embedder.transform(ids), fresh.transform(ids))
    embedder.save(tmp_path / "run")
    assert ge.Embedder.load(tmp_path / "run").verify().identical
    with pytest.raises(GraphError, match="without types"):
        embedder.transform_new(None, [[1]])
