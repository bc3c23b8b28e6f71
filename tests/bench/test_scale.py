"""What is timed was carried out, on the disk, and both tables name it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import grapheraser as ge
from grapheraser.bench import planning, scale


def test_every_operation_is_timed_and_its_result_checked(tmp_path: Path) -> None:
    ge.load_dataset("demo").to_npz(tmp_path / "small.npz")
    report = scale.run(
        ["1e4", "small"], ["gcn", "closed-form"], requests=3, root=tmp_path, folder=tmp_path
    )
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
    assert planning.planning(report).count("10,000,000,000") == 2
    assert [file.name for file in tmp_path.iterdir()] == ["small.npz"]


def test_anonymous_memory_is_what_is_held_and_not_what_is_mapped(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(bytes(2**28))
    before = scale.anonymous_memory()
    if before == 0:
        pytest.skip("the system does not tell")
    mapped = np.memmap(tmp_path / "file", dtype=np.uint8, mode="r")
    assert mapped.sum() == 0
    assert scale.anonymous_memory() - before < 2**27
    with scale.AnonymousPeak(0.001) as peak:
        held = np.ones(2**28, dtype=np.uint8)
        assert held.sum() == 2**28
    assert peak.gb * 1e9 - before > 2**27
