"""grapheraser bench tuned, and the rival that it is about."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import grapheraser as ge
from grapheraser.errors import ParameterError

pytest.importorskip("torch")
from grapheraser_lab.bench import tuned
from grapheraser_lab.rivals import tuned_gnn

pytestmark = pytest.mark.filterwarnings("ignore:Sparse CSR")


def test_both_sides_are_scored_on_the_same_nodes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = ge.load_dataset("demo")
    monkeypatch.setattr(tuned, "load_dataset", lambda name, split_seed=0: graph)
    with pytest.raises(ParameterError, match="nothing of the rival"):
        tuned.run(["demo"], seeds=1, keep=tmp_path)
    small = [replace(tuned_gnn.GRID[i], hidden=16, layers=2) for i in (1, 5, 9)]
    monkeypatch.setattr(tuned_gnn, "GRID", tuple(small))
    monkeypatch.setattr(tuned_gnn, "EPOCHS", 12)
    (tmp_path / "out").mkdir()
    tuned_gnn.work(tmp_path / "data" / "demo.npz", "0", tmp_path / "out", "cpu")
    report = tuned.run(["demo"], seeds=1, keep=tmp_path)
    (row,) = report["rows"]
    assert row["settings"] == 3
    with np.load(tmp_path / "out" / "demo-0.npz") as found:
        said = found["stopped"].argmax(axis=1)
    right = float((said == graph.y[graph.positions(graph.test_nodes)]).mean())
    assert row["stopped"]["f1"] == right > 0.3
    ratio = row["closed-form"]["f1"] / max(row[s]["f1"] for s in ("stopped", "refitted", "cooled"))
    assert tuned.ratios(report)["demo"] == pytest.approx(ratio)
    assert "mean" in tuned.markdown(report)
