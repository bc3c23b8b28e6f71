"""``--executor``: every verb that trains takes one, and none changes the bits."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import grapheraser as ge
from tests.cli.commands import data, run, snapshot


@pytest.mark.parametrize(
    "verb",
    [
        ("unlearn", "--nodes", "0"),
        ("update", "--file", "-"),
        ("reshard", "--shards", "2"),
        ("verify",),
    ],
)
def test_an_executor_that_there_is_not_is_refused(fitted: Path, verb: tuple[str, ...]) -> None:
    before = snapshot(fitted)
    done = run(verb[0], fitted, *verb[1:], "--executor", "cloud")
    assert done.returncode == 1
    assert "Choose from: local, process, ray." in done.stderr
    assert snapshot(fitted) == before


@pytest.mark.slow
def test_processes_forget_with_the_bits_of_threads(fitted: Path, tmp_path: Path) -> None:
    node, kept = ge.GraphEraser.load(fitted).graph_.train_nodes[0], []
    for executor in ("local", "process"):
        shutil.copytree(fitted, tmp_path / executor)
        data("unlearn", tmp_path / executor, "--nodes", node, "--executor", executor)
        state = ge.GraphEraser.load(tmp_path / executor)._snapshot.state
        kept.append({name: array.tobytes() for name, array in state.tensors().items()})
    assert kept[0] == kept[1]
