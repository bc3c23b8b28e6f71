"""grapheraser verify."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import grapheraser as ge
from grapheraser.engines import engine
from tests.cli.commands import data, run
from tests.strategies import small_graph


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


def test_a_run_that_moved_is_neither_verified_nor_accused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "run"
    eraser = ge.GraphEraser("gin", num_shards=3, epochs=1, engine="pyg").fit(small_graph())
    now, first = eraser._snapshot, eraser.shards_[0]
    tensors = {name: np.multiply(t, np.float32(1 + 1e-6)) for name, t in first.tensors.items()}
    shards = {**eraser.shards_, 0: replace(first, tensors=tensors)}  # as of another arithmetic
    state = replace(now.state, ensemble=replace(now.state.ensemble, shards=shards))
    eraser._fitted = type(now).first(
        now.task, now.arguments, now.settings, state, now.configuration
    )
    eraser.save(path)
    assert run("verify", path).returncode == 1
    monkeypatch.setattr(engine, "torch_processor", lambda device: "OTHER")
    done = run("verify", path)
    assert done.returncode == 3
    assert "verified: not comparable here" in done.stdout
    assert "files and receipts fit" in done.stderr
    assert "processor OTHER here" in done.stderr
    found = json.loads(run("verify", path, "--json").stdout)
    assert (found["identical"], found["verdict"]) == (False, "not comparable here")
    node = int(eraser.graph_.train_nodes[0])
    done = run("unlearn", path, "--nodes", node, "--dry-run")
    assert done.stdout.count("retrain") == 3
    assert "note: every shard is retrained" in done.stderr
    data("unlearn", path, "--nodes", node)
    assert "verified: bit-identical" in run("verify", path).stdout
