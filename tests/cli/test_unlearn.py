"""grapheraser unlearn."""

from __future__ import annotations

import json
from pathlib import Path

import grapheraser as ge
from tests.cli.commands import data, run, snapshot


def test_unlearn_then_verify(own_run: Path) -> None:
    graph = ge.GraphEraser.load(own_run).graph_
    node, edge = int(graph.train_nodes[7]), graph.edges[100].tolist()
    report = data("unlearn", own_run, "--nodes", node, "--edges", f"{edge[0]}-{edge[1]}")
    assert report["receipt"]["counts"]["nodes"] == 1
    assert report["digest"] == ge.GraphEraser.load(own_run).receipts_[0].digest
    assert not ge.GraphEraser.load(own_run).graph_.contains([node])[0]
    verified = data("verify", own_run)
    assert verified["identical"]
    assert verified["receipts"] == 1
    assert "verified: bit-identical" in run("verify", own_run).stdout


def test_a_dry_run_changes_nothing(own_run: Path) -> None:
    before = snapshot(own_run)
    node = int(ge.GraphEraser.load(own_run).graph_.train_nodes[0])
    plan = data("unlearn", own_run, "--nodes", node, "--dry-run")["plan"]
    assert len(plan["retrain"]) == 1
    assert snapshot(own_run) == before


def test_a_repeated_request_is_refused_like_one_for_a_stranger(own_run: Path) -> None:
    node = int(ge.GraphEraser.load(own_run).graph_.test_nodes[0])
    data("unlearn", own_run, "--nodes", node)
    before = snapshot(own_run)
    for who in (node, 10**9):
        done = run("unlearn", own_run, "--nodes", who, "--json")
        assert json.loads(done.stdout)["error"]["type"] == "UnknownNodeError"
    assert snapshot(own_run) == before


def test_labels_are_forgotten_by_option_and_by_file(own_run: Path, tmp_path: Path) -> None:
    graph = ge.GraphEraser.load(own_run).graph_
    first, second, third = graph.train_nodes[:3].tolist()
    assert data("unlearn", own_run, "--labels", first, "--dry-run")["plan"]["labels"] == 1
    done = run("unlearn", own_run, "--labels", first)
    assert "forgotten   1 label\n" in done.stdout
    lines = tmp_path / "requests.jsonl"
    lines.write_text(json.dumps({"labels": [second]}) + "\n" + json.dumps({"nodes": [first]}))
    done = run("unlearn", own_run, "--file", lines)
    assert "forgotten   1 node and 1 label (1 context node among them)" in done.stdout
    left = ge.GraphEraser.load(own_run).graph_
    assert left.contains([first, second]).tolist() == [False, True]
    assert left.labels([second, third]).tolist() == [-1, graph.labels([third])[0]]
    assert data("verify", own_run)["identical"]
