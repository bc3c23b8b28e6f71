"""Whole graphs beside their rivals: the script goes on, and tables say what it found."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from grapheraser_lab.bench import graph_rivals
from grapheraser_lab.rivals import tuned_graphs
from tests.graphs.collections import collection_of, random_parts


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A collection of 60 graphs in ten folds, and rivals that are trained for two epochs."""
    monkeypatch.setattr(tuned_graphs, "GRID", tuned_graphs.GRID[2:4])
    collection = collection_of(random_parts(60, seed=5))
    data = tmp_path / "tasks" / "graphs"
    data.mkdir(parents=True)
    arrays: dict[str, Any] = graph_rivals.arrays_of(collection)
    np.savez(data / "mutag.npz", **arrays, y=collection.y, fold=np.arange(60) % 10)
    return tmp_path


def test_rivals_are_read_fold_by_fold(folder: Path) -> None:
    out = folder / "out"
    out.mkdir()
    for fold in (0, 3):
        for conv in ("gin", "gcn"):
            tuned_graphs.work(folder / "tasks" / "graphs" / "mutag.npz", fold, conv, out, most=2)
    before = (out / "mutag-0-gin.json").read_text()
    tuned_graphs.work(folder / "tasks" / "graphs" / "mutag.npz", 0, "gin", out, most=2)
    assert (out / "mutag-0-gin.json").read_text() == before
    report = graph_rivals.run(["mutag"], root=folder, keep=folder)
    (row,) = report["rows"]
    assert row["tested"] == [0, 3]
    assert [cell["refitted"] for cell in row["gin"]] == [
        json.loads((out / f"mutag-{fold}-gin.json").read_text())["refitted"] for fold in (0, 3)
    ]
    assert "Mean ratio" in graph_rivals.markdown(report)


def test_folds_are_told_by_name() -> None:
    told = list(tuned_graphs.cells(["nci1:8-9", "ptc:3", "mutag"]))
    assert told[:4] == [("nci1", fold, conv) for fold in (8, 9) for conv in ("gin", "gcn")]
    assert told[4:6] == [("ptc", 3, "gin"), ("ptc", 3, "gcn")]
    assert [fold for _, fold, _ in told[6:]] == sorted([*range(10)] * 2)


def test_a_ratio_is_that_of_the_better_rival_in_its_favour() -> None:
    row = {
        "closed-form": [0.9, 0.7],
        "gin": [{"stopped": 0.5, "refitted": 0.8}, {"stopped": 0.9, "refitted": 0.8}],
        "gcn": [{"stopped": 0.4, "refitted": 0.3}] * 2,
    }
    found, error = graph_rivals.ratio(row)
    assert found == pytest.approx(0.8 / 0.8)
    assert error == pytest.approx(np.std([0.1, -0.1], ddof=1) / np.sqrt(2) / 0.8)


def test_a_batch_holds_the_graphs_as_they_are(folder: Path) -> None:
    world = tuned_graphs.World(folder / "tasks" / "graphs" / "mutag.npz")
    parts, some = random_parts(60, seed=5), np.array([7, 2])
    batch = world.batch(some)
    dense, first = batch.plain.to_dense().numpy(), 0
    for graph in some:
        labels, edges, _ = parts[graph]
        wanted = np.zeros((len(labels), len(labels)))
        wanted[edges[:, 0], edges[:, 1]] = wanted[edges[:, 1], edges[:, 0]] = 1
        own = slice(first, first + len(labels))
        assert np.array_equal(dense[own, own], wanted)
        first += len(labels)
    assert dense.sum() == 2 * sum(len(parts[graph][1]) for graph in some)
