"""Collections from other formats, and on disk, hold what was given."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import grapheraser as ge
from grapheraser.errors import GraphError
from tests.graphs.collections import collection_of, random_parts

# Two graphs: a path of three nodes, and a triangle.
PAIRS = ([(0, 1), (1, 2)], [(0, 1), (1, 2), (0, 2)])
LABELS = ([6, 6, 8], [1, 2, 3])


def check(collection: ge.Collection) -> None:
    for small, labels, pairs in zip(collection, LABELS, PAIRS, strict=True):
        assert small.labels.tolist() == list(labels)
        assert {*map(tuple, small.edges.tolist())} == {*pairs}


def test_pyg_data() -> None:
    data = pytest.importorskip("torch_geometric.data")
    torch = pytest.importorskip("torch")
    made = [
        data.Data(
            x=torch.tensor(labels)[:, None],
            edge_index=torch.tensor([*pairs, *((v, u) for u, v in pairs)]).T,
            y=torch.tensor([at]),
        )
        for at, (labels, pairs) in enumerate(zip(LABELS, PAIRS, strict=True))
    ]
    check(ge.Collection.from_pyg(made))
    made[0].pos, made[0].name = torch.zeros(3, 2), "a path"
    with pytest.warns(UserWarning, match=r"'pos' of the graphs is not used"):
        ge.Collection.from_pyg(made)


def test_networkx_graphs() -> None:
    networkx = pytest.importorskip("networkx")
    made = []
    for labels, pairs in zip(LABELS, PAIRS, strict=True):
        graph = networkx.Graph(pairs)
        networkx.set_node_attributes(graph, dict(enumerate(labels)), "label")
        made.append(graph)
    check(ge.Collection.from_networkx(made, [0, 1]))


def test_tables() -> None:
    rows = [(g, u, v) for g, pairs in enumerate(PAIRS) for u, v in pairs]
    nodes = [(g, n, label) for g, labels in enumerate(LABELS) for n, label in enumerate(labels)]
    tables = (
        {"graph": [0, 1], "y": [0, 1]},
        dict(zip(("graph", "node", "label"), map(list, zip(*nodes, strict=True)), strict=True)),
        dict(zip(("graph", "source", "target"), map(list, zip(*rows, strict=True)), strict=True)),
    )
    check(ge.Collection.from_tables(*tables))
    tables[1]["charge"], tables[2]["length"] = [0.5, 1, 1.5, 2, 2.5, 3], [0.25] * len(rows)
    told = ge.Collection.from_tables(*tables)
    assert told[1].cells.ravel().tolist() == [32, 40, 48]  # sixteenths
    assert told[0].edge_cells.ravel().tolist() == [4, 4]
    with pytest.raises(GraphError, match="column 'split' of the graphs is not used"):
        ge.Collection.from_tables(tables[0] | {"split": [0, 1]}, *tables[1:])


def test_a_tu_folder(tmp_path: Path) -> None:
    files = {
        "A": "1, 2\n2, 1\n2, 3\n3, 2\n4, 5\n5, 6\n4, 6\n",
        "graph_indicator": "1\n1\n1\n2\n2\n2\n",
        "graph_labels": "-1\n1\n",
        "node_labels": "6\n6\n8\n1\n2\n3\n",
    }
    for name, text in files.items():
        (tmp_path / f"TOY_{name}.txt").write_text(text)
    check(ge.Collection.from_tu(tmp_path))
    (tmp_path / "TOY_node_labels.txt").write_text("6, 1\n6, 0\n8, 1\n1, 0\n2, 0\n3, 0\n")
    both = ge.Collection.from_tu(tmp_path)
    first, second = both[0].labels.tolist(), both[1].labels.tolist()
    assert len({*first}) == 3  # no column is dropped
    assert second == [1, 2, 3]
    (tmp_path / "TOY_node_labels.txt").write_text("6, 1\n6, 0\n9999, 1\n1, 0\n2, 0\n3, 0\n")
    with pytest.raises(GraphError, match="fit into one"):
        ge.Collection.from_tu(tmp_path)


def test_smiles() -> None:
    pytest.importorskip("rdkit")
    found = ge.Collection.from_smiles(["CCO", "C1CC1"], [0, 1])
    assert found[0].labels.tolist() == [6, 6, 8]
    assert len(found[1].edges) == 3
    with pytest.raises(GraphError, match="not a SMILES"):
        ge.Collection.from_smiles(["no molecule"], [0])


def test_a_saved_collection_is_read_back(tmp_path: Path) -> None:
    made = collection_of(random_parts(30, seed=3))
    made.save(tmp_path / "kept")
    found = ge.Collection.load(tmp_path / "kept")
    assert found.graph.fingerprint == made.graph.fingerprint


def test_an_npz_file_names_its_targets(tmp_path: Path) -> None:
    y, file = [[0, 1], [1, 1]], tmp_path / "toy.npz"
    np.savez(file, node_offset=[0, 2, 5], edges=[[0, 1], [3, 4]], y=y, targets=["NR-AR", "SR-p53"])
    found = ge.Collection.from_npz(file)
    assert found.graph.label_kind.target_names == ("NR-AR", "SR-p53")
    assert found.graph.name == "toy"


def test_graphs_as_mappings_are_checked() -> None:
    toy = collection_of(random_parts(6))
    with pytest.raises(GraphError, match="graph 1 has 1 labels of 2 nodes"):
        toy.rows_of([{"num_nodes": 2}, {"num_nodes": 2, "node_label": [1]}])
    with pytest.raises(GraphError, match="'edges' of graph 0 must be in"):
        toy.rows_of([{"num_nodes": 2, "edges": [(0, 2)]}])


@pytest.mark.parametrize("one", ["CCO", {"num_nodes": 2}, None, 7])
def test_one_graph_in_the_place_of_several_is_refused(one: object) -> None:
    with pytest.raises(GraphError, match="must come as a list"):
        collection_of(random_parts(6)).rows_of(one)


def test_graphs_of_another_grid_are_refused() -> None:
    rng = np.random.default_rng(0)
    offset, edges = np.arange(0, 25, 2), [(2 * i, 2 * i + 1) for i in range(12)]
    made = ge.Collection.from_arrays(
        offset, edges, np.arange(12) % 2, x=rng.random((24, 2)), num_classes=2
    )
    eraser = ge.CollectionEraser().fit(made)
    assert len(eraser.predict_new([{"x": [[0.5, 1.0]], "edges": []}])) == 1
    with pytest.raises(GraphError, match="other columns"):
        eraser.predict_new([{"x": [[0.5]], "edges": []}])


def test_batches_of_pyg_are_taken_apart() -> None:
    pyg, torch = pytest.importorskip("torch_geometric.data"), pytest.importorskip("torch")
    ends = torch.tensor([[0, 1], [1, 0]])
    data = [pyg.Data(x=torch.tensor([[k], [1]]), edge_index=ends, y=k % 2) for k in range(6)]
    whole, *parts = map(pyg.Batch.from_data_list, (data, data[:4], data[4:]))
    for batched in (ge.Collection.from_pyg(whole), ge.Collection.from_pyg(parts)):
        assert [small.labels.tolist() for small in batched] == [[k, 1] for k in range(6)]
        assert batched.y.tolist() == [0, 1] * 3
