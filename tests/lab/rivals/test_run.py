"""The comparison goes on where it was, and its tables say what was found."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import grapheraser as ge
from grapheraser_lab.rivals import run as peers
from grapheraser_lab.rivals import tables
from grapheraser_lab.rivals.methods import METHODS


def test_finished_cells_are_not_measured_again(offline: ge.Graph, tmp_path: Path) -> None:
    told: list[str] = []
    options: dict[str, Any] = {
        **{"small": ["cora"], "seeds": 1, "attacked": 8, "streamed": 4, "every": 2},
        **{"folder": tmp_path, "progress": told.append},
    }
    methods = ["retraining", "weights kept", "closed-form"]
    report = peers.run(["cora"], methods, **options)
    # Shares, attack and false edges for each, and a stream for all but retraining.
    assert told[-1] == "11 cells measured, 11 in all"
    again = peers.run(["cora"], methods, **options)
    assert told[-1] == "0 cells measured, 11 in all"
    assert json.loads(json.dumps(again)) == json.loads(json.dumps(report))
    assert [row["method"] for row in report["stream"]] == methods[1:]
    kept = tmp_path / "peers.json"
    kept.write_text(json.dumps(report))
    one = peers.run(["cora"], methods[1:2], **options, parts=["shares"], kept=kept)
    for part in peers.PARTS:  # what was not measured now stays
        known, found = (
            sorted(json.dumps(row, sort_keys=True) for row in r[part]) for r in (report, one)
        )
        assert found == known, part
    page = tables.markdown(report)
    for name in methods:
        assert METHODS[name].label in page
    # Six states after shares and three along the stream, all of them exact.
    assert "9 of 9 states have the bits of a fresh fit" in page


def test_exact_methods_lead_and_then_f1_decides() -> None:
    report = _report({"gif": 0.9, "default": 0.8, "sgc": 0.7, "retraining": 0.85})
    rows = tables.leaderboard(report).split("\n")[2:6]
    labels = [row.split("|")[1].strip() for row in rows]
    assert labels == [METHODS[n].label for n in ("retraining", "default", "sgc", "gif")]
    assert "| 1.0x |" in rows[0]
    default = [cell.strip() for cell in rows[1].split("|")[1:-1]]
    assert default[1:8] == [*["0.800"] * 4, "0, the same bits", "0, the same bits", "1.0x"]
    gif = [cell.strip() for cell in rows[3].split("|")[1:-1]]
    assert gif[5:7] == ["0.125", "diverged"]


def test_drift_has_a_curve_for_each_method_and_for_retraining() -> None:
    report = _report({"gif": 0.9, "default": 0.8, "retraining": 0.85})
    f1, apart = tables.drift(report)
    default = "pooled (GraphEraser's default)"
    assert list(f1.series) == ["scratch (retrained)", "GIF", default]
    assert list(apart.series) == ["GIF", default]
    where, heights, band = f1.series["GIF"]
    assert (list(where), list(heights), list(band)) == ([0, 10], [0.9, 0.9], [0, 0])


def _report(f1: dict[str, float]) -> dict[str, Any]:
    def judged(name: str, apart: float | None = 0.125) -> dict[str, Any]:
        exact = METHODS[name].exact
        found = {"f1": f1[name], "retrained_f1": f1["retraining"], "same": exact}
        return {**found, "apart": 0.0 if exact else apart, "parameters": 0.0, "remembered": 0.5}

    where = {"dataset": "cora", "seed": 0}
    after = {name: {"0.01": judged(name), "0.05": judged(name), "0.1": judged(name)} for name in f1}
    return {
        "attacked": 10,
        "shares": [
            {
                **{**where, "method": name, "f1": f1[name], "seconds": 0.1},
                **{"nodes": after[name], "edges": after[name], "pyg": {"seconds": 2.0, "f1": 0.8}},
            }
            for name in f1
        ],
        "membership": [],
        "stream": [
            {
                **{**where, "method": name, "requests": 10},
                "points": [
                    {"requests": 0, **judged(name)},
                    {"requests": 10, **judged(name, None)},
                ],
            }
            for name in f1
            if name != "retraining"
        ],
        "tuning": [],
    }
