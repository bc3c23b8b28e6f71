"""grapheraser predict."""

from __future__ import annotations

from pathlib import Path

import pytest

import grapheraser as ge
from tests.cli.commands import data, run


def test_predict_says_what_the_library_says(fitted: Path) -> None:
    eraser = ge.GraphEraser.load(fitted)
    nodes = [int(node) for node in eraser.graph_.test_nodes[:5]]
    predictions = data("predict", fitted, "--nodes", ",".join(map(str, nodes)))["predictions"]
    assert [entry["node"] for entry in predictions] == nodes
    assert [entry["class"] for entry in predictions] == eraser.predict(nodes).tolist()


def test_predict_can_say_less(fitted: Path) -> None:
    node = int(ge.GraphEraser.load(fitted).graph_.test_nodes[0])
    options = ("--nodes", node, "--top", 2, "--decimals", 1)
    (entry,) = data("predict", fitted, *options)["predictions"]
    kept = [p for p in entry["posterior"] if p > 0]
    assert len(kept) <= 2
    assert all(round(p, 1) == pytest.approx(p, abs=1e-6) for p in kept)


def test_predict_can_say_why(fitted: Path) -> None:
    node = int(ge.GraphEraser.load(fitted).graph_.test_nodes[0])
    (entry,) = data("predict", fitted, "--nodes", node, "--explain")["predictions"]
    weights = [member["weight"] for member in entry["explanation"]["members"]]
    assert sum(weights) == pytest.approx(1.0, abs=1e-6)
    assert "shard" in run("predict", fitted, "--nodes", node, "--explain").stdout


@pytest.mark.parametrize(
    "less", [("--labels", 1), ("--top", 1), ("--decimals", 1), ("--temperature", 2)]
)
def test_saying_why_never_says_more_than_the_answer_may(
    fitted: Path, less: tuple[str, int]
) -> None:
    done = run("predict", fitted, "--nodes", 1, "--explain", *less)
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.startswith("error: --explain shows what every member answers")
