"""Graphs from tables of nodes and edges, and errors that name the line."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import grapheraser as ge
from grapheraser.errors import GraphError, MissingExtraError
from tests.graph.oracle import plain
from tests.strategies import small_graph, with_names

NODES = """id,age,income,label,split
ada,36,1.5,yes,train
bob,41,-2,no,test
cid,17,0,,
dee,50,1e3,yes,valid
"""
EDGES = """source,target,weight
ada,bob,0.5
bob,cid,2
"""


def tables(folder: Path, nodes: str = NODES, edges: str = EDGES) -> tuple[Path, Path]:
    (folder / "nodes.csv").write_text(nodes)
    (folder / "edges.csv").write_text(edges)
    return folder / "nodes.csv", folder / "edges.csv"


def test_two_files_become_a_graph(tmp_path: Path) -> None:
    graph = ge.Graph.from_tables(*tables(tmp_path))
    assert graph.named
    assert graph.class_names == ("no", "yes")
    assert graph.num_classes == 2
    by_name = dict(zip(graph.names_of(graph.ids), graph.x.toarray().tolist(), strict=True))
    assert by_name == {"ada": [36, 1.5], "bob": [41, -2], "cid": [17, 0], "dee": [50, 1000]}
    assert graph.labels(["ada", "bob", "cid", "dee"]).tolist() == [1, 0, -1, 1]
    roles = {"train": graph.train_nodes, "test": graph.test_nodes, "cid": graph.context_nodes}
    assert {part: graph.names_of(nodes).tolist() for part, nodes in roles.items()} == {
        "train": ["ada"],
        "test": ["bob"],
        "cid": ["cid"],
    }
    assert graph.names_of(graph.validation_nodes).tolist() == ["dee"]
    pairs = {tuple(sorted(graph.names_of(pair))) for pair in graph.edges}
    assert pairs == {("ada", "bob"), ("bob", "cid")}
    assert graph.edge_weight is not None
    assert sorted(graph.edge_weight.tolist()) == [0.5, 0.5, 2, 2]


def test_columns_are_chosen_by_name(tmp_path: Path) -> None:
    nodes = "who;grp;a;b\n7;0;1;2\n9;1;3;4\n"
    edges = "from\tto\tw\tkind\n7\t9\t3\t1\n"
    given: Any = tables(tmp_path, nodes, edges)
    with pytest.warns(UserWarning, match="'a' are not used"):
        graph = ge.Graph.from_tables(
            *given,
            id="who",
            label="grp",
            features=["b"],
            source="from",
            target="to",
            weight="w",
            edge_features=["kind"],
            directed=True,
        )
    assert graph.ids.tolist() == [7, 9]
    assert graph.x.toarray().tolist() == [[2], [4]]
    assert graph.edge_index.tolist() == [[0], [1]]
    assert graph.edge_weight is not None
    assert graph.edge_attr is not None
    assert (graph.edge_weight.tolist(), graph.edge_attr.tolist()) == ([3], [[1]])


def test_whole_numbers_are_ids_unless_one_is_not_or_names_are_asked_for(tmp_path: Path) -> None:
    for first, names, named in (("12", None, False), ("007", None, True), ("12", True, True)):
        nodes = f"id,x\n{first},1\n13,2\n"
        given = tables(tmp_path, nodes, f"source,target\n{first},13\n")
        graph = ge.Graph.from_tables(*given, names=names)
        assert graph.named == named
        assert graph.contains([first if named else int(first)]).all()


def test_an_edge_list_needs_neither_header_nor_nodes(tmp_path: Path) -> None:
    (tmp_path / "list.txt").write_text("# from somewhere\n# two comments\n1 2\n2 3\n")
    graph = ge.Graph.from_tables(None, tmp_path / "list.txt")
    assert graph.edges.tolist() == [[1, 2], [2, 3]]
    assert graph.num_features == 0
    nodes, edges = tables(tmp_path, "id,x\na,1\nb,2\n", "a,b,0.5\n")
    weighted = ge.Graph.from_tables(nodes, edges)
    assert weighted.edge_weight is not None
    assert weighted.edge_weight.tolist() == [0.5, 0.5]


def test_files_may_be_packed_and_begin_with_a_mark(tmp_path: Path) -> None:
    nodes, edges = tables(tmp_path)
    packed = tmp_path / "nodes.csv.gz"
    packed.write_bytes(gzip.compress(b"\xef\xbb\xbf" + nodes.read_bytes()))
    assert ge.Graph.from_tables(packed, edges) == ge.Graph.from_tables(nodes, edges)


@pytest.mark.parametrize("kind", ["plain", "named", "mixed"])
def test_tables_in_memory_lead_back(kind: str) -> None:
    graph = small_graph(split="mixed" if kind == "mixed" else "labelled")
    graph = with_names(graph) if kind == "named" else graph
    again = ge.Graph.from_tables(*graph.to_tables(), num_classes=graph.num_classes)
    assert again == graph
    assert plain(again) == plain(graph)


def test_what_edges_carry_leads_back() -> None:
    x, pairs = np.eye(4), np.array([[0, 1, 2], [1, 2, 0]])
    for directed in (False, True):
        graph = ge.Graph.from_arrays(
            x,
            pairs,
            [0, 1, 0, 1],
            edge_weight=[1.0, 2, 3],
            edge_attr=np.arange(6).reshape(3, 2),
            directed=directed,
            each_edge_once=True,
        )
        nodes, edges = graph.to_tables()
        again = ge.Graph.from_tables(
            nodes, edges, edge_features=["e0", "e1"], directed=directed, num_classes=2
        )
        assert again == graph


class Frame:
    """As much of a pandas frame as is needed of one."""

    def __init__(self, columns: dict[str, Any]) -> None:
        self.columns = list(columns)
        self._columns = {name: np.array(values) for name, values in columns.items()}

    def __getitem__(self, name: str) -> Any:
        return self._columns[name]


def test_frames_are_tables_too() -> None:
    gaps = np.array([0, np.nan, 1])  # as a frame holds whole numbers with a gap
    nodes = Frame({"id": [4, 5, 6], "label": gaps, "v": [[1, 2], [3, 4], [5, 6]]})
    graph = ge.Graph.from_tables(nodes, Frame({"source": [4, 5], "target": [5, 6]}))
    assert graph.y.tolist() == [0, -1, 1]
    assert graph.x.toarray().tolist() == [[1, 2], [3, 4], [5, 6]]


def test_parquet_is_read_like_csv(tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    nodes, edges = tables(tmp_path)
    made = {
        "id": ["ada", "bob", "cid", "dee"],
        "age": [36, 41, 17, 50],
        "income": [1.5, -2, 0, 1e3],
        "label": ["yes", "no", None, "yes"],
        "split": ["train", "test", None, "valid"],
    }
    parquet.write_table(arrow.table(made), tmp_path / "nodes.parquet")
    expected = ge.Graph.from_tables(nodes, edges)
    assert ge.Graph.from_tables(tmp_path / "nodes.parquet", edges) == expected
    assert ge.Graph.from_tables(arrow.table(made), edges) == expected
    (tmp_path / "bad.parquet").write_text("no")
    with pytest.raises(GraphError, match="not a readable Parquet file"):
        ge.Graph.from_tables(tmp_path / "bad.parquet", edges)


def test_a_missing_extra_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    with pytest.raises(MissingExtraError) as caught:
        ge.Graph.from_tables(tmp_path / "nodes.parquet", tmp_path / "edges.csv")
    assert caught.value.hint == "in a checkout of GraphEraser: pip install '.[tables]'"


def changed(old: str, new: str, text: str = NODES) -> str:
    assert old in text
    return text.replace(old, new)


BAD: dict[str, tuple[dict[str, str], dict[str, Any], str]] = {
    "no id": ({"nodes": changed("id,", "who,")}, {}, r"no column 'id' \(found who, age"),
    "no source": ({"edges": changed("source", "from", EDGES)}, {}, "no column 'source'"),
    "no such label": ({}, {"label": "class"}, "nodes.csv: there is no column 'class'"),
    "no such feature": ({}, {"features": ["height"]}, "no column 'height'"),
    "no such edge feature": ({}, {"edge_features": ["kind"]}, "no column 'kind'"),
    "ragged": ({"nodes": changed("17,0,,", "17,0,")}, {}, r"nodes.csv:4: .*5 columns.*found 4"),
    "not a number": ({"nodes": changed("41", "old")}, {}, r"csv:3: column 'age'.*found 'old'"),
    "NaN": ({"nodes": changed("41", "nan")}, {}, r"csv:3: column 'age'.*finite.*found 'nan'"),
    "a gap": ({"nodes": changed("41", "")}, {}, r"csv:3: column 'age'.*found nothing"),
    "a weight": ({"edges": changed("0.5", "inf", EDGES)}, {}, r"edges.csv:2: column 'weight'"),
    "unknown end": (
        {"edges": changed("cid", "zed", EDGES)},
        {},
        r"edges.csv:3: node 'zed' of column 'target' is not in .*nodes.csv",
    ),
    "id twice": ({"nodes": changed("dee", "ada")}, {}, r"nodes.csv:5: node 'ada' is .*csv:2\)"),
    "no id on a line": ({"nodes": changed("dee", "")}, {}, r"nodes.csv:5: column 'id'"),
    "another part": ({"nodes": changed("valid", "dev")}, {}, r"csv:5: column 'split'.*'dev'"),
    "a number to predict": (
        {"nodes": changed("yes", "0.25").replace(",no,", ",0.75,")},
        {},
        r"csv:2: column 'label' must be classes.*'0.25'.*not classes",
    ),
    "a column twice": ({"nodes": changed("income", "age")}, {}, "column 'age' is there twice"),
    "an empty file": ({"nodes": ""}, {}, "an empty file"),
    "an open quote": ({"nodes": changed("ada", '"ada')}, {}, "not a readable table"),
    "ids that are no numbers": ({}, {"names": False}, "csv:2: column 'id' must be a whole number"),
    "a class that is not among those named": ({}, {"class_names": ["no"]}, r"found 'yes'"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_tables_are_told_where(tmp_path: Path, case: str) -> None:
    content, options, message = BAD[case]
    given = tables(tmp_path, **{**{"nodes": NODES, "edges": EDGES}, **content})
    with pytest.raises(GraphError, match=message):
        ge.Graph.from_tables(*given, **options)


def test_columns_that_nobody_reads_are_warned_about(tmp_path: Path) -> None:
    nodes, edges = tables(tmp_path, edges="source,target,since\nada,bob,1999\n")
    with pytest.warns(UserWarning, match="'since' are not used .edge_features="):
        ge.Graph.from_tables(nodes, edges)
    graph = ge.Graph.from_tables(nodes, edges, edge_features=["since"])
    assert graph.edge_attr is not None


def test_what_is_no_table_is_refused(tmp_path: Path) -> None:
    for wrong in (5, [1, 2], {"id": [1, 2], "x": [1]}):
        with pytest.raises(GraphError, match=r"the nodes must be|must have one length"):
            ge.Graph.from_tables(wrong, {"source": [], "target": []})
    with pytest.raises(GraphError, match="no such file"):
        ge.Graph.from_tables(tmp_path / "none.csv", tmp_path / "none.csv")
