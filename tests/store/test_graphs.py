"""Graph stores: a graph that lies on the disk is the graph that was written, or an error."""

from __future__ import annotations

import json
import mmap
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import grapheraser as ge
from grapheraser.errors import CorruptRunError, GraphEraserError, GraphError
from grapheraser.graph.pages.stored import open_graph
from grapheraser.store import graphs
from grapheraser.store.graphs import write_graph


@pytest.fixture(autouse=True)
def small_packs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graphs, "PACK_PAGES", 2)


@pytest.fixture(name="folder")
def _folder(tmp_path: Path) -> Path:
    write_graph(ge.generate_graph(900, degree=6, num_features=4, num_classes=3), tmp_path / "G")
    return tmp_path / "G"


def named() -> ge.Graph:
    nodes = {"id": ["ada", "bob", "cid"], "age": [1.0, 2.0, 0.0], "label": ["a", "b", "a"]}
    edges = {"source": ["ada", "bob"], "target": ["bob", "cid"], "weight": [0.5, 2.0]}
    return ge.Graph.from_tables(nodes, edges, directed=True)


@pytest.mark.parametrize("make", [named, lambda: ge.load_dataset("demo")])
def test_all_that_a_graph_has_comes_back(tmp_path: Path, make: Any) -> None:
    graph = make()
    write_graph(graph, tmp_path / "G")
    again = ge.Graph.open(tmp_path / "G")
    assert again == graph
    assert (again.name, again.class_names) == (graph.name, graph.class_names)
    assert again.edge_kind == graph.edge_kind
    assert again.named == graph.named
    assert list(again.names_of(again.ids)) == list(graph.names_of(graph.ids))


def test_pages_are_views_of_the_files(folder: Path) -> None:
    graph = ge.Graph.open(folder)
    for page in graph.pages.pages:
        for block in (page.nodes, page.edges, page.features):
            base: Any = block
            while isinstance(base, np.ndarray):
                base = base.base
            assert isinstance(base.obj, mmap.mmap)
            assert not block.flags.writeable


def test_a_split_is_drawn_without_reading_edges_or_features(folder: Path) -> None:
    graph = ge.Graph.open(folder)
    other, wanted = (
        graph.with_split(seed=3),
        ge.Graph.from_arrays(*(graph.x, graph.edge_index, graph.y), num_classes=3).with_split(
            seed=3
        ),
    )
    assert other == wanted
    assert np.array_equal(other.role, wanted.role)
    for one, two in zip(other.pages.pages, graph.pages.pages, strict=True):
        assert one.edges is two.edges
        assert one.features is two.features


def test_a_change_shares_the_pages_that_it_does_not_touch(folder: Path) -> None:
    graph = ge.Graph.open(folder)
    before = {file: file.read_bytes() for file in folder.rglob("*") if file.is_file()}
    rest = graph.without(ge.Nodes([5]))
    fresh = ge.generate_graph(900, degree=6, num_features=4, num_classes=3).without(ge.Nodes([5]))
    assert rest == fresh
    assert any(one is other for one, other in zip(rest.pages.pages, graph.pages.pages, strict=True))
    assert before == {file: file.read_bytes() for file in before}
    shutil.rmtree(folder)
    assert rest.pages.nodes()[0].tolist() == fresh.ids.tolist()


def test_an_eraser_fits_forgets_and_verifies_from_the_disk(folder: Path, tmp_path: Path) -> None:
    def fitted(graph: ge.Graph) -> ge.GraphEraser:
        eraser = ge.GraphEraser("gcn", num_shards=3, epochs=2, seed=1).fit(graph)
        eraser.unlearn(ge.Nodes([int(graph.train_nodes[7])]))
        return eraser

    here = fitted(ge.load_dataset(folder))
    there = fitted(ge.generate_graph(900, degree=6, num_features=4, num_classes=3))
    assert here.graph_ == there.graph_
    mine, other = here._snapshot.state.tensors(), there._snapshot.state.tensors()
    assert mine.keys() == other.keys()
    assert all(np.array_equal(mine[name], other[name]) for name in mine)
    here.save(tmp_path / "run")
    assert ge.GraphEraser.load(tmp_path / "run").verify().identical


@pytest.mark.parametrize("where", ["packs/00000.pack", "packs/00001.pack", "index"])
def test_a_flipped_byte_is_noticed_wherever_it_is(folder: Path, where: str) -> None:
    file = next(folder.glob("index-*")) if where == "index" else folder / where
    content = bytearray(file.read_bytes())
    for at in (40, len(content) // 2, len(content) - 1):
        content[at] ^= 1
        file.write_bytes(content)
        with pytest.raises(CorruptRunError, match=file.name):
            ge.Graph.open(folder)
        content[at] ^= 1
    file.write_bytes(content)
    assert ge.Graph.open(folder).num_nodes == 900


def test_a_missing_or_shorter_pack_is_named(folder: Path) -> None:
    pack = folder / "packs" / "00001.pack"
    content = pack.read_bytes()
    pack.write_bytes(content[:-100])
    with pytest.raises(CorruptRunError, match=r"00001\.pack: truncated"):
        ge.Graph.open(folder)
    pack.unlink()
    with pytest.raises(CorruptRunError, match=r"00001\.pack: can't be read") as caught:
        ge.Graph.open(folder)
    assert "import it again" in str(caught.value.hint)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("format", "other"),
        ("version", 99),
        ("packs", "many"),
        ("packs", [1, 2, 3]),
        ("num_features", 5),
        ("num_classes", 1),
        ("edges", {"what": 1}),
        ("index", {}),
        ("dense", False),
        ("notes", None),
    ],
)
def test_a_manifest_that_a_stranger_made_is_refused(folder: Path, key: str, value: Any) -> None:
    manifest = json.loads((folder / "graph.json").read_text())
    (folder / "graph.json").write_text(json.dumps(manifest | {key: value}))
    with pytest.raises(CorruptRunError):
        ge.Graph.open(folder)
    (folder / "graph.json").write_text("{")
    with pytest.raises(CorruptRunError, match="not readable"):
        ge.Graph.open(folder)


def test_a_folder_without_a_graph_is_told_from_one_that_is_not_finished(tmp_path: Path) -> None:
    with pytest.raises(GraphError, match="no graph here"):
        ge.Graph.open(tmp_path)
    (tmp_path / "import.partial").write_bytes(b"")
    with pytest.raises(GraphError, match="has not finished"):
        open_graph(ge.Graph, tmp_path)
    assert issubclass(CorruptRunError, GraphEraserError)
