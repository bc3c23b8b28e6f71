"""grapheraser import: files of many formats become one that fit takes."""

from __future__ import annotations

import io
import json
from pathlib import Path

import numpy as np
import pytest
import torch

import grapheraser as ge
from tests.cli.commands import data, run
from tests.graph.formats.test_ogb import RAW, SPLIT, put
from tests.strategies import small_graph, with_names


def put_tables(folder: Path, graph: ge.Graph) -> tuple[Path, Path]:
    """Write the tables of a graph as CSV files."""
    paths = folder / "people.csv", folder / "ties.csv"
    for path, table in zip(paths, graph.to_tables(), strict=True):
        columns = [["" if cell is None else str(cell) for cell in table[name]] for name in table]
        rows = [list(table), *map(list, zip(*columns, strict=True))]
        path.write_text("\n".join(",".join(row) for row in rows) + "\n")
    return paths


def test_tables_are_imported_fitted_asked_and_forgotten_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = with_names(small_graph(split="mixed"))
    nodes, edges = put_tables(tmp_path, graph)
    out, folder = tmp_path / "mine.npz", tmp_path / "run"
    report = data("import", nodes, "--edges", edges, "--out", out)
    assert report["graph"] == graph.fingerprint
    assert report["named"] is True
    assert (report["train"], report["test"]) == (graph.num_train, len(graph.test_nodes))
    fitted = data("fit", out, "--shards", 3, "--epochs", 2, "--out", folder)
    assert fitted["graph"] == graph.fingerprint, "the split of the file is the one that is used"
    name, other = graph.names_of(graph.train_nodes[:2]).tolist()
    asked = tmp_path / "asked.txt"
    asked.write_text(f"{name}\n{other}\n")
    for nodes_option in (f"{name},{other}", f"@{asked}"):
        found = data("predict", folder, "--nodes", nodes_option)["predictions"]
        assert [entry["node"] for entry in found] == [name, other]
    explained = data("predict", folder, "--nodes", name, "--explain")["predictions"][0]
    assert explained["explanation"]["node"] == name
    monkeypatch.setattr("sys.stdin", io.StringIO(f"{name}\n"))
    receipt = data("unlearn", folder, "--nodes", "-")["receipt"]
    assert receipt["counts"]["nodes"] == 1
    assert f"node {name!r} is not in the graph" in run("predict", folder, "--nodes", name).stderr
    forgotten = tmp_path / "forgotten.jsonl"
    forgotten.write_text(json.dumps({"nodes": [name]}) + "\n")
    done = run("verify", folder, "--deep", "--forgotten", forgotten)
    assert done.returncode == 0, done.stderr + done.stdout
    again = run("unlearn", folder, "--file", f"@{asked}")
    assert f"node {name!r} is not in the graph" in again.stderr


def test_each_format_is_imported(tmp_path: Path) -> None:
    graph = small_graph()
    graph.to_npz(tmp_path / "compact.npz")
    torch.save(graph.to_pyg(), tmp_path / "data.pt")
    for name, content in RAW.items():
        put(tmp_path / "ogb" / "raw", name, content)
    for name, content in SPLIT.items():
        put(tmp_path / "ogb" / "split" / "time", name, content)
    for source in ("compact.npz", "data.pt", "ogb"):
        out = tmp_path / f"from-{source}.npz"
        report = data("import", tmp_path / source, "--out", out)
        assert report["graph"] == ge.Graph.from_npz(out).fingerprint
        if source != "ogb":
            assert ge.Graph.from_npz(out).edges.tolist() == graph.edges.tolist()
        else:
            assert "directed" in report["notes"][0]


def test_words_are_classes_in_answers(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    rows = [f"{i},{i % 2},{rng.random():.3f},{('cat', 'dog')[i % 2]}" for i in range(40)]
    (tmp_path / "nodes.csv").write_text("id,a,b,label\n" + "\n".join(rows))
    pairs = [f"{i},{(i + 2) % 40}" for i in range(40)]
    (tmp_path / "edges.csv").write_text("source,target\n" + "\n".join(pairs))
    out, folder = tmp_path / "pets.npz", tmp_path / "run"
    done = run("import", tmp_path, "--out", out)
    assert "classes   cat, dog" in done.stdout
    fitted = data("fit", out, "--model", "closed-form", "--out", folder)
    assert fitted["test_f1"] is not None, "a file without a split gets a random one"
    found = data("predict", folder, "--nodes", "3,4")["predictions"]
    assert [entry["class_name"] for entry in found] == ["dog", "cat"]
    assert "dog" in run("predict", folder, "--nodes", 3).stdout


def test_what_cannot_be_imported_is_told(tmp_path: Path) -> None:
    graph = small_graph()
    graph.to_npz(tmp_path / "mine.npz")
    out = tmp_path / "out.npz"
    cases = [
        (("import", tmp_path / "none.csv", "--out", out), "no such file or folder"),
        (("import", tmp_path / "mine.npz", "--out", tmp_path), "holds something"),
        (("import", "generated:degree=3", "--out", tmp_path / "out"), "needs a number of nodes"),
        (("import", "generated:knots=3", "--out", tmp_path / "out"), "has no 'knots'"),
        (("import", tmp_path / "mine.npz", "--out", tmp_path / "mine.npz"), "the file exists"),
        (("import", tmp_path / "mine.npz", "--out", out, "--id", "who"), "has no part in"),
        (("import", tmp_path / "mine.npz", "--out", out, "--format", "xml"), "'format' of"),
    ]
    for words, message in cases:
        done = run(*words)
        assert done.returncode == 1
        assert message in done.stderr
        assert not out.exists()
    again = run("import", tmp_path / "mine.npz", "--out", tmp_path / "mine.npz", "--replace")
    assert again.returncode == 0


def test_gaps_and_categories_are_declared_where_tables_are_imported(tmp_path: Path) -> None:
    (tmp_path / "nodes.csv").write_text("id,label,age,size\n1,0,3,s\n2,1,,m\n3,0,5,s\n")
    (tmp_path / "edges.csv").write_text("source,target\n1,2\n2,3\n")
    options = ("--missing", "age=mean", "--categories", "size=s|m|l", "--classes", "2")
    for name in ("store", "graph.npz"):
        data("import", tmp_path, "--out", tmp_path / name, *options)
        graph = ge.load_dataset(tmp_path / name)
        assert graph.inferred == ()
        expected = [[3, 0, 1, 0, 0], [4, 1, 0, 1, 0], [5, 0, 1, 0, 0]]
        assert graph.x.toarray().tolist() == expected
        assert graph.encoding is not None
        found = data("import", tmp_path, "--out", tmp_path / name, "--missing", "zero", "--replace")
        assert found["features"] == 3
        assert ge.load_dataset(tmp_path / name).inferred == ("categories", "classes")


@pytest.mark.parametrize("out", ["found", "found.npz"])
def test_several_labels_and_numbers_are_imported_from_tables(tmp_path: Path, out: str) -> None:
    (tmp_path / "edges.csv").write_text("source,target\n0,1\n1,2\n")
    table = tmp_path / "nodes.csv"
    table.write_text("id,label,f\n0,art|law,1\n1,law,0\n2,,1\n")
    where = ("--edges", tmp_path / "edges.csv", "--out", tmp_path / out)
    words = ("--labels", "several", "--separator", "|", "--classes", "sport,law,art")
    assert data("import", table, *where, *words)["class_names"] == ["sport", "law", "art"]
    graph = ge.Graph.open(tmp_path / out) if out == "found" else ge.Graph.from_npz(tmp_path / out)
    assert graph.label_kind.name == "several"
    assert graph.y.tolist() == [[0, 1, 1], [0, 1, 0], [-1, -1, -1]]
    table.write_text("id,label,f\n0,2.0,1\n1,3.0,0\n2,2.0,1\n")
    (note,) = data("import", table, *where, "--replace")["notes"]
    assert "all whole: taken as classes" in note
    numbers = ("--labels", "numbers", "--label-range", "9", "--replace")
    assert data("import", table, *where, *numbers)["notes"] == []
    graph = ge.Graph.open(tmp_path / out) if out == "found" else ge.Graph.from_npz(tmp_path / out)
    assert graph.y.tolist() == [2.0, 3.0, 2.0]
    assert graph.label_kind.exponents == (4,)


def test_words_that_read_as_numbers_are_taken_as_classes_and_it_is_said() -> None:
    with pytest.warns(UserWarning, match="words that all read as numbers: taken as classes"):
        graph = ge.Graph.from_arrays(np.eye(3), [[0], [1]], ["1", "2.5", ""])
    assert graph.class_names == ("1", "2.5")
    said = ge.Graph.from_arrays(np.eye(3), [[0], [1]], ["1", "2.5", ""], labels="classes")
    assert said.y.tolist() == graph.y.tolist()
