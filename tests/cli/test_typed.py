"""Typed graphs on the command line."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from grapheraser import GraphEraser
from tests.cli.commands import data, run
from tests.property.test_typed import KNOWS, built, world_of


def test_nodes_and_relations_are_named_with_their_types(tmp_path: Path) -> None:
    world = world_of(np.random.default_rng(3), {"a": 40, "b": 15, "c": 4})
    built(world).to_npz(tmp_path / "typed.npz")
    data("import", tmp_path / "typed.npz", "--out", tmp_path / "store")
    folder = tmp_path / "run"
    data("fit", tmp_path / "store", "--model", "closed-form", "--out", folder)
    assert len(data("predict", folder, "--nodes", "0,a/1")["predictions"]) == 2
    data("unlearn", folder, "--nodes", "c/1,b/3")
    u, v = next(pair for pair in world["e"][KNOWS])
    (tmp_path / "r.jsonl").write_text(f'{{"edges": [["a/{u}", "knows", "a/{v}"]]}}')
    data("unlearn", folder, "--file", tmp_path / "r.jsonl")
    left = GraphEraser.load(folder).graph_
    assert left.contains(["c/1", "b/3", "b/4"]).tolist() == [False, False, True]
    assert len(left.facts) < len(built(world).facts)
    assert "bit-identical" in run("verify", folder).stdout
