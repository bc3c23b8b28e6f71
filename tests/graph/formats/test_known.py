"""Any file is read by what it looks like."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch_geometric.data import Data, HeteroData

import grapheraser as ge
from grapheraser.errors import GraphError, ParameterError
from tests.strategies import small_graph


def test_compact_files_and_tables_are_told_apart(tmp_path: Path) -> None:
    graph = small_graph()
    graph.to_npz(tmp_path / "mine.npz")
    assert ge.Graph.from_file(tmp_path / "mine.npz") == graph
    (tmp_path / "nodes.csv").write_text("id,x\n0,1\n1,2\n")
    (tmp_path / "edges.csv").write_text("source,target\n0,1\n")
    one = ge.Graph.from_file(tmp_path)
    assert one == ge.Graph.from_file(tmp_path / "nodes.csv", edges=tmp_path / "edges.csv")
    assert one.num_edges == 1
    (tmp_path / "nodes.csv").rename(tmp_path / "people")
    again = ge.Graph.from_file(tmp_path / "people", format="tables", edges=tmp_path / "edges.csv")
    assert again == one
    assert again.name == "people"


def test_a_saved_data_is_read_without_running_it(tmp_path: Path) -> None:
    data = small_graph().to_pyg()
    torch.save(data, tmp_path / "data.pt")
    allowed = torch.serialization.get_safe_globals()
    assert Data in allowed
    assert ge.Graph.from_file(tmp_path / "data.pt", num_classes=3) == small_graph()
    assert set(torch.serialization.get_safe_globals()) == set(allowed)  # PyG relies on its own
    torch.save({"x": 1}, tmp_path / "other.pt")
    with pytest.raises(GraphError, match=r"not a PyG Data \(found dict\)"):
        ge.Graph.from_file(tmp_path / "other.pt")
    torch.save(Data(x=Path("code")), tmp_path / "code.pt")
    torch.save(HeteroData(), tmp_path / "hetero.pt")
    for name in ("code", "hetero"):
        with pytest.raises(GraphError, match="a PyG Data and nothing else") as caught:
            ge.Graph.from_file(tmp_path / f"{name}.pt")
        assert "to_npz" in str(caught.value.hint)


def test_what_is_not_known_is_told(tmp_path: Path) -> None:
    with pytest.raises(GraphError, match="no such file or folder"):
        ge.Graph.from_file(tmp_path / "nothing")
    (tmp_path / "graph.xyz").touch()
    with pytest.raises(GraphError, match="not a format that is known"):
        ge.Graph.from_file(tmp_path / "graph.xyz")
    with pytest.raises(GraphError, match="not a format that is known"):
        ge.Graph.from_file(tmp_path)
    with pytest.raises(ParameterError, match=r"'format' of Graph.from_file must be 'npz'"):
        ge.Graph.from_file(tmp_path / "graph.xyz", format="xyz")
    with pytest.raises(ParameterError, match=r"'edges' of Graph.from_file goes with tables"):
        ge.Graph.from_file(tmp_path / "graph.xyz", format="npz", edges="edges.csv")
    (tmp_path / "nodes.csv").write_text("id\n1\n")
    with pytest.raises(GraphError, match="needs one of edges"):
        ge.Graph.from_file(tmp_path / "nodes.csv")
    with pytest.raises(GraphError, match="there is no table 'edges'"):
        ge.Graph.from_file(tmp_path)
    (tmp_path / "bad.npz").write_text("no")
    with pytest.raises(GraphError, match="not a readable npz"):
        ge.Graph.from_file(tmp_path / "bad.npz")
