"""grapheraser predict."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import grapheraser as ge
from tests.cli.commands import data, run


def test_predict_says_what_the_library_says(fitted: Path) -> None:
    eraser = ge.GraphEraser.load(fitted)
    nodes = [int(node) for node in eraser.graph_.test_nodes[:5]]
    predictions = data("predict", fitted, "--nodes", ",".join(map(str, nodes)))["predictions"]
    assert [entry["node"] for entry in predictions] == nodes
    assert [entry["class"] for entry in predictions] == eraser.predict(nodes).tolist()


def test_predict_can_say_less(fitted: Path) -> None:
    node = int(ge.GraphEraser.load(fitted).graph_.test_nodes[0])
    options = ("--nodes", node, "--top", 2, "--decimals", 1)
    (entry,) = data("predict", fitted, *options)["predictions"]
    kept = [p for p in entry["posterior"] if p > 0]
    assert len(kept) <= 2
    assert all(round(p, 1) == pytest.approx(p, abs=1e-6) for p in kept)


def test_predict_can_say_why(fitted: Path) -> None:
    node = int(ge.GraphEraser.load(fitted).graph_.test_nodes[0])
    (entry,) = data("predict", fitted, "--nodes", node, "--explain")["predictions"]
    weights = [member["weight"] for member in entry["explanation"]["members"]]
    assert sum(weights) == pytest.approx(1.0, abs=1e-6)
    assert "shard" in run("predict", fitted, "--nodes", node, "--explain").stdout


@pytest.mark.parametrize(
    "less", [("--labels", 1), ("--top", 1), ("--decimals", 1), ("--temperature", 2)]
)
def test_saying_why_never_says_more_than_the_answer_may(
    fitted: Path, less: tuple[str, int]
) -> None:
    done = run("predict", fitted, "--nodes", 1, "--explain", *less)
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.startswith("error[GE-011]: --explain shows what every member answers")


def test_all_nodes_go_into_a_file(fitted: Path, tmp_path: Path) -> None:
    eraser, out = ge.GraphEraser.load(fitted), tmp_path / "scores.csv"
    done = data("predict", fitted, "--all", "--out", out, "--posteriors")
    ids = eraser.graph_.ids
    assert (done["rows"], done["kept"], done["path"]) == (len(ids), 0, str(out))
    lines = out.read_text().splitlines()
    assert lines[0].split(",")[:3] == ["node", "class", "posterior_0"]
    rows = np.array([line.split(",") for line in lines[1:]], dtype=np.float64)
    assert (rows[:, 0] == ids).all()
    assert (rows[:, 1] == eraser.predict(ids)).all()
    assert (rows[:, 2:].astype(np.float32) == eraser.predict_proba(ids)).all()
    some = run("predict", fitted, "--nodes", f"{ids[3]},{ids[1]}", "--out", out)
    assert some.returncode == 0
    assert f"file      {out}" in some.stdout
    assert out.read_text().splitlines() == [
        "node,class",
        *(f"{node},{eraser.predict([node])[0]}" for node in (ids[3], ids[1])),
    ]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--all",), "--all, --posteriors and --executor need --out"),
        (("--nodes", 1, "--executor", "ray"), "--all, --posteriors and --executor need --out"),
        (("--all", "--nodes", 1), "one of them only"),
        (("--all", "--out", "s.csv", "--top", 1), "needs --posteriors"),
        (("--all", "--out", "s.csv", "--explain"), "--explain shows"),
        (("--all", "--out", "s.txt"), "ends in .parquet, .csv or .npz"),
        (("--pairs", "1-2", "--out", "s.csv"), "--pairs goes with --json alone"),
    ],
)
def test_options_that_have_no_part_in_it_are_refused(
    fitted: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: Any, message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    done = run("predict", fitted, *options)
    assert done.returncode == 1
    assert message in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_scores_stay_out_of_the_run(fitted: Path) -> None:
    done = run("predict", fitted, "--all", "--out", fitted / "s.csv")
    assert done.returncode == 1
    assert "stray file" in done.stderr


def test_an_interrupt_says_how_to_go_on(
    fitted: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(ge.GraphEraser, "predict_to", interrupted)
    done = run("predict", fitted, "--all", "--out", tmp_path / "s.csv")
    assert done.returncode == 130
    assert "run the same command to go on" in done.stderr


@pytest.mark.parametrize("numbers", [False, True])
def test_predict_says_why_of_each_target(tmp_path: Path, numbers: bool) -> None:
    rng = np.random.default_rng(0)
    x, ends = rng.random((40, 3)), rng.integers(0, 40, (2, 60))
    y = np.stack([x[:, 0], x[:, 1]], axis=1)
    graph = ge.Graph.from_arrays(
        x, ends, y if numbers else (y > 0.5).astype(int), target_names=["one", "two"]
    )
    ge.GraphEraser("closed-form").fit(graph).save(tmp_path / "run")
    (entry,) = data("predict", tmp_path / "run", "--nodes", 5, "--explain")["predictions"]
    assert [said["target"] for said in entry["explanations"]] == ["one", "two"]
    told = run("predict", tmp_path / "run", "--nodes", 5, "--explain").stdout
    assert f"node 5, two: a {'' if numbers else 'log-'}linear pool" in " ".join(told.split())
