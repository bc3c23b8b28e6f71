"""OGB's folders, from their raw files."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

import grapheraser as ge
from grapheraser.errors import GraphError

RAW = {
    "edge": "0,1\n1,2\n3,0\n",
    "node-feat": "0.5,1\n-2,0\n0,0\n1e-3,7\n",
    "node-label": "0\n\n2\n1\n",
    "num-node-list": "4\n",
    "num-edge-list": "3\n",
}
SPLIT = {"train": "0\n", "valid": "3\n", "test": "2\n"}


def put(folder: Path, name: str, content: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.csv.gz").write_bytes(gzip.compress(content.encode()))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "ogbn_mine"
    for name, content in RAW.items():
        put(made / "raw", name, content)
    for name, content in SPLIT.items():
        put(made / "split" / "time", name, content)
    return made


def test_a_folder_becomes_a_graph(folder: Path) -> None:
    graph = ge.Graph.from_ogb(folder)
    assert graph.name == "ogbn_mine"
    assert graph.x.toarray().tolist() == [[0.5, 1], [-2, 0], [0, 0], [pytest.approx(1e-3), 7]]
    assert graph.y.tolist() == [0, -1, 2, 1]
    assert graph.edges.tolist() == [[0, 1], [0, 3], [1, 2]]
    assert graph.train_nodes.tolist() == [0]
    assert graph.validation_nodes.tolist() == [3]
    assert graph.test_nodes.tolist() == [2]
    assert graph.context_nodes.tolist() == [1]
    assert "directed" in graph.notes[0]
    directed = ge.Graph.from_ogb(folder, directed=True)
    assert directed.edge_index.tolist() == [[0, 1, 3], [1, 2, 0]]
    assert ge.Graph.from_file(folder) == graph


def test_edges_keep_their_features(folder: Path) -> None:
    put(folder / "raw", "edge-feat", "1,2\n3,4\n5,6\n")
    graph = ge.Graph.from_ogb(folder, directed=True)
    assert graph.edge_attr is not None
    assert graph.edge_attr.tolist() == [[1, 2], [3, 4], [5, 6]]


def test_a_folder_without_split_or_labels_is_read_too(folder: Path) -> None:
    for name in SPLIT:
        (folder / "split" / "time" / f"{name}.csv.gz").unlink()
    with pytest.warns(UserWarning, match=r"only splits in csv.gz files are read"):
        assert ge.Graph.from_ogb(folder).train_nodes.tolist() == [0, 2, 3]
    (folder / "split" / "time").rmdir()
    (folder / "raw" / "node-label.csv.gz").unlink()
    assert ge.Graph.from_ogb(folder).y.tolist() == [-1] * 4


def test_one_of_several_splits_is_chosen_by_name(folder: Path) -> None:
    for name, content in SPLIT.items():
        put(folder / "split" / "other", name, content if name != "train" else "1\n")
    with pytest.raises(GraphError, match="several splits") as caught:
        ge.Graph.from_ogb(folder)
    assert caught.value.hint == "choose one of other, time."
    assert ge.Graph.from_ogb(folder, split="time").train_nodes.tolist() == [0]
    with pytest.raises(GraphError, match=r"no split 'year' \(found other, time\)"):
        ge.Graph.from_ogb(folder, split="year")


def test_files_that_nobody_reads_are_warned_about(folder: Path) -> None:
    put(folder / "raw", "node_year", "2000\n" * 4)
    with pytest.warns(UserWarning, match=r"node_year.csv.gz is not used"):
        ge.Graph.from_ogb(folder)


BAD = {
    "several labels": ("node-label", "0,1\n" * 4, "several labels per node"),
    "a number to predict": ("node-label", "0\n0.5\n1\n2\n", r"label.csv.gz:2: .*found 0.5"),
    "many graphs": ("num-node-list", "2\n2\n", r"found \[2, 2\] nodes"),
    "half an edge": ("edge", "0\n1\n", "an edge is two numbers"),
    "words": ("node-feat", "a,b\n", "not a readable table of numbers"),
    "unknown end": ("edge", "0,9\n", r"among the 4 node ids \(found 9\)"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_folders_are_refused(folder: Path, case: str) -> None:
    name, content, message = BAD[case]
    put(folder / "raw", name, content)
    with pytest.raises(GraphError, match=message):
        ge.Graph.from_ogb(folder)


def test_other_layouts_are_told_apart(folder: Path) -> None:
    (folder / "raw" / "relations").mkdir()
    with pytest.raises(GraphError, match="heterogeneous graphs are not supported"):
        ge.Graph.from_ogb(folder)
    (folder / "raw" / "relations").rmdir()
    (folder / "raw" / "edge.csv.gz").unlink()
    with pytest.raises(GraphError, match=r"edge.csv.gz: no such file"):
        ge.Graph.from_ogb(folder)
    (folder / "raw" / "data.npz").touch()
    with pytest.raises(GraphError) as caught:
        ge.Graph.from_ogb(folder)
    assert "binary files" in str(caught.value.hint)
