"""What is timed was carried out, on the disk, and both tables name it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import grapheraser as ge
from grapheraser.errors import ParameterError
from grapheraser_lab.bench import scale, stages


@pytest.mark.long
def test_every_operation_is_timed_and_its_result_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GRAPHERASER_DATA", str(tmp_path))
    ge.load_dataset("demo").to_npz(tmp_path / "small.npz")
    asked: dict[str, Any] = {"requests": 3, "keep": tmp_path / "kept"}
    asked["partitions"] = ["ldg"]
    datasets, models = ["1e4", "small"], ["gcn", "closed-form"]
    report = scale.run(datasets, models, **asked)
    assert [(row["dataset"], row["model"]) for row in report["rows"]] == [
        (name, model) for name in ("1e4", "small") for model in ("gcn", "closed-form")
    ]
    for row in report["rows"]:
        assert row["verified"] is True
        assert 0 < row["request"][0] < row["request_and_save"][0]
        assert 0.05 < row["peak_gb"] < 8
        assert row["f1"] > 0.5
    assert report["rows"][0]["nodes"] == 1_000
    assert report["rows"][2]["forgotten"] == 1_000
    text = scale.markdown(report)
    assert "and saved" in text
    assert "neighbours" in text
    assert len(scale.curves(report)) == 4
    assert scale.planning(report).count("10,000,000,000") == 2
    (ldg,) = report["partitions"]
    assert ldg["method"] == "ldg"
    assert (ldg["shards"], ldg["cut"]) == (1, 0.0)
    _resumes(tmp_path / "kept", lambda: scale.run(datasets, models, **asked), report)
    with pytest.raises(ParameterError, match="holds results of"):
        scale.run(datasets, models, **{**asked, "requests": 4})


def _resumes(kept: Path, run: Callable[[], dict[str, Any]], report: dict[str, Any]) -> None:
    """Stages that have finished are not repeated; others go on from what was saved."""
    (kept / "1e4" / "verify-gcn.json").unlink()
    (kept / "1e4" / "forget-gcn.json").unlink()
    again = run()
    assert again["partitions"] == report["partitions"]
    assert again["rows"][1:] == report["rows"][1:]
    old, new = report["rows"][0], again["rows"][0]
    assert new["verified"] is True
    assert new["request"] != old["request"]
    assert {name: new[name] for name in ("import", "fit", "first_save", "nodes")} == {
        name: old[name] for name in ("import", "fit", "first_save", "nodes")
    }
    eraser = ge.GraphEraser.load(kept / "1e4" / "run-gcn")
    assert len(eraser.receipts_) == 8, "four requests, and four more"


def test_anonymous_memory_is_what_is_held_and_not_what_is_mapped(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(bytes(2**28))
    before = stages.anonymous_memory()
    if before == 0:
        pytest.skip("the system does not tell")
    mapped = np.memmap(tmp_path / "file", dtype=np.uint8, mode="r")
    assert mapped.sum() == 0
    assert stages.anonymous_memory() - before < 2**27
    with stages.AnonymousPeak(0.001) as peak:
        held = np.ones(2**28, dtype=np.uint8)
        assert held.sum() == 2**28
    assert peak.gb * 1e9 - before > 2**27
