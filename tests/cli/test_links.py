"""The command line of link runs."""

from __future__ import annotations

from pathlib import Path

import pytest

import grapheraser as ge
from tests.cli.commands import data, run


@pytest.fixture(scope="module")
def links(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("links") / "run"
    fitted = data("fit", "demo", "--task", "links", "--sample", 100, "--out", folder)
    assert (fitted["task"], fitted["members"]) == ("links", "closed-form")
    assert len(fitted["weights"]) == 16
    return folder


def test_predictions_and_rankings_are_those_of_the_library(links: Path) -> None:
    eraser = ge.LinkEraser.load(links)
    found = data("predict", links, "--pairs", "3-17,4-8")["predictions"]
    expected = eraser.predict_proba([(3, 17), (4, 8)])
    assert [entry["pair"] for entry in found] == [[3, 17], [4, 8]]
    assert [entry["probability"] for entry in found] == pytest.approx(expected, abs=1e-6)
    ranked = data("rank", links, "--node", 12, "--top", 3)
    assert [entry["node"] for entry in ranked["links"]] == eraser.rank(12, 3).nodes.tolist()
    assert "probability" in run("rank", links, "--node", 12).stdout
    assert "probability" in run("predict", links, "--pairs", "3-17").stdout


def test_a_link_run_forgets_and_is_verified(links: Path, tmp_path: Path) -> None:
    path = tmp_path / "run"
    ge.LinkEraser.load(links).save(path)
    planned = data("unlearn", path, "--nodes", 10, "--dry-run")["plan"]
    assert planned["nodes"] == 1
    receipt = data("unlearn", path, "--nodes", 10)["receipt"]
    assert receipt["exactness"]["statement"] == "exact"
    assert data("verify", path, "--deep")["identical"]
    assert "is not in the graph" in run("predict", path, "--pairs", "10-17").stderr


def test_pairs_in_a_file_are_scored(links: Path, tmp_path: Path) -> None:
    graph = ge.LinkEraser.load(links).graph_
    file = tmp_path / "pairs.csv"
    lines = [f"{u},{v},1" for u, v in graph.edges[:20].tolist()]
    file.write_text("\n".join([*lines, "", "3,17,0", "4,8,0"]))
    found = data("evaluate", links, "--pairs", file)
    assert (found["edges"], found["others"]) == (20, 2)
    assert "AUC" in run("evaluate", links, "--pairs", file).stdout
    file.write_text("3,17\n")
    assert "a pair is a line like 3,17,1" in run("evaluate", links, "--pairs", file).stderr


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("predict", "--nodes", 3), "a run that predicts links"),
        (("reshard", "--shards", 3), "a run that predicts links"),
        (("evaluate",), "has no test edges of its own"),
        (("predict",), "predict needs --nodes, --all, --pairs or"),
        (("predict", "--nodes", 3, "--pairs", "3-4"), "predict needs --nodes, --all, --pairs or"),
        (("predict", "--pairs", "3-4", "--top", 1), "--pairs goes with --json alone"),
        (("predict", "--pairs", "3-3"), "must be two nodes"),
        (("rank", "--node", 10**7), "is not in the graph"),
    ],
)
def test_what_a_link_run_can_not_do_is_said(
    links: Path, words: tuple[object, ...], says: str
) -> None:
    verb, *options = words
    done = run(verb, links, *options)
    assert done.returncode == 1
    assert says in done.stderr


def test_a_run_of_classes_has_no_links(fitted: Path) -> None:
    for words in (("predict", fitted, "--pairs", "3-4"), ("rank", fitted, "--node", 3)):
        assert "a run that predicts the classes of nodes" in run(*words).stderr


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--task", "edges"), "--task must be nodes, links, recommendation, graphs or embeddings"),
        (("--sides", "labels"), "--sides goes with links"),
        (("--task", "links", "--halo"), "--halo has no part in --task links"),
        (("--task", "links", "--gamma", 0.5), "--gamma has no part in --task links"),
        (
            ("--task", "links", "--context", "all", "--split", "random", "--layers", 3),
            "--layers, --split and --context have no part in --task links",
        ),
        (("--task", "links", "--shards", 3), "'num_shards' of LinkEraser must be 20"),
        (("--task", "links", "--members", "words"), "'members' of LinkEraser must be"),
        (("--task", "links", "--sides", "left"), "'sides' of LinkEraser must be"),
        (("--task", "links", "--sides", 5), "between two nodes of one side"),
    ],
)
def test_options_that_do_not_fit_are_refused(
    tmp_path: Path, options: tuple[object, ...], says: str
) -> None:
    done = run("fit", "demo", "--out", tmp_path / "run", *options)
    assert done.returncode == 1
    assert says in done.stderr
    assert not (tmp_path / "run").exists()


def test_ranking_with_a_run_of_classes_names_what_to_do(tmp_path: Path) -> None:
    ge.GraphEraser("closed-form").fit(ge.load_dataset("demo")).save(tmp_path / "run")
    said = run("rank", tmp_path / "run", "--node", 12).stderr
    assert "a run that predicts the classes of nodes" in said
    assert "predict RUN --nodes ID" in said
    assert "--task links" in said
