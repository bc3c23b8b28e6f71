"""Reports go into the documentation whole, and what was there before goes."""

from __future__ import annotations

from pathlib import Path

import pytest

from grapheraser_lab.publish import publish


def report(folder: Path, *names: str) -> Path:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)
    return folder


def test_both_reports_data_and_figures_are_published(tmp_path: Path) -> None:
    made = ("report.html", "report.md", "mlp/data.csv", "mlp/figure.png", "mlp/old.txt")
    source = report(tmp_path / "runs", *made, "datasets/data.csv", "cells/1.json")
    target = report(tmp_path / "docs", "old.csv")
    publish(source, target)
    found = {str(path.relative_to(target)) for path in target.rglob("*") if path.is_file()}
    assert found == {"report.html", "report.md", "mlp.csv", "mlp/figure.png", "datasets.csv"}


def test_half_a_report_replaces_nothing(tmp_path: Path) -> None:
    source = report(tmp_path / "runs", "report.html", "mlp/data.csv")
    target = report(tmp_path / "docs", "old.csv")
    with pytest.raises(SystemExit, match="holds no report"):
        publish(source, target)
    assert (target / "old.csv").is_file()
