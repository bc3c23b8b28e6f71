"""Sources of imports: streamed where they can be, and the same graph as from memory."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import grapheraser as ge
from grapheraser.errors import GraphError, ParameterError
from grapheraser.store.sources import generated, import_source, stream_of


@pytest.fixture(name="tables")
def _tables(tmp_path: Path) -> Path:
    graph = ge.generate_graph(150, degree=5, num_features=3, num_classes=3, labelled=0.8)
    nodes, edges = graph.to_tables()
    folder = tmp_path / "tables"
    folder.mkdir()
    for name, columns in (("nodes", nodes), ("edges", edges)):
        rows = zip(*columns.values(), strict=True)
        lines = [",".join("" if cell is None else str(cell) for cell in row) for row in rows]
        (folder / f"{name}.csv").write_text("\n".join([",".join(columns), *lines]) + "\n")
    return folder


def imported(source: Path | str, out: Path, **options: Any) -> tuple[ge.Graph, list[str]]:
    said: list[str] = []
    import_source(str(source), out, say=said.append, **options)
    return ge.Graph.open(out), [text for text in said if "memory" in text]


def test_tables_of_numbers_are_streamed(tables: Path, tmp_path: Path) -> None:
    graph, fallen_back = imported(tables, tmp_path / "G")
    wanted = ge.Graph.from_file(tables)
    assert fallen_back == []
    assert graph == wanted
    assert (graph.name, graph.notes) == (wanted.name, wanted.notes)


def test_parquet_tables_are_streamed(tables: Path, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    import pyarrow.csv
    import pyarrow.parquet

    folder = tmp_path / "parquet"
    folder.mkdir()
    for name in ("nodes", "edges"):
        table = pyarrow.csv.read_csv(tables / f"{name}.csv")
        pyarrow.parquet.write_table(table, folder / f"{name}.parquet")
    graph, fallen_back = imported(folder, tmp_path / "G")
    assert fallen_back == []
    assert graph == ge.Graph.from_file(tables)


def test_pairs_need_no_header(tables: Path, tmp_path: Path) -> None:
    lines = (tables / "edges.csv").read_text().splitlines()[1:]
    (tables / "edges.csv").unlink()
    (tables / "edges.txt").write_text("# pairs\n" + "\n".join(lines) + "\n")
    graph, fallen_back = imported(tables, tmp_path / "G")
    assert fallen_back == []
    assert graph == ge.Graph.from_file(tables)


@pytest.mark.parametrize(
    ("table", "old", "new"),
    [
        ("nodes", "label", "label,unused\n"),  # rows of another length
        ("edges", "source,target", "source,target,weight"),
        ("nodes", "\n0,", "\nzero,"),
        ("edges", "\n", "\n0,777\n"),
    ],
)
def test_what_cannot_be_streamed_is_told_as_from_memory(
    tables: Path, tmp_path: Path, table: str, old: str, new: str
) -> None:
    file = tables / f"{table}.csv"
    file.write_text(file.read_text().replace(old, new, 1))
    with pytest.raises(GraphError) as streamed:
        imported(tables, tmp_path / "G")
    with pytest.raises(GraphError) as wanted:
        ge.Graph.from_file(tables)
    assert "777" in str(streamed.value) or str(streamed.value) == str(wanted.value)


def test_names_and_words_are_read_into_memory(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text("id,age,label\nada,1,x\nbob,2,y\n")
    (tmp_path / "knows.csv").write_text("source,target\nada,bob\n")
    graph, fallen_back = imported(
        tmp_path / "people.csv", tmp_path / "G", edges=tmp_path / "knows.csv"
    )
    assert len(fallen_back) == 1
    assert graph == ge.Graph.from_tables(tmp_path / "people.csv", tmp_path / "knows.csv")


def test_a_folder_of_ogb_is_streamed(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    raw, split = tmp_path / "ogb" / "raw", tmp_path / "ogb" / "split" / "time"
    raw.mkdir(parents=True)
    split.mkdir(parents=True)
    files = {
        raw / "edge": rng.integers(0, 50, (120, 2)),
        raw / "node-feat": rng.standard_normal((50, 3)).round(3),
        raw / "node-label": rng.integers(0, 4, (50, 1)),
        split / "train": np.arange(30)[:, None],
        split / "valid": np.arange(30, 40)[:, None],
        split / "test": np.arange(40, 50)[:, None],
    }
    for file, rows in files.items():
        text = "".join(",".join(map(str, row)) + "\n" for row in rows.tolist())
        file.with_suffix(".csv.gz").write_bytes(gzip.compress(text.encode()))
    graph, fallen_back = imported(tmp_path / "ogb", tmp_path / "G")
    wanted = ge.Graph.from_ogb(tmp_path / "ogb")
    assert fallen_back == []
    assert graph == wanted
    assert graph.notes == wanted.notes


def test_other_formats_are_read_into_memory(tables: Path, tmp_path: Path) -> None:
    graph = ge.Graph.from_file(tables)
    graph.to_npz(tmp_path / "mine.npz")
    assert stream_of(str(tmp_path / "mine.npz"), None, None, {}) is None
    assert imported(tmp_path / "mine.npz", tmp_path / "G")[0] == graph


def test_a_generated_graph_is_named_by_its_arguments(tmp_path: Path) -> None:
    graph, _ = imported("generated:nodes=300,degree=4,classes=3,features=2,seed=9", tmp_path / "G")
    assert graph == ge.generate_graph(300, degree=4, num_classes=3, num_features=2, seed=9)
    assert generated("nodes=1e3").num_nodes == 1000


@pytest.mark.parametrize(
    ("text", "message"),
    [("nodes=many", "'nodes'"), ("degree=3", "needs a number"), ("nodes=9,knots=1", "'knots'")],
)
def test_a_generated_graph_that_is_none_is_refused(text: str, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        generated(text)
    with pytest.raises(ParameterError, match="no other options"):
        stream_of("generated:nodes=9", None, None, {"id": "who"})
