"""The command line of embedding runs."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import grapheraser as ge
from tests.cli.commands import data, run


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("embeddings") / "run"
    fitted = data("fit", "demo", "--task", "embeddings", "--width", 16, "--out", folder)
    assert (fitted["task"], fitted["width"]) == ("embeddings", 16)
    return folder


def test_rows_are_those_of_the_library(rows: Path) -> None:
    found = data("predict", rows, "--nodes", "3,17")["embeddings"]
    expected = ge.Embedder.load(rows).transform([3, 17])
    assert [entry["node"] for entry in found] == [3, 17]
    assert np.array_equal(np.array([entry["row"] for entry in found], np.float32), expected)
    assert "--json prints all" in run("predict", rows, "--nodes", 3).stderr
    assert "changes" in run("predict", rows, "--all", "--out", "x.parquet").stderr
    assert data("info", rows)["task"] == "embeddings"
    assert "embeddings" in run("info", rows).stdout


def test_rows_have_no_score(rows: Path) -> None:
    assert "no labels to be scored by" in run("evaluate", rows).stderr


def test_what_moved_is_listed_written_and_let_go_of(rows: Path, tmp_path: Path) -> None:
    path = tmp_path / "run"
    ge.Embedder.load(rows).save(path)
    assert data("changes", path)["rows"] == 2700
    assert data("unlearn", path, "--nodes", 10)["receipt"]["exactness"]["statement"] == "exact"
    moved = data("changes", path, "--since", 0)
    assert moved["version"] == 1
    assert 0 < moved["rows"] == len(moved["ids"]) < 2700
    assert 10 not in moved["ids"]
    file = tmp_path / "rows.jsonl"
    assert "moved since version 0" in run("changes", path, "--since", 0, "--out", file).stdout
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert [line["id"] for line in lines] == moved["ids"]
    assert data("verify", path, "--deep")["identical"]
    assert data("changes", path, "--since", 1, "--acknowledge", 1)["rows"] == 0
    assert "'since' of Embedder.changes" in run("changes", path, "--since", 0).stderr
    assert "another log" in run("changes", path, "--since", 1, "--log", "other").stderr
    assert ".parquet or .jsonl" in run("changes", path, "--out", tmp_path / "x.csv").stderr
    assert "--width goes with embeddings" in run("fit", "demo", "--width", 3, "--out", file).stderr
