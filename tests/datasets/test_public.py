"""The paper's five public graphs."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import numpy as np
import pytest

import grapheraser as ge
from grapheraser.datasets import PUBLIC, data_root
from grapheraser.datasets.load import load_public
from grapheraser.errors import (
    DatasetNotFoundError,
    GraphError,
)

SIZES = {
    "cora": (2708, 5278, 7, 1433, 2166, 542),
    "citeseer": (3327, 4552, 6, 3703, 2661, 666),
    "pubmed": (19717, 44324, 3, 500, 15773, 3944),
    "cs": (18333, 81894, 15, 6805, 14666, 3667),
    "physics": (34493, 247962, 5, 8415, 27594, 6899),
}


@pytest.mark.gnn
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


@pytest.mark.gnn
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


@pytest.mark.gnn
@pytest.mark.data
@pytest.mark.parametrize("name", ["cora", "citeseer", "pubmed"])
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore:dtype.*:Warning")
def test_the_public_split_is_that_of_pyg(data_root: Path, tmp_path: Path, name: str) -> None:
    from torch_geometric.datasets import Planetoid

    public = PUBLIC[name]
    raw = data_root / public.folder / "raw"
    if not raw.is_dir():
        pytest.skip(f"{raw} is not there")
    shutil.copytree(raw, tmp_path / public.folder / "raw")
    expected = ge.Graph.from_pyg(Planetoid(root=str(tmp_path), name=public.folder)[0])
    graph = ge.load_dataset(name, root=data_root, split="public")
    assert graph == expected
    assert len(graph.train_nodes) == 20 * graph.num_classes
    assert (len(graph.validation_nodes), len(graph.test_nodes)) == (500, 1000)
    assert graph.notes == ()


def test_a_damaged_list_of_test_nodes_is_an_error(tmp_path: Path) -> None:
    np.savez(
        tmp_path / "cora.npz",
        x_data=np.ones(3, dtype=np.uint8),
        x_indices=np.arange(3),
        x_indptr=np.arange(4),
        x_shape=np.array([3, 3]),
        edge_index=np.array([[0, 1], [1, 2]]),
        y=np.zeros(3, dtype=np.int64),
    )
    listed = tmp_path / "Cora" / "raw" / "ind.cora.test.index"
    listed.parent.mkdir(parents=True)
    listed.write_text("7 eight")
    with pytest.raises(GraphError, match="not a readable list of test nodes"):
        ge.load_dataset("cora", root=tmp_path, split="public")
    listed.write_text("2")
    with pytest.raises(GraphError, match="is not a node id"):
        ge.load_dataset("cora", root=tmp_path, split="public")
