"""What a graph found in its data is schema: declared by an argument, or named in receipts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import grapheraser as ge
from grapheraser.canonical import digest_of
from grapheraser.errors import ParameterError
from grapheraser.store.manifest import MANIFEST
from tests.cli.commands import data

NODES = {"id": [1, 2, 3, 4], "label": ["a", "b", "a", "b"], "f": [1.0, 0.0, 1.0, 2.0]}
EDGES = {"source": [1, 2, 3], "target": [2, 3, 4]}


def arrays(**changes: Any) -> ge.Graph:
    y = changes.pop("y", [0, 1, 0, 1])
    return ge.Graph.from_arrays(np.eye(4), [[0, 1, 2], [1, 2, 3]], y, **changes)


def tables(nodes: Any = None, edges: Any = None, **options: Any) -> ge.Graph:
    return ge.Graph.from_tables({**NODES, **(nodes or {})}, {**EDGES, **(edges or {})}, **options)


def adjacency(*weights: float) -> sp.csr_array:
    both = sp.csr_array((list(weights), ([0, 1], [1, 2])), shape=(3, 3))
    return both + both.T


@pytest.mark.parametrize(
    ("graph", "inferred"),
    [
        (arrays, ("classes",)),
        (lambda: arrays(num_classes=2), ()),
        (lambda: arrays(class_names=["x", "y"]), ()),
        (lambda: arrays(y=["x", "y", "x", None]), ("classes",)),
        (lambda: arrays(y=["x", "y", "x", None], num_classes=2), ("classes",)),
        (lambda: arrays(y=["x", "y", "x", None], class_names=["x", "y", "z"]), ()),
        (lambda: arrays(y=[-1] * 4), ()),
        (lambda: arrays(num_classes=2, inferred=["categories"]), ("categories",)),
        (tables, ("classes",)),
        (lambda: tables(class_names=["a", "b"]), ()),
        (lambda: tables({"label": ["a", "7", "a", "7"]}, class_names=["7", "a"]), ("classes",)),
        (
            lambda: tables(
                {"id": ["1", "x", "3", "4"]},
                {"source": ["1", "x", "3"], "target": ["x", "3", "4"]},
                class_names=["a", "b"],
            ),
            ("names",),
        ),
        (lambda: ge.Graph.from_tables(None, EDGES), ("nodes",)),
        (lambda: ge.Graph.from_scipy(adjacency(1, 2), np.eye(3)), ("weights",)),
        (lambda: ge.Graph.from_scipy(adjacency(1, 2), np.eye(3), weighted=True), ()),
        (lambda: ge.Graph.from_scipy(adjacency(1, 1), np.eye(3)), ()),
        (lambda: ge.load_dataset("demo"), ()),
        (lambda: ge.generate_graph(50, num_classes=3), ()),
    ],
)
def test_a_graph_knows_what_it_found_in_the_data(graph: Any, inferred: tuple[str, ...]) -> None:
    assert graph().inferred == inferred


def test_attributes_in_several_orders_leave_the_order_of_columns_to_the_first_node() -> None:
    networkx = pytest.importorskip("networkx")
    network = networkx.Graph()
    network.add_node(0, a=1.0, b=2.0)
    network.add_node(1, b=1.0, a=2.0)
    network.add_edge(0, 1, weight=2.0)
    assert ge.Graph.from_networkx(network).inferred == ("features", "weights")
    declared = ge.Graph.from_networkx(network, features=["a", "b"], weight="weight")
    assert declared.inferred == ()


def test_what_was_found_stays_known_through_changes_files_and_runs(tmp_path: Path) -> None:
    graph = arrays()
    graph.to_npz(tmp_path / "graph.npz")
    eraser = ge.GraphEraser("closed-form").fit(graph)
    eraser.unlearn(ge.Nodes([0]))
    eraser.save(tmp_path / "run")
    back = ge.GraphEraser.load(tmp_path / "run")
    others = [
        ge.Graph.from_npz(tmp_path / "graph.npz"),
        graph.without(ge.Nodes([1])),
        graph.with_split(test_share=0.5),
        graph.subgraph([0, 1]),
        graph.updated(ge.AddEdges([(0, 3)])),
        back.graph_,
    ]
    assert {other.inferred for other in others} == {("classes",)}
    assert ge.Graph.from_npz(tmp_path / "graph.npz", num_classes=2).inferred == ()
    assert back.unlearn(ge.Nodes([1])).statement == "exact given schema"
    assert back.verify().identical
    assert back.exactness_ == back.receipts_[-1].exactness
    assert data("info", tmp_path / "run")["statement"] == "exact given schema"


def test_forgetting_the_last_of_a_class_changes_no_statement() -> None:
    """A statement that became weaker would say that nobody of the class is left."""
    y = [0, 0, 1, 2]
    found = ge.GraphEraser("closed-form").fit(arrays(y=y))
    declared = ge.GraphEraser("closed-form").fit(arrays(y=y, num_classes=3))
    claims = [[run.unlearn(ge.Nodes([n])).exactness for n in (0, 3)] for run in (found, declared)]
    assert [claim["statement"] for claim in claims[0]] == ["exact given schema"] * 2
    assert [claim["statement"] for claim in claims[1]] == ["exact"] * 2
    assert all(one == other for one, other in claims)


def test_links_have_no_classes_unless_these_are_the_sides() -> None:
    graph = ge.Graph.from_arrays(
        np.eye(6), [[0, 1, 2, 0, 1], [3, 4, 5, 4, 5]], [0, 0, 0, 1, 1, 1], each_edge_once=True
    )
    assert ge.LinkEraser().fit(graph).graph_.inferred == ()
    assert ge.LinkEraser(sides="labels").fit(graph).graph_.inferred == ("classes",)


def test_a_run_that_says_nothing_of_its_schema_may_have_found_it(tmp_path: Path) -> None:
    """As those from before it was kept."""
    ge.GraphEraser("closed-form").fit(arrays(num_classes=2)).save(tmp_path / "run")
    file = tmp_path / "run" / MANIFEST
    manifest = json.loads(file.read_text())
    assert manifest["graph"].pop("inferred") == []
    assert manifest["state"]["described"].pop("inferred") == []
    manifest["configuration"]["history"] |= dict.fromkeys(
        ("fitted", "state"), digest_of(manifest["state"])
    )
    manifest.pop("signature", None)
    file.write_text(json.dumps(manifest))
    older = ge.GraphEraser.load(tmp_path / "run")
    assert older.unlearn(ge.Nodes([1])).statement == "exact given schema"
    assert older.verify().identical


def test_what_was_found_has_a_name() -> None:
    with pytest.raises(ParameterError, match="'inferred' of Graph"):
        arrays(inferred=["no name"])


def test_classes_can_be_declared_where_a_file_is_imported(tmp_path: Path) -> None:
    (tmp_path / "nodes.csv").write_text("id,label,f\n1,0,1.5\n2,1,0.5\n3,0,2\n")
    (tmp_path / "edges.csv").write_text("source,target\n1,2\n2,3\n")
    for name in ("store", "graph.npz"):
        data("import", tmp_path, "--out", tmp_path / name)
        assert ge.load_dataset(tmp_path / name).inferred == ("classes",)
        data("import", tmp_path, "--out", tmp_path / name, "--classes", "3", "--replace")
        graph = ge.load_dataset(tmp_path / name)
        assert (graph.inferred, graph.num_classes) == ((), 3)
