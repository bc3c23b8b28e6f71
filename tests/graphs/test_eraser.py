"""CollectionEraser: it learns, forgets, keeps and explains; collections are checked."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import grapheraser as ge
from grapheraser.eraser import load_eraser
from grapheraser.errors import (
    GraphError,
    NothingToForgetError,
    ParameterError,
    UnknownNodeError,
)
from grapheraser.graphs import Collection, CollectionEraser
from grapheraser.graphs.reading import Read
from tests.graphs.collections import collection_of, random_parts


@pytest.fixture(scope="module")
def fitted() -> CollectionEraser:
    return CollectionEraser().fit(collection_of(random_parts(120, seed=7), test=range(90, 120)))


def test_it_learns(fitted: CollectionEraser) -> None:
    share = np.bincount(fitted.collection_.y[90:]).max() / 30
    assert fitted.score() > share + 0.1
    assert fitted.predict_proba([3, 95]).sum(axis=1) == pytest.approx(1)


def test_new_graphs_are_judged_as_test_graphs_are(fitted: CollectionEraser) -> None:
    parts = random_parts(120, seed=7)[90:]
    asked = fitted.predict_proba_new(collection_of(parts))
    assert np.array_equal(asked, fitted.predict_proba(np.arange(90, 120)))
    assert np.array_equal(fitted.predict_new(collection_of(parts)), fitted.predict())


def test_a_run_is_kept_and_verified(tmp_path: Path) -> None:
    eraser = CollectionEraser().fit(collection_of(random_parts(60, seed=8)))
    receipt = eraser.unlearn(ge.Graphs([4, 9]))
    assert receipt.statement == "exact"
    eraser.save(tmp_path / "run")
    loaded = load_eraser(tmp_path / "run")
    assert isinstance(loaded, CollectionEraser)
    ids = loaded.collection_.ids
    assert np.array_equal(loaded.predict_proba(ids), eraser.predict_proba(ids))
    loaded.unlearn(ge.Graphs([11]))
    assert loaded.verify().identical


def test_an_export_says_what_the_run_says(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    from safetensors.numpy import load_file
    from safetensors.torch import load_file as load_tensors

    options = {"model": "gin", "num_shards": 2, "epochs": 2, "members": ()}
    eraser = CollectionEraser(**options).fit(collection_of(random_parts(24, seed=3)))  # type: ignore[arg-type]
    eraser.export(tmp_path / "out")
    said = load_file(tmp_path / "out" / "ensemble.safetensors")
    graph, model = eraser.graph_, eraser._snapshot.settings.training.model
    read = Read.of(graph, graph.places(graph.ids))
    x, edges, owner, _ = (torch.from_numpy(part) for part in read.taken(np.arange(24)))
    mixture = np.zeros((24, 2))
    for shard in eraser.shards_:
        module = model.module_for(graph).eval()  # type: ignore[union-attr]
        module.load_state_dict(load_tensors(tmp_path / "out" / "shards" / f"{shard}.safetensors"))
        shares = (said["weights"] * (said["asked"] == shard)).sum(axis=1, keepdims=True)
        mixture += shares * torch.softmax(module(x, edges, owner), 1).detach().numpy()
    assert mixture == pytest.approx(eraser.predict_proba(graph.ids), abs=1e-6)
    assert "Graph classification" in (tmp_path / "out" / "README.md").read_text()
    with pytest.raises(ParameterError, match="ONNX"):
        eraser.export(tmp_path / "other", onnx=True)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"num_shards": 3}, "which has no shards"),
        ({"members": ()}, "at least one without shards"),
        ({"model": "gin", "partition": "blpa"}, "partition"),
        ({"model": "sgc"}, "'closed-form', the name of a GNN"),
        ({"model": "gin", "training": ge.Training(neighbours=[5, 5])}, "one large graph"),
        ({"model": "gin", "readout": "median"}, "readout"),
    ],
)
def test_arguments_that_make_no_sense_are_refused(wrong: dict[str, Any], said: str) -> None:
    with pytest.raises(ParameterError, match=said):
        CollectionEraser(**wrong).fit(collection_of(random_parts(20)))


def test_a_score_without_test_graphs_says_what_to_do() -> None:
    run = CollectionEraser(sample=10).fit(collection_of(random_parts(20)))
    with pytest.raises(GraphError, match="no test graphs to score"):
        run.score(run.graph_.test_nodes[:0])


def test_an_explanation_names_graphs_alike_and_nodes_that_decide(fitted: CollectionEraser) -> None:
    said = fitted.explain(95)
    assert said.label == fitted.predict([95])[0]
    assert len(said.alike) == 5
    assert said.alike[0].similarity >= said.alike[-1].similarity
    small = fitted.collection_[95]
    assert said.nodes.keys() == set(small.nodes.tolist())
    assert said.to_svg().count("<circle") == len(small.nodes)


@pytest.mark.parametrize("labels", ["several", "numbers"])
def test_one_of_several_labels_or_numbers_is_explained(labels: str) -> None:
    parts = random_parts(80, seed=5)
    first = np.array([len(edges) for _, edges, _ in parts])
    y: Any = np.stack([first, -first], axis=1) / 4
    if labels == "several":
        y = np.stack([first > 5, first < 3], axis=1).astype(int)
    made = collection_of([(own, edges, 0) for own, edges, _ in parts])
    arrays: dict[str, Any] = graph_arrays(made)
    names: dict[str, Any] = {"target_names": ["many", "few"], "test": range(60, 80)}
    collection = Collection.from_arrays(**arrays, y=y, labels=labels, **names)
    eraser = CollectionEraser().fit(collection)
    said, small = eraser.explain(70, "few"), eraser.collection_[70]
    assert said.target == "few"
    assert said.label == pytest.approx(float(eraser.predict([70])[0, 1]))
    assert sum(member.weight for member in said.members) == pytest.approx(1)
    train = np.array([one.graph for one in said.alike])
    assert [one.label for one in said.alike] == y[train, 1].tolist()
    ask = eraser.predict_new if labels == "numbers" else eraser.predict_proba_new
    for node in small.nodes.tolist():
        rest = small.without(np.array([node]), small.edges[:0])
        ranks = np.searchsorted(rest.nodes, rest.edges).tolist()
        asked = ask([{"node_label": rest.labels.tolist(), "edges": ranks}])[0, 1]
        fall = eraser.answers([70])[0, 1] - asked
        assert said.nodes[node] == pytest.approx(float(fall), abs=1e-6)
    with pytest.raises(GraphError, match="target"):
        eraser.explain(70, "none")


def graph_arrays(collection: Collection) -> dict[str, Any]:
    small = list(collection)
    offset = np.append(0, np.cumsum([len(graph.nodes) for graph in small]))
    edges = [graph.edges + at for graph, at in zip(small, offset, strict=False)]
    labels = np.concatenate([graph.labels for graph in small])
    return {"node_offset": offset, "edges": np.concatenate(edges), "node_label": labels}


def test_a_graph_is_read_back_as_it_was_given() -> None:
    parts = random_parts(5, seed=9)
    for small, (labels, edges, _) in zip(collection_of(parts), parts, strict=True):
        assert np.array_equal(small.labels, labels)
        assert np.array_equal(small.edges, edges)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"edges": [(0, 3)]}, "joins two graphs"),
        ({"edges": [(0, 9)]}, "must name nodes from 0 to 4"),
        ({"node_offset": [0, 3, 2]}, "must not fall"),
        ({"node_label": [0.5, 1, 1, 1, 1]}, "whole numbers"),
        ({"node_label": [-1, 1, 1, 1, 1]}, "at least 0"),
        ({"x": np.full((5, 1), np.nan)}, "must be finite"),
        ({"edge_label": [1]}, "must have 2 entries"),
        ({"edges": [(0, 1), (1, 0)], "edge_label": [1, 2]}, "differ in what they carry"),
    ],
)
def test_a_collection_that_makes_no_sense_is_refused(wrong: dict[str, object], said: str) -> None:
    given = {"node_offset": [0, 3, 5], "edges": [(0, 1), (3, 4)], "y": [0, 1]} | wrong
    with pytest.raises(GraphError, match=said):
        Collection.from_arrays(**given)  # type: ignore[arg-type]


def test_a_graph_is_no_collection() -> None:
    with pytest.raises(ParameterError, match="must be a Collection"):
        CollectionEraser().fit(ge.load_dataset("demo"))  # type: ignore[arg-type]


def test_what_is_refused_is_called_a_graph() -> None:
    eraser = CollectionEraser().fit(collection_of(random_parts(30, seed=1), test=[1]))
    new = {"node_label": [1], "edges": []}
    unknown: list[Callable[[], object]] = [
        lambda: eraser.unlearn(ge.Graphs([99])),
        lambda: eraser.unlearn(ge.Labels([99])),
        lambda: eraser.unlearn(ge.Nodes([0], graph=99)),
        lambda: eraser.update(ge.SetGraphs([99], [new])),
        lambda: eraser.plan(ge.Graphs([99])),
        lambda: eraser.predict([99]),
        lambda: eraser.score([99]),
        lambda: eraser.explain(99),
        lambda: eraser.collection_[99],
    ]
    for ask in unknown:
        with pytest.raises(UnknownNodeError, match=r"^graph 99 is not in the collection") as error:
            ask()
        assert "node" not in str(error.value)
        assert "the graph" not in str(error.value)
    with pytest.raises(GraphError, match=r"^graph 5 is in the collection already.*\s+hint.*SetGr"):
        eraser.update(ge.AddGraphs([5], [new], [1]))
    eraser.unlearn(ge.Labels([5]))
    with pytest.raises(NothingToForgetError, match=r"^graph 5 has no label"):
        eraser.unlearn(ge.Labels([5]))
    with pytest.raises(UnknownNodeError, match=r"^graph 7 has no node 99"):
        eraser.unlearn(ge.Nodes([99], graph=7))
