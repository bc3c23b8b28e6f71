"""Every experiment, end to end, on a tiny graph."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from grapheraser.cli.app import app
from grapheraser_lab.cli.experiment import spread
from grapheraser_lab.experiments.catalogue import EXPERIMENTS, Options, run_study
from grapheraser_lab.framework.runner import run_cells
from grapheraser_lab.measure.inputs import _partition

OWN = "tests.lab.own_parts"
FILES = {"data.csv", "figure.png"}
# Tables of counts, settings and advice have nothing to draw; readings are drawn as distances to
# published figures, which a graph of the tests does not have.
NOT_DRAWN = {"datasets", "guideline", "sensitivity", "readings"}
ISSUE = (
    "node-efficiency edge-efficiency cost utility edge-utility mlp samples partitioners "
    "partition-cost shard-sizes convergence importance tsne structure robustness shards delta "
    "community lpa-view"
)


def _bytes(folder: Path) -> dict[str, bytes]:
    return {
        str(file.relative_to(folder)): file.read_bytes()
        for file in sorted(folder.rglob("*"))
        if file.is_file()
    }


def test_all_experiments_of_the_issue_are_there() -> None:
    assert set(ISSUE.split()) <= set(EXPERIMENTS)


@pytest.mark.long
@pytest.mark.parametrize(
    ("protocol", "names"), [("paper", ["all"]), ("best", ["utility", "samples", "cost"])]
)
def test_experiments_run_end_to_end_and_give_the_same_bytes_again(
    options: Options, tmp_path: Path, protocol: str, names: list[str]
) -> None:
    opts = replace(options, protocol=protocol, models=("gcn",), runs=1)
    study = run_study(names, opts, tmp_path, workers=0)
    assert study.failures == {}
    assert study.computed == study.cells
    for name in study.summaries:
        wanted = FILES - {"figure.png"} if name in NOT_DRAWN else FILES
        assert {file.name for file in (tmp_path / name).iterdir()} == wanted, name
        # Two epochs learn so little that no method is left for the guideline to choose.
        if name not in {"guideline", "readings"}:
            assert study.summaries[name].rows, name
        assert study.summaries[name].tables or name == "readings", name
        if name not in NOT_DRAWN:
            assert (tmp_path / name / "figure.png").read_bytes()[:4] == b"\x89PNG"
    page = study.report.read_text()
    text = (tmp_path / "report.md").read_text()
    drawn = set(study.summaries) - NOT_DRAWN
    assert page.count('src="data:image/png') == len(drawn)
    assert all(f"]({name}/figure.png)" in text for name in drawn)
    assert "http://" not in page
    assert "https://" not in page
    before = _bytes(tmp_path)
    again = run_study(names, opts, tmp_path, workers=0)
    assert again.computed == 0
    assert _bytes(tmp_path) == before


def test_the_users_own_parts_go_into_an_experiment(options: Options, tmp_path: Path) -> None:
    opts = replace(
        options,
        models=("gcn", f"{OWN}:Linear"),
        runs=1,
        partitions=(f"{OWN}:in_turn",),
        aggregations=(f"{OWN}:Average",),
    )
    study = run_study(["utility"], opts, tmp_path, workers=0)
    assert study.failures == {}
    found = {(row["model"], row["partition"]) for row in study.summaries["utility"].rows}
    assert ("Linear", f"{OWN}:in_turn") in found
    assert "in_turn" in (tmp_path / "report.md").read_text()


def test_a_failing_part_is_reported_per_cell(options: Options, tmp_path: Path) -> None:
    opts = replace(options, models=("gcn",), runs=1, partitions=(f"{OWN}:broken",))
    study = run_study(["utility"], opts, tmp_path, workers=0)
    assert len(study.failures) == 1
    assert "no cut today" in study.report.read_text()
    assert any(row["partition"] == "blpa" for row in study.summaries["utility"].rows)


def test_options_of_many_values_take_them_one_after_the_other() -> None:
    words = ["all", "--datasets", "cora", "citeseer", "--runs", "3", "--models=gcn,gat", "--json"]
    assert spread(words) == [
        *("all", "--datasets", "cora", "--datasets", "citeseer", "--runs", "3"),
        *("--models", "gcn", "--models", "gat", "--json"),
    ]
    assert spread(["--aggregation", "learned(solver=paper,sample=0.1),mean"]) == [
        *("--aggregation", "learned(solver=paper,sample=0.1)", "--aggregation", "mean")
    ]


def test_the_command_line_lists_and_runs(tiny: str, tmp_path: Path) -> None:
    listed = CliRunner().invoke(app, ["experiment", "list", "--json"])
    assert {entry["name"] for entry in json.loads(listed.stdout)} == set(EXPERIMENTS)
    words = f"experiment mlp --datasets {tiny} --models gcn gin --runs 1 --epochs 2 --shards 3"
    done = CliRunner().invoke(
        app, [*words.split(), "--workers", "0", "--out", str(tmp_path), "--json"]
    )
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert found["failures"] == {}
    models = [row["model"] for row in found["experiments"]["mlp"]["rows"]]
    assert models == ["mlp", "gcn", "gin"]


@pytest.mark.long
def test_a_killed_run_goes_on_and_ends_in_the_same_bytes(tiny: str, tmp_path: Path) -> None:
    words = f"-m grapheraser experiment utility edge-utility --datasets {tiny} --models gcn"
    words += " --runs 2 --epochs 3 --shards 3 --workers 1"
    command = [sys.executable, *words.split(), "--out"]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    killed, whole = tmp_path / "killed", tmp_path / "whole"
    process = subprocess.Popen(
        [*command, str(killed)], env=env, stderr=subprocess.DEVNULL, start_new_session=True
    )
    deadline = time.monotonic() + 60
    while len(list((killed / "cells").glob("*.json"))) < 3 and time.monotonic() < deadline:
        assert process.poll() is None
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    kept = _bytes(killed / "cells")
    assert len(kept) >= 3
    assert not (killed / "report.html").exists()
    for folder in (killed, whole):
        done = subprocess.run([*command, str(folder)], env=env, check=False, capture_output=True)
        assert done.returncode == 0, done.stderr.decode()
    assert kept.items() <= _bytes(killed / "cells").items()
    for name in ("utility", "edge-utility"):
        for file in FILES:
            one, other = (folder / name / file for folder in (killed, whole))
            assert one.read_bytes() == other.read_bytes(), f"{name}/{file}"


@pytest.mark.long
def test_a_run_that_was_stopped_ends_in_the_same_figures(options: Options, tmp_path: Path) -> None:
    names = ["utility", "samples", "delta", "community", "importance"]
    opts = replace(options, runs=1)
    stopped, whole = tmp_path / "stopped", tmp_path / "whole"
    cells = {cell for name in names for cell in EXPERIMENTS.get(name).cells(opts)}
    # What is cached in a process must not show: here the other half comes after, not before.
    half = sorted(cells, key=lambda cell: cell.digest)[::2]
    for cell in reversed(half):
        run_cells([cell], stopped, workers=0)
        _partition.cache_clear()
    resumed = run_study(names, opts, stopped, workers=0)
    assert resumed.computed == len(cells) - len(half)
    assert run_study(names, opts, whole, workers=0).computed == len(cells)
    for name in names:
        for file in FILES:
            one, other = (folder / name / file for folder in (stopped, whole))
            assert one.read_bytes() == other.read_bytes(), f"{name}/{file}"


def test_a_report_can_be_made_of_whatever_is_there(options: Options, tmp_path: Path) -> None:
    names = ["mlp", "node-efficiency", "structure", "lpa-view"]
    empty = run_study(names, options, tmp_path, compute=False)
    assert empty.computed == 0
    assert empty.report.exists()
    opts = replace(options, runs=1, models=("gcn",))
    run_study(["mlp"], opts, tmp_path, workers=0)
    some = run_study(names, options, tmp_path, compute=False)
    assert some.summaries["mlp"].rows
    assert "Runs: tiny 1" in some.report.read_text()
