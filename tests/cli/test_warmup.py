"""The verb warmup, and what a first use costs a newcomer."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from grapheraser.kernels.compiled import Compilation
from grapheraser.nodes import warmup
from tests.cli.commands import data, run


def test_it_says_what_is_ready_and_where() -> None:
    report = data("warmup", "--models", "mlp")
    assert report["models"] == ["mlp"]
    assert report["kernels"] >= 0
    assert report["seconds"] > 0
    assert all(Path(folder).is_dir() for folder in report["folders"])
    done = run("warmup", "--models", "mlp")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("models    mlp\ncompiled  0 kernels in ")


def test_link_runs_are_warmed_up_by_name() -> None:
    report = data("warmup", "--models", "links")
    assert report["models"] == ["links"]
    assert data("warmup", "--models", "links")["kernels"] == 0


def test_an_unknown_model_is_named() -> None:
    done = run("warmup", "--models", "mlp,resnet")
    assert done.returncode == 1
    assert "unknown model 'resnet'" in done.stderr


def test_it_fails_where_nothing_can_be_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = iter([[], [Compilation("a kernel", 1.0, None)]])
    monkeypatch.setattr(warmup, "compilations", lambda: next(answers))
    done = run("warmup", "--models", "mlp")
    assert done.returncode == 1
    assert "set NUMBA_CACHE_DIR" in done.stderr


def test_fit_says_what_it_compiled_and_does_not_call_it_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hour = Compilation("partition.a_kernel", 3600.0, None)
    answers = iter([[], [hour], [hour]])
    monkeypatch.setattr("grapheraser.kernels.compiled.compilations", lambda: next(answers))
    done = run("fit", "demo", "--shards", 2, "--epochs", 1, "--out", tmp_path / "run", "--json")
    assert "compiled 1 kernel in 60.0 min, once per machine" in done.stderr
    assert "set NUMBA_CACHE_DIR" in done.stderr
    assert json.loads(done.stdout)["seconds"] < -3000
