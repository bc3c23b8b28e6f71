"""Any file is read by what it looks like."""

from __future__ import annotations

from pathlib import Path
from typing import Any

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
    with pytest.raises(GraphError, match="a PyG Data and nothing else") as caught:
        ge.Graph.from_file(tmp_path / "code.pt")
    assert "to_npz" in str(caught.value.hint)


def test_typed_graphs_come_from_files(tmp_path: Path) -> None:
    data = HeteroData()
    data["author"].x, data["author"].y = torch.ones(3, 2), torch.tensor([0, 1, 0])
    data["paper"].num_nodes = 2
    data["author", "writes", "paper"].edge_index = torch.tensor([[0, 1, 2], [0, 0, 1]])
    torch.save(data, tmp_path / "hetero.pt")
    expected = ge.Graph.from_pyg(data, target="author")
    assert ge.Graph.from_file(tmp_path / "hetero.pt", target="author") == expected
    with pytest.raises(GraphError, match="needs 'target'"):
        ge.Graph.from_file(tmp_path / "hetero.pt")

    for kind in ("nodes", "edges"):
        (tmp_path / "shop" / kind).mkdir(parents=True)
    tables = {
        "nodes/author.csv": "id,a,b,label\n0,1,1,0\n1,1,1,1\n2,1,1,0\n",
        "nodes/paper.tsv": "id\n0\n1\n",
        "nodes/README.md": "no table\n",
        "edges/author-writes-paper.csv": "source,target\n0,0\n1,0\n2,1\n",
    }
    for name, text in tables.items():
        (tmp_path / "shop" / name).write_text(text)
    options: dict[str, Any] = {"target": "author", "num_classes": 2}
    assert ge.Graph.from_file(tmp_path / "shop", **options) == expected
    with pytest.raises(ParameterError, match="needs 'target', the type whose nodes have labels"):
        ge.Graph.from_file(tmp_path / "shop")
    (tmp_path / "shop" / "edges" / "other.csv").write_text("source,target\n")
    with pytest.raises(GraphError, match="a table of edges is named SOURCE-NAME-TARGET"):
        ge.Graph.from_file(tmp_path / "shop", **options)


def test_facts_come_from_a_table_with_or_without_a_first_line(tmp_path: Path) -> None:
    triples = [("ada", "works at", "acme"), ("bob", "is-part-of", "acme"), ("ada", "knows", "bob")]
    text = "".join("\t".join(fact) + "\n" for fact in triples)
    (tmp_path / "train.txt").write_text(text)
    (tmp_path / "facts.csv").write_text("tail;relation;head;source\nacme;works at;ada;web\n")
    assert ge.Graph.from_file(tmp_path / "train.txt", format="facts") == ge.Graph.from_facts(
        triples
    )
    assert ge.Graph.from_file(tmp_path / "facts.csv") == ge.Graph.from_facts(triples[:1])
    (tmp_path / "facts.csv").write_text("head,relation\nada,knows\n")
    with pytest.raises(GraphError, match="there is no column 'tail'"):
        ge.Graph.from_file(tmp_path / "facts.csv", format="facts")


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
