"""Graphs by name: the generated one, the public ones, and what is said when one is missing."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest

import grapheraser as ge
from grapheraser.datasets import PUBLIC, data_root, dataset_info
from grapheraser.datasets.demo import demo_graph
from grapheraser.datasets.public import load_public
from grapheraser.errors import (
    DatasetNotFoundError,
    GraphError,
    ParameterError,
    UnknownDatasetError,
)

DEMO = "bd19644eb25b5148c7f79d37a26cbf53a62cc87e9fd6c1756570c6a8950ac55c"
SIZES = {
    "cora": (2708, 5278, 7, 1433, 2166, 542),
    "citeseer": (3327, 4552, 6, 3703, 2661, 666),
    "pubmed": (19717, 44324, 3, 500, 15773, 3944),
    "cs": (18333, 81894, 15, 6805, 14666, 3667),
    "physics": (34493, 247962, 5, 8415, 27594, 6899),
}


def test_the_demo_graph_is_the_same_everywhere(demo: ge.Graph) -> None:
    assert demo.fingerprint == DEMO
    assert demo == ge.load_dataset("demo")


def test_the_demo_graph_is_of_the_size_of_cora(demo: ge.Graph) -> None:
    assert demo.num_nodes == 2700
    assert 4000 < demo.num_edges < 7000
    assert demo.num_classes == 7
    assert demo.num_features == 1400
    assert (len(demo.train_nodes), len(demo.test_nodes)) == (2160, 540)
    assert demo.notes == ()


def test_the_demo_graph_is_citation_like(demo: ge.Graph) -> None:
    assert demo.degree.max() > 15 * demo.degree.mean(), "heavy-tailed degrees"
    ends = demo.y[demo.edge_index]
    assert (ends[0] == ends[1]).mean() > 0.6, "papers cite their own topic most"
    assert set(demo.x.data.tolist()) == {1.0}, "a bag of words"
    assert demo.x.nnz < 0.02 * demo.num_nodes * demo.num_features
    other = nx.Graph(demo.edge_index.T.tolist())
    communities = nx.community.label_propagation_communities(other)
    assert nx.community.modularity(other, communities) > 0.4


def test_another_seed_is_another_demo_graph() -> None:
    assert demo_graph(seed=1) != demo_graph(seed=0)


def test_the_split_follows_from_its_seed(demo: ge.Graph) -> None:
    other = ge.load_dataset("demo", split_seed=1)
    assert other.test_nodes.tolist() != demo.test_nodes.tolist()
    assert other == ge.load_dataset("demo", split_seed=1)
    assert np.array_equal(other.x.data, demo.x.data)


def write_npz(path: Path) -> None:
    np.savez(
        path,
        x_data=np.ones(10, dtype=np.uint8),
        x_indices=np.arange(10) % 3,
        x_indptr=np.arange(11),
        x_shape=np.array([10, 3]),
        edge_index=np.array([[0, 1], [1, 2]]),
        y=np.arange(10) % 2,
    )


def test_a_path_names_a_file(tmp_path: Path) -> None:
    write_npz(tmp_path / "mine.npz")
    assert ge.load_dataset(tmp_path / "mine.npz") == ge.load_dataset("mine", root=tmp_path)
    for path in (tmp_path / "nothing.npz", tmp_path, Path("cora")):
        with pytest.raises(GraphError, match=str(path)):
            ge.load_dataset(path)


@pytest.mark.parametrize("changes", [{"name": None}, {"name": 5}, {"root": 5}, {"split_seed": "a"}])
def test_what_names_nothing_is_an_error(changes: dict[str, Any]) -> None:
    with pytest.raises(ParameterError):
        ge.load_dataset(**{"name": "demo", **changes})


def test_any_compact_file_is_found_by_its_name(tmp_path: Path) -> None:
    write_npz(tmp_path / "mine.npz")
    graph = ge.load_dataset("mine", root=tmp_path)
    assert graph.name == "mine"
    assert (len(graph.train_nodes), len(graph.test_nodes)) == (8, 2)
    assert ge.load_dataset(str(tmp_path / "mine.npz"), root="elsewhere") == graph


def test_a_path_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(GraphError, match="no such file"):
        ge.load_dataset(str(tmp_path / "nothing.npz"))


def test_an_unknown_name_is_answered_with_the_known_ones(tmp_path: Path) -> None:
    write_npz(tmp_path / "mine.npz")
    with pytest.raises(UnknownDatasetError, match=r"'coral'\. Known here: demo, cora, .*mine"):
        ge.load_dataset("coral", root=tmp_path)


@pytest.mark.parametrize("name", ["cora", "physics"])
def test_a_missing_file_says_where_it_was_looked_for(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_network(*_: object, **__: object) -> None:
        raise OSError("no network")

    monkeypatch.setattr(f"torch_geometric.datasets.{PUBLIC[name].family}", no_network)
    with pytest.raises(DatasetNotFoundError, match="OSError") as caught:
        ge.load_dataset(name, root=tmp_path)
    assert str(tmp_path / f"{name}.npz") in caught.value.message
    assert str(tmp_path / PUBLIC[name].folder / "raw") in caught.value.message
    assert "GRAPHERASER_DATA" in str(caught.value.hint)


def test_the_folder_is_the_argument_the_variable_or_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GRAPHERASER_DATA", str(tmp_path / "variable"))
    assert data_root(tmp_path) == tmp_path
    assert data_root() == tmp_path / "variable"
    monkeypatch.delenv("GRAPHERASER_DATA")
    assert data_root() == Path.home() / ".cache" / "grapheraser" / "data"


def test_what_is_known_and_what_is_on_disk(tmp_path: Path) -> None:
    write_npz(tmp_path / "mine.npz")
    write_npz(tmp_path / "cora.npz")
    found = {info.name: info.available for info in dataset_info(tmp_path)}
    assert found == {"demo": True, "mine": True, **{name: name == "cora" for name in PUBLIC}}


@pytest.mark.parametrize("name", ["cs", "physics"])
def test_a_damaged_raw_file_is_an_error(tmp_path: Path, name: str) -> None:
    folder = tmp_path / PUBLIC[name].folder / "raw"
    folder.mkdir(parents=True)
    for content in (b"", b"PK\x03\x04 cut off here"):
        (folder / PUBLIC[name].raw_file).write_bytes(content)
        with pytest.raises(GraphError, match="not a readable file"):
            ge.load_dataset(name, root=tmp_path)


@pytest.mark.data
@pytest.mark.parametrize("name", SIZES)
def test_public_graphs_have_their_known_sizes(data_root: Path, name: str) -> None:
    graph = ge.load_dataset(name, root=data_root)
    found = (graph.num_nodes, graph.num_edges, graph.num_classes, graph.num_features)
    assert (*found, len(graph.train_nodes), len(graph.test_nodes)) == SIZES[name]
    assert graph.notes == ()


@pytest.mark.data
@pytest.mark.parametrize("name", ["cora", "citeseer", "cs"])
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore:dtype.*:Warning")
def test_raw_and_compact_files_give_one_graph(data_root: Path, tmp_path: Path, name: str) -> None:
    public = PUBLIC[name]
    raw = data_root / public.folder / "raw"
    if not raw.is_dir():
        pytest.skip(f"{raw} is not there")
    shutil.copytree(raw, tmp_path / public.folder / "raw")
    assert "npz" not in {Path(file).suffix[1:] for file in os.listdir(tmp_path)}
    assert load_public(public, tmp_path) == load_public(public, data_root)
