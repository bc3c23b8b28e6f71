"""grapheraser verify."""

from __future__ import annotations

import json
from pathlib import Path

import grapheraser as ge
from tests.cli.commands import data, run


def test_verify_fails_on_altered_weights(own_run: Path) -> None:
    eraser = ge.GraphEraser.load(own_run)
    shard = next(iter(eraser.shards_.values()))
    name, tensor = next(iter(shard.tensors.items()))
    altered = tensor.copy()
    altered.ravel()[0] += 1
    shard.tensors[name] = altered
    eraser.save(own_run)
    done = run("verify", own_run)
    assert done.returncode == 1
    assert "NOT identical" in done.stdout


def test_verify_fails_on_files_that_the_run_does_not_name(own_run: Path) -> None:
    assert data("verify", own_run)["strays"] == []
    old = next(own_run.glob("graph-*")).read_bytes()
    node = int(ge.GraphEraser.load(own_run).graph_.train_nodes[0])
    data("unlearn", own_run, "--nodes", node)
    left = "graph-0123456789abcdef0123.npz"
    (own_run / left).write_bytes(old)
    done = run("verify", own_run)
    assert done.returncode == 1
    assert "verified: bit-identical" in done.stdout
    assert f"stray: {left}" in done.stderr
    assert "hint: delete them" in done.stderr
    done = run("verify", own_run, "--json")
    assert done.returncode == 1
    assert json.loads(done.stdout)["strays"] == [left]
    assert (own_run / left).exists()
    run("unlearn", own_run, "--nodes", 999999)
    assert not (own_run / left).exists(), "also a request that fails clears away"
    assert run("verify", own_run).returncode == 0
