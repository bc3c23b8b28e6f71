"""A fitted run, for all verbs that need one."""

from __future__ import annotations

from pathlib import Path

import pytest

import grapheraser as ge
from tests.cli.commands import data


@pytest.fixture(scope="session")
def fitted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("cli") / "run"
    report = data(
        "fit",
        "demo",
        "--shards",
        6,
        "--epochs",
        20,
        "--out",
        path,
        "--partition",
        "random",
        "--aggregation",
        "mean",
    )
    assert report["shards"] == 6
    assert sum(report["shard_sizes"]) == 2160
    return path


@pytest.fixture
def own_run(fitted: Path, tmp_path: Path) -> Path:
    """A copy of the fitted run that a test may change."""
    ge.GraphEraser.load(fitted).save(tmp_path / "run")
    return tmp_path / "run"
