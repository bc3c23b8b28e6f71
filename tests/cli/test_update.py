"""grapheraser update, and what unlearn does about data that is not there."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import grapheraser as ge
from tests.cli.commands import data, run, snapshot


def lines(*entries: Any) -> str:
    return "\n".join(json.dumps(entry) for entry in entries) + "\n"


def test_a_file_of_changes_is_one_batch(own_run: Path, tmp_path: Path) -> None:
    before = ge.GraphEraser.load(own_run)
    graph = before.graph_
    a, b, c, d = graph.train_nodes[:4].tolist()
    file = tmp_path / "changes.jsonl"
    dense = np.arange(graph.num_features).tolist()
    file.write_text(
        lines(
            {
                "add_nodes": {
                    "ids": [10**6, 10**6 + 1],
                    "x": [{"3": 1.5, "17": 2}, dense],
                    "y": [1, None],
                    "edges": [[10**6, a], [10**6 + 1, 10**6]],
                }
            },
            {"set_features": {"nodes": [a], "x": [{"0": 7}]}, "nodes": [d]},
            {},
        ).replace("{}\n", "\n")
        + lines({"set_labels": {"nodes": [b], "y": [2]}}, {"edges": [graph.edges[0].tolist()]})
    )
    rows = np.zeros((2, graph.num_features))
    rows[0, [3, 17]], rows[1] = [1.5, 2], dense
    one = np.zeros((1, graph.num_features))
    one[0, 0] = 7
    expected = graph.updated(
        [
            ge.AddNodes([10**6, 10**6 + 1], rows, [1, -1], [(10**6, a), (10**6 + 1, 10**6)]),
            ge.SetFeatures([a], one),
            ge.SetLabels([b], [2]),
            ge.Nodes([d]),
            ge.Edges([graph.edges[0]]),
        ]
    )
    files = snapshot(own_run)
    plan = data("update", own_run, "--file", file, "--dry-run")["plan"]
    assert snapshot(own_run) == files
    report = data("update", own_run, "--file", file)
    after = ge.GraphEraser.load(own_run)
    assert after.graph_ == expected
    (receipt,) = after.receipts_
    details = report["receipt"].pop("details")
    assert report == {"receipt": receipt.to_dict(), "digest": receipt.digest, "receipts": []}
    assert plan["retrain"] == [record["shard"] for record in details["shards"] if record["after"]]
    assert receipt.action == "update"
    counts = {"added_nodes": 2, "added_edges": 2, "set_features": 1, "set_labels": 1}
    assert receipt.counts.items() >= counts.items()
    assert data("verify", own_run)["identical"]
    assert c in after.graph_.train_nodes


def test_changes_come_from_stdin_and_are_told(
    own_run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = ge.GraphEraser.load(own_run).graph_
    a, b = graph.train_nodes[:2].tolist()
    text = lines({"add_edges": {"pairs": [[a, 10**6]]}}, {"nodes": [b]})
    text += lines({"add_nodes": {"ids": [10**6], "x": [{}], "y": [0]}})
    monkeypatch.setattr("sys.stdin", io.StringIO(text))
    assert "other nodes change" in run("update", own_run, "--file", "-", "--dry-run").stdout
    monkeypatch.setattr("sys.stdin", io.StringIO(text))
    done = run("update", own_run, "--file", "-")
    assert "forgotten   1 node\n" in done.stdout
    assert "added       1 node and 1 edge" in done.stdout
    assert ge.GraphEraser.load(own_run).graph_.neighbours(10**6).tolist() == [a]


def test_names_of_nodes_and_of_classes_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    x, y = np.eye(6), ["cat", "dog", "cat", "dog", "cat", "dog"]
    edges = [["a", "b", "c", "d"], ["b", "c", "d", "e"]]
    graph = ge.Graph.from_arrays(x, edges, y, ids=list("abcdef"))
    ge.GraphEraser("closed-form").fit(graph).save(tmp_path / "run")
    new = {"ids": ["g", "h"], "x": [{}, {"0": 1}], "y": ["dog", None], "edges": [["g", "a"]]}
    text = lines({"set_labels": {"nodes": ["a"], "y": ["dog"]}, "add_nodes": new})
    monkeypatch.setattr("sys.stdin", io.StringIO(text))
    data("update", tmp_path / "run", "--file", "-")
    after = ge.GraphEraser.load(tmp_path / "run").graph_
    assert after.labels(["a", "g", "h"]).tolist() == [1, 1, -1]
    assert set(after.names_of(after.neighbours("g"))) == {"a"}
    text = lines({"add_edges": {"pairs": [["a", "zoe"]]}})
    monkeypatch.setattr("sys.stdin", io.StringIO(text))
    assert "node 'zoe' is not in the graph" in run("update", tmp_path / "run", "--file", "-").stderr


BAD: dict[str, tuple[str, str]] = {
    "no JSON": ("{", "not a JSON object"),
    "no object": ("[1]", "has some of the keys add_nodes"),
    "unknown key": (lines({"add": {}}), "has some of the keys"),
    "missing part": (lines({"add_nodes": {"ids": [1]}}), "an object with ids and x"),
    "unknown part": (
        lines({"set_labels": {"nodes": [10], "y": [1], "z": 1}}),
        "an object with nodes and y",
    ),
    "no parts": (lines({"add_edges": [[1, 2]]}), "an object with pairs"),
    "column": (lines({"set_features": {"nodes": [10], "x": [{"-1": 1}]}}), "a column of 'x'"),
    "value": (lines({"set_features": {"nodes": [10], "x": [{"1": "a"}]}}), "made of numbers"),
    "row": (lines({"set_features": {"nodes": [10, 11], "x": [{}, [1]]}}), "a row of 'x' is"),
    "width": (lines({"set_features": {"nodes": [10], "x": [[1.0]]}}), "columns of the graph"),
    "label": (lines({"set_labels": {"nodes": [10], "y": [99]}}), "new classes need a new fit"),
    "empty": ("\n", "names nothing"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_lines_are_named_and_change_nothing(fitted: Path, tmp_path: Path, case: str) -> None:
    text, message = BAD[case]
    before = snapshot(fitted)
    file = tmp_path / "changes.jsonl"
    file.write_text(text)
    done = run("update", fitted, "--file", file)
    assert done.returncode == 1
    assert message in done.stderr
    assert snapshot(fitted) == before
    assert "can't read the changes" in run("update", fitted, "--file", tmp_path / "none").stderr


# -- what is not there ----------------------------------------------------------------------------


def test_what_is_gone_can_be_skipped(own_run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nodes = ge.GraphEraser.load(own_run).graph_.train_nodes[:3].tolist()
    named = ",".join(map(str, [*nodes, 10**7, 10**7 + 1]))
    error = run("unlearn", own_run, "--nodes", named).stderr
    assert f"nodes {10**7} and {10**7 + 1} are not in the graph (2 of 5 ids" in error
    plan = data("unlearn", own_run, "--nodes", named, "--missing", "skip", "--dry-run")["plan"]
    assert (plan["nodes"], plan["skipped"]) == (3, 2)
    done = run("unlearn", own_run, "--nodes", named, "--missing", "skip")
    assert f"skipped     nodes: {10**7}, {10**7 + 1}\n" in done.stdout
    (receipt,) = ge.GraphEraser.load(own_run).receipts_
    assert receipt.counts["skipped"] == 2
    assert str(10**7) not in receipt.to_json()
    monkeypatch.setattr("sys.stdin", io.StringIO(lines({"nodes": [nodes[0]], "edges": [[1, 2]]})))
    assert "nothing of what" in run("unlearn", own_run, "--file", "-", "--missing", "skip").stderr
    assert "'missing' of unlearn" in run("unlearn", own_run, "--nodes", 1, "--missing", "no").stderr


def test_what_was_skipped_is_printed_as_json(own_run: Path) -> None:
    node = int(ge.GraphEraser.load(own_run).graph_.train_nodes[0])
    report = data("unlearn", own_run, "--nodes", f"{node},7000000", "--missing", "skip")
    assert report["skipped"]["nodes"] == [7000000]
    assert report["digest"] == ge.GraphEraser.load(own_run).receipts_[-1].digest


@pytest.mark.parametrize("verb", ["update", "unlearn"])
def test_a_line_that_names_something_twice_changes_nothing(
    own_run: Path, tmp_path: Path, verb: str
) -> None:
    a, b = ge.GraphEraser.load(own_run).graph_.train_nodes[:2].tolist()
    file, before = tmp_path / "twice.jsonl", snapshot(own_run)
    file.write_text(f'{{"nodes": [{a}], "nodes": [{b}]}}\n')
    failed = run(verb, own_run, "--file", file)
    assert failed.returncode == 1
    assert "twice.jsonl:1" in failed.stderr
    assert "'nodes' is there twice" in failed.stderr
    assert snapshot(own_run) == before
