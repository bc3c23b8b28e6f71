"""Files of requests."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import grapheraser as ge
from tests.cli.commands import data, run, snapshot


def test_requests_in_a_file_are_one_batch(own_run: Path, tmp_path: Path) -> None:
    graph = ge.GraphEraser.load(own_run).graph_
    nodes = graph.train_nodes[[1, 5]].tolist()
    rows = [{"nodes": [nodes[0]]}, {"features": [nodes[1]]}]
    file = tmp_path / "requests.jsonl"
    file.write_text("\n".join(map(json.dumps, rows)) + "\n")
    report = data("unlearn", own_run, "--file", file)
    assert report["receipt"]["sequence"] == 1
    assert report["receipt"]["counts"]["features"] == 1


@pytest.mark.parametrize(
    "line",
    ['{"edges": 5}', '{"edges": null}', '{"nodes": [9223372036854775808]}', "[" * 100_000],
)
def test_a_bad_line_of_a_file_is_named_by_its_number(
    own_run: Path, tmp_path: Path, line: str
) -> None:
    before = snapshot(own_run)
    file = tmp_path / "requests.jsonl"
    file.write_text(f"\n{line}\n")
    done = run("unlearn", own_run, "--file", file)
    assert done.returncode == 1
    assert done.stderr.startswith(f"error: {file}:2: ")
    assert snapshot(own_run) == before
