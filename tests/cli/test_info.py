"""grapheraser info."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import grapheraser as ge
from tests.cli.commands import data, run, snapshot
from tests.strategies import with_edge_values


def test_info_says_what_the_loaded_run_is(own_run: Path) -> None:
    node = int(ge.GraphEraser.load(own_run).graph_.train_nodes[0])
    data("unlearn", own_run, "--nodes", node)
    before = snapshot(own_run)
    found, eraser = data("info", own_run), ge.GraphEraser.load(own_run)
    assert snapshot(own_run) == before
    graph = eraser.graph_
    assert found["task"] == "nodes"
    assert found["graph"]["nodes"] == graph.num_nodes
    assert found["graph"]["training_nodes"] == len(graph.train_nodes)
    assert found["graph"]["fingerprint"] == graph.fingerprint
    assert found["shards"] == len(eraser.shards_)
    assert sum(found["shard_sizes"]) == graph.num_sharded
    assert found["partition"] == eraser.partition_.method
    assert found["seed"] == eraser.seed
    assert found["engine"] == eraser.engine_
    assert found["own_code"] == []
    assert found["receipts"]["count"] == 1
    assert found["receipts"]["last"]["digest"] == eraser.receipts_[-1].digest
    assert found["statement"] == eraser.receipts_[-1].statement
    names = [name for name in before if name != ".lock"]
    assert found["bytes"] == sum(len(before[name]) for name in names)


def test_info_is_told_in_words(fitted: Path) -> None:
    done = run("info", fitted)
    assert done.returncode == 0
    rows = dict(line.split(maxsplit=1) for line in done.stdout.splitlines())
    assert rows["predicts"] == "7 classes of nodes"
    assert rows["graph"].startswith("demo: 2,700 nodes, 5,415 edges, 1,400 feature columns")
    assert rows["receipts"] == "0"
    assert rows["statement"].startswith("exact")


def test_info_of_a_link_run_and_of_a_graph_with_names(small: ge.Graph, tmp_path: Path) -> None:
    links = ge.LinkEraser().fit(with_edge_values(small, directed=True))
    links.save(tmp_path / "links")
    found = data("info", tmp_path / "links")
    assert (found["task"], found["shards"]) == ("links", 0)
    assert found["graph"]["directed"]
    assert found["graph"]["weighted"]
    assert "(directed and weighted)" in run("info", tmp_path / "links").stdout
    words = ge.Graph.from_arrays(np.eye(3), [["x"], ["y"]], ["a", "b", "a"], ids=["x", "y", "z"])
    ge.GraphEraser("closed-form").fit(words).save(tmp_path / "words")
    assert data("info", tmp_path / "words")["graph"]["classes"] == ["a", "b"]
    assert "classes of nodes: a, b" in run("info", tmp_path / "words").stdout


def test_where_there_is_no_run_info_says_so(tmp_path: Path) -> None:
    done = run("info", tmp_path)
    assert done.returncode == 1
    assert "there is no run here" in done.stderr


def test_info_of_several_labels_and_of_numbers(tmp_path: Path) -> None:
    edges, several = [[0, 1, 2], [1, 2, 3]], [{"art"}, {"art", "law"}, {"law"}, set()]
    for name, y, said in (
        ("several", several, "labels of nodes: art, law"),
        ("numbers", np.array([0.5, 1.25, 2.0, 0.1]), "1 number of nodes"),
    ):
        graph = ge.Graph.from_arrays(np.eye(4), edges, y, each_edge_once=True)
        ge.GraphEraser("closed-form").fit(graph).save(tmp_path / name)
        assert said in run("info", tmp_path / name).stdout
        assert data("info", tmp_path / name)["graph"]["labels"] == name
