"""Ids of classes that leave gaps name as many classes as there are, wherever classes are said."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import grapheraser as ge
from grapheraser.errors import GraphError, ParameterError
from tests.cli.commands import data

IDS = np.array([5, 15, 25, 35])
Y = np.tile(IDS, 5)


def graph_of(y: Any = Y, **options: Any) -> ge.Graph:
    n = len(y)
    x = np.eye(4)[np.arange(n) % 4] + 0.1
    ring = [np.arange(n), (np.arange(n) + 4) % n]
    return ge.Graph.from_arrays(x, ring, y, test=[0, 1, 2, 3], each_edge_once=True, **options)


@pytest.fixture
def eraser() -> ge.GraphEraser:
    return ge.GraphEraser("closed-form").fit(graph_of())


def test_four_ids_are_four_classes(eraser: ge.GraphEraser) -> None:
    graph = eraser.graph_
    assert (graph.num_classes, graph.class_names) == (4, (5, 15, 25, 35))
    assert IDS[graph.y].tolist() == Y.tolist()
    assert graph.inferred == ("classes",)
    assert eraser.classes_.tolist() == IDS.tolist()
    assert eraser.predict_proba(graph.test_nodes).shape == (4, 4)
    assert eraser.predict().tolist() == IDS.tolist()
    assert eraser.score() == 1
    assert eraser.exactness_["statement"] == "exact given schema"


@pytest.mark.parametrize("y", [[0, 1, 2, 0], [0, 0, -1, 1], [[0], [1], [2], [0]], [-1, -1, -1, -1]])
def test_ids_without_gaps_have_no_names(y: Any) -> None:
    graph = ge.Graph.from_arrays(np.eye(4), [[0], [1]], y, each_edge_once=True)
    assert graph.class_names == ()
    assert graph.y.tolist() == np.ravel(y).tolist()


def test_declared_classes_are_no_finding() -> None:
    named = graph_of(class_names=[5, 15, 25, 35, 45])
    assert (named.num_classes, named.inferred) == (5, ())
    counted = graph_of(num_classes=36)  # as all such graphs were before ids were names
    assert (counted.num_classes, counted.class_names, counted.inferred) == (36, (), ())
    with pytest.raises(GraphError, match=r"among the classes 5, 15, 25 \(found 35\)"):
        graph_of(class_names=[5, 15, 25])


def test_ids_lead_back_from_every_format(tmp_path: Path, eraser: ge.GraphEraser) -> None:
    graph = eraser.graph_
    graph.to_npz(tmp_path / "graph.npz")
    eraser.save(tmp_path / "run")
    nodes, edges = graph.to_tables()
    names = [name for name in nodes if name not in ("id", "label", "split")]
    rows = zip(nodes["id"], nodes["label"], nodes["split"], *(nodes[n] for n in names), strict=True)
    text = "\n".join(
        [",".join(["id", "label", "split", *names]), *(",".join(map(str, r)) for r in rows)]
    )
    (tmp_path / "nodes.csv").write_text(text)
    pairs = zip(edges["source"], edges["target"], strict=True)
    (tmp_path / "edges.csv").write_text(
        "\n".join(["source,target", *(f"{u},{v}" for u, v in pairs)])
    )
    data("import", tmp_path, "--out", tmp_path / "store")  # block by block
    for again in (
        ge.Graph.from_npz(tmp_path / "graph.npz"),
        ge.Graph.from_tables(nodes, edges),
        ge.Graph.from_tables(tmp_path / "nodes.csv", tmp_path / "edges.csv"),
        ge.Graph.open(tmp_path / "store"),
        ge.GraphEraser.load(tmp_path / "run").graph_,
    ):
        assert again == graph
        assert (again.class_names, again.inferred) == (graph.class_names, ("classes",))


def test_changes_name_classes_by_their_ids(eraser: ge.GraphEraser) -> None:
    eraser.update([ge.SetLabels([7], [15]), ge.AddNodes([99], np.ones((1, 4)), [25], [(99, 1)])])
    assert IDS[eraser.graph_.labels([7, 99])].tolist() == [15, 25]
    eraser.insert(100, np.ones(4), 35, [1])
    assert IDS[eraser.graph_.labels([100])].tolist() == [35]
    for wrong in (1, 16):
        with pytest.raises(GraphError, match=rf"among the classes 5, 15, 25, 35 \(found {wrong}\)"):
            eraser.update(ge.SetLabels([7], [wrong]))


def test_the_command_line_says_ids(tmp_path: Path, eraser: ge.GraphEraser) -> None:
    eraser.save(tmp_path / "run")
    (said,) = data("predict", tmp_path / "run", "--nodes", "2")["predictions"]
    assert said["class_name"] == 25
    assert data("info", tmp_path / "run")["graph"]["classes"] == [5, 15, 25, 35]
    eraser.predict_to(tmp_path / "scores.npz", [0, 1])
    with np.load(tmp_path / "scores.npz") as scores:
        assert scores["class_name"].tolist() in ([5, 15], ["5", "15"])


def test_weights_of_classes_with_ids_are_a_list() -> None:
    """By class, 1 could be an id or a place."""
    for y in (Y, Y // 10 + 1):  # ids 1 to 4 as well
        by_class = ge.Training(class_weights={1: 2.0})
        with pytest.raises(ParameterError, match="in the order of classes_"):
            ge.GraphEraser(num_shards=2, engine="pyg", training=by_class).fit(graph_of(y))
