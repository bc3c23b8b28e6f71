"""grapheraser bench tuned, and the rival that it is about."""

from __future__ import annotations

import json
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
    _train(tmp_path)
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


def test_a_report_is_gone_on_from(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = ge.load_dataset("demo")
    monkeypatch.setattr(tuned, "load_dataset", lambda name, split_seed=0: graph)
    small = [replace(tuned_gnn.GRID[i], hidden=16, layers=2) for i in (1, 5, 9)]
    for module in (tuned, tuned_gnn):
        monkeypatch.setattr(module, "GRID", tuple(small))
    monkeypatch.setattr(tuned_gnn, "EPOCHS", 12)
    tuned.export("demo", 1, tmp_path / "data")
    _train(tmp_path)
    whole = tuned.run(["demo"], seeds=1, keep=tmp_path)
    part = {**whole["rows"][0], "settings": 2}
    part["setting"] = {
        **json.loads((tmp_path / "out" / "demo-0.json").read_text())["settings"]["0"]
    }
    del part["refitted"]
    since = tmp_path / "since.json"
    since.write_text(json.dumps({"rows": [part]}))
    again = tmp_path / "again"
    kept = tuned.run(["demo"], seeds=1, keep=again, since=since)["rows"][0]
    assert kept["stopped"] == part["stopped"]
    assert "refitted" not in kept
    cells = tuned_gnn.waiting(again / "data", again / "out")
    assert [cell.number for cell in cells] == [2]
    _train(again)
    found = json.loads((again / "out" / "demo-0.json").read_text())
    assert found["whole"]
    assert len(found["settings"]) == 3
    assert tuned.run(["demo"], seeds=1, keep=again, since=since)["rows"][0]["refitted"]


def _train(folder: Path) -> None:
    (folder / "out").mkdir(exist_ok=True)
    while cells := tuned_gnn.waiting(folder / "data", folder / "out"):
        tuned_gnn.keep(cells[0], folder / "out", *tuned_gnn.measure(cells[0], "cpu"))
