"""Ids that stand for numbers under a secret, so that gaps name nobody."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import grapheraser as ge
from grapheraser.errors import GraphError, UnknownNodeError
from grapheraser.graph.ids import KEYED, keyed_ids
from grapheraser.receipts.secret import IDS, secret_of
from tests.cli.commands import data, run
from tests.cli.test_import import put_tables
from tests.strategies import small_graph, with_names


def keyed(numbers: Any) -> NDArray[np.int64]:
    """The ids of numbers, by the documented rule."""
    return np.array(keyed_ids(np.ravel(numbers).tolist(), secret_of(IDS)), dtype=np.int64)


def closed() -> ge.GraphEraser:
    return ge.GraphEraser("closed-form", seed=3)


def test_a_keyed_graph_is_the_same_graph_under_other_ids() -> None:
    for graph in (small_graph(), small_graph(split="mixed")):
        hidden = graph.with_keyed_ids()
        pairs = keyed(graph.edges.ravel()).reshape(-1, 2).T
        split: dict[str, Any] = {"train": keyed(graph.train_nodes), "test": keyed(graph.test_nodes)}
        split["validation"] = keyed(graph.validation_nodes)
        again = ge.Graph.from_arrays(
            graph.x,
            pairs,
            graph.y,
            ids=keyed(graph.ids),
            num_classes=graph.num_classes,
            each_edge_once=True,
            **split,
        )
        assert hidden.fingerprint == again.fingerprint
        assert hidden.keyed
        assert not graph.keyed
        assert hidden.ids.min() >= KEYED


def test_directions_and_weights_stay_with_their_edges() -> None:
    rng = np.random.default_rng(0)
    ends = np.array([[0, 1, 2, 3, 4], [1, 2, 3, 0, 2]])
    given: dict[str, Any] = {
        "edge_weight": rng.random(5),
        "directed": True,
        "ids": np.arange(5) * 7,
    }
    graph = ge.Graph.from_arrays(np.eye(5), ends * 7, [0, 1, 0, 1, 0], **given)
    own = {**given, "ids": keyed(given["ids"])}
    again = ge.Graph.from_arrays(np.eye(5), keyed(ends * 7).reshape(2, -1), [0, 1, 0, 1, 0], **own)
    assert graph.with_keyed_ids().fingerprint == again.fingerprint


def test_numbers_mean_the_same_nodes_outside() -> None:
    graph = small_graph()
    hidden = graph.with_keyed_ids()
    eraser = closed().fit(hidden)
    a, b, c = (int(node) for node in graph.ids[:3])
    np.testing.assert_array_equal(eraser.predict_proba([a, b]), eraser.predict_proba(keyed([a, b])))
    pair = tuple(int(end) for end in graph.edges[-1])
    receipt = eraser.unlearn([ge.Nodes([a]), ge.Edges([pair]), ge.Features([b])])
    assert receipt.counts["nodes"] == receipt.counts["edges"] == 1
    assert {str(i) for part in receipt.parts for i in part.about["ids"]} == {
        str(i) for i in keyed([a, b, *pair])
    }
    rest = hidden.without([ge.Nodes(keyed([a])), ge.Edges([tuple(keyed(pair).tolist())])])
    rest = rest.without(ge.Features(keyed([b])))
    assert eraser.graph_.fingerprint == rest.fingerprint
    row = np.ones((1, graph.num_features), dtype=np.float32)
    eraser.update([ge.AddNodes([7001], row, y=[0], edges=[(7001, c)]), ge.SetLabels([c], [1])])
    assert eraser.graph_.contains(keyed([7001])).all()
    assert eraser.graph_.has_edges(keyed([7001, c]).reshape(1, 2)).all()
    assert eraser.graph_.ids.min() >= KEYED, "a number never lies among keyed ids"
    with pytest.raises(UnknownNodeError, match=f"node {a} is not in the graph"):
        eraser.unlearn(ge.Nodes([a]))
    with pytest.raises(UnknownNodeError):
        eraser.predict([a])


def test_what_lies_in_the_folder_shows_no_gaps(tmp_path: Path) -> None:
    """Whoever has the folder, and knows that ids were 0 to n - 1, can't say which went."""
    n, rng = 400, np.random.default_rng(1)
    edges = rng.integers(0, n, (2, 1200))
    x, y = rng.random((n, 4), dtype=np.float32), rng.integers(0, 2, n)
    arrays: dict[str, Any] = {"ids": "keyed", "num_classes": 2, "each_edge_once": True}
    gone = np.sort(rng.choice(n, 40, replace=False))
    eraser = closed().fit(ge.Graph.from_arrays(x, edges, y, **arrays))
    eraser.unlearn(ge.Nodes(gone))
    eraser.save(tmp_path / "run")
    report = run("verify", tmp_path / "run", "--deep")
    assert report.returncode == 0, report.stderr
    assert "gaps" not in report.stdout + report.stderr
    left = ge.GraphEraser.load(tmp_path / "run").graph_.ids
    # Nothing but what is left decides which ids are there.
    assert set(left.tolist()) == set(keyed(np.setdiff1d(np.arange(n), gone)).tolist())
    # In no order are they a range with holes: neither by value, nor by any bits of them.
    for low in range(0, 62, 6):
        values = np.unique((left - KEYED) >> low & (2**48 - 1))
        steps = np.diff(values)
        assert len(np.unique(steps)) > 0.9 * min(len(steps), 2 ** max(0, 50 - low)) or low > 40
    ranks = np.argsort(np.argsort(keyed(np.setdiff1d(np.arange(n), gone))))
    assert abs(np.corrcoef(np.arange(len(ranks)), ranks)[0, 1]) < 0.25
    # Another secret is another world: the ids alone confirm no guess.
    guesses = keyed_ids(range(n), bytes(32))
    assert not set(guesses) & set(left.tolist())
    assert not set(range(n)) & set(left.tolist())


def test_without_the_secret_numbers_are_unknown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hidden = small_graph().with_keyed_ids()
    number = int(small_graph().ids[0])
    assert hidden.contains([number]).all()
    monkeypatch.setenv("GRAPHERASER_KEYS", str(tmp_path / "elsewhere"))
    assert not hidden.contains([number]).any()
    assert not (tmp_path / "elsewhere").exists(), "no question makes a secret"
    assert hidden.contains(hidden.ids).all()


def test_only_numbers_are_keyed(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = small_graph()
    for other in (with_names(graph), graph.with_keyed_ids()):
        with pytest.raises(GraphError, match="get keyed ids"):
            other.with_keyed_ids()
    monkeypatch.setenv("GRAPHERASER_KEYS", "")
    with pytest.raises(ge.errors.ParameterError, match="needs a folder"):
        graph.with_keyed_ids()


@pytest.mark.parametrize("out", ["store", "mine.npz"])
def test_import_fit_predict_and_unlearn_by_number(tmp_path: Path, out: str) -> None:
    graph = small_graph(split="mixed")
    nodes, edges = put_tables(tmp_path, graph)
    data("import", nodes, "--edges", edges, "--out", tmp_path / out, "--keyed")
    opened = ge.Graph.open(tmp_path / out) if out == "store" else ge.Graph.from_npz(tmp_path / out)
    assert opened.fingerprint == graph.with_keyed_ids().fingerprint
    folder = tmp_path / "run"
    data("fit", tmp_path / out, "--model", "closed-form", "--out", folder)
    number = int(graph.train_nodes[0])
    (entry,) = data("predict", folder, "--nodes", number)["predictions"]
    assert str(entry["node"]) in (str(number), str(keyed([number])[0]))
    assert data("unlearn", folder, "--nodes", number)["receipt"]["counts"]["nodes"] == 1
    assert f"node {number} is not" in run("unlearn", folder, "--nodes", number).stderr
    shutil.rmtree(folder)
