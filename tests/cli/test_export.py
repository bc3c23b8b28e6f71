"""grapheraser export."""

from __future__ import annotations

from pathlib import Path

import grapheraser as ge
from tests.cli.commands import data, run


def test_a_run_is_exported_once_to_a_folder(fitted: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    report = data("export", fitted, "--out", out)
    shards = ge.GraphEraser.load(fitted).shards_
    assert report == {"run": str(fitted), "export": str(out), "shards": list(shards)}
    names = {str(file.relative_to(out)) for file in out.rglob("*") if file.is_file()}
    assert names == {
        "README.md",
        "export.json",
        "graph.safetensors",
        "ensemble.safetensors",
        *(f"shards/{shard}.safetensors" for shard in shards),
    }
    again = run("export", fitted, "--out", out)
    assert again.returncode == 1
    assert "holds something already" in again.stderr


def test_people_are_told_that_an_export_can_not_forget(fitted: Path, tmp_path: Path) -> None:
    done = run("export", fitted, "--out", tmp_path / "out")
    assert "an export can't forget" in done.stderr
    assert str(tmp_path / "out" / "README.md") in done.stdout


def test_a_link_run_is_refused_by_name(small: ge.Graph, tmp_path: Path) -> None:
    ge.LinkEraser().fit(small).save(tmp_path / "links")
    done = run("export", tmp_path / "links", "--out", tmp_path / "out")
    assert done.returncode == 1
    assert "a run that predicts links" in done.stderr
    assert not (tmp_path / "out").exists()
