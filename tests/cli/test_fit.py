"""grapheraser fit."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import grapheraser as ge
from tests.cli.commands import data, run, snapshot


def test_fit_finds_out_about_its_folder_before_it_trains(
    own_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "letter").write_text("dear")
    data("unlearn", own_run, "--nodes", int(ge.GraphEraser.load(own_run).graph_.train_nodes[0]))
    before = snapshot(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(ge.GraphEraser, "fit", lambda *_: pytest.fail("it trained"))
        for out, error in (
            (tmp_path, "StoreError"),
            (tmp_path / "letter" / "run", "StoreError"),
            (own_run, "ReceiptLossError"),
        ):
            done = run("fit", "demo", "--out", out, "--json")
            assert done.returncode == 1
            assert json.loads(done.stdout)["error"]["type"] == error
    assert "--replace" in done.stderr
    assert snapshot(tmp_path) == before
    data("fit", "demo", "--shards", 2, "--epochs", 1, "--out", own_run, "--replace")
    assert ge.GraphEraser.load(own_run).receipts_ == ()


def test_shards_asked_is_handed_on_and_has_the_default_of_the_library(tmp_path: Path) -> None:
    options = ("--shards", 3, "--epochs", 1)
    for given, expected in (((), ge.GraphEraser().shards_asked), (("--shards-asked", 2), 2)):
        run_path = tmp_path / str(expected)
        data("fit", "demo", *options, *given, "--out", run_path)
        assert ge.GraphEraser.load(run_path).shards_asked == expected
    refused = run("fit", "demo", *options, "--shards-asked", 0, "--out", tmp_path / "no", "--json")
    assert json.loads(refused.stdout)["error"]["type"] == "ParameterError"


def test_members_are_named_and_come_back(tmp_path: Path) -> None:
    options = ("--shards", 2, "--epochs", 1)
    data("fit", "demo", *options, "--members", "features,words", "--out", tmp_path / "two")
    eraser = ge.GraphEraser.load(tmp_path / "two")
    assert list(eraser.aggregator_.fitted.weights) == ["words", "features", "shards"]  # type: ignore[attr-defined]
    data("fit", "demo", *options, "--no-global-expert", "--out", tmp_path / "none")
    assert not ge.GraphEraser.load(tmp_path / "none").aggregator_.tensors
    for bad in (("--members", "phrases"), ("--members", "words", "--no-global-expert")):
        done = run("fit", "demo", *options, *bad, "--out", tmp_path / "bad", "--json")
        assert done.returncode == 1
        assert json.loads(done.stdout)["error"]["type"] == "ParameterError"
        assert "'members' of GraphEraser" in done.stdout


def test_a_closed_form_model_needs_no_number_of_shards(tmp_path: Path) -> None:
    data("fit", "demo", "--model", "closed-form", "--out", tmp_path / "run")
    node = int(ge.GraphEraser.load(tmp_path / "run").graph_.train_nodes[0])
    receipt = data("unlearn", tmp_path / "run", "--nodes", node)
    assert "exact" in json.dumps(receipt)
    assert ge.GraphEraser.load(tmp_path / "run").verify().identical


def test_a_run_with_a_halo_says_so_and_comes_back(tmp_path: Path) -> None:
    options = ("--shards", 3, "--epochs", 1, "--no-global-expert")
    data("fit", "demo", *options, "--halo", "--out", tmp_path / "run")
    assert ge.GraphEraser.load(tmp_path / "run").halo is True
    data("fit", "demo", *options, "--out", tmp_path / "alone")
    assert ge.GraphEraser.load(tmp_path / "alone").halo is False


def test_the_context_is_handed_on_and_has_the_default_of_the_library(tmp_path: Path) -> None:
    options = ("--shards", 3, "--epochs", 1)
    for given, expected in (((), ge.GraphEraser().context), (("--context", "all"), "all")):
        report = data("fit", "demo", *options, *given, "--out", tmp_path / expected)
        eraser = ge.GraphEraser.load(tmp_path / expected)
        assert (report["context"], eraser.context, eraser.graph_.context) == (expected,) * 3
        others = eraser.graph_.num_nodes - eraser.graph_.num_train
        assert report["context_nodes"] == (others if expected == "all" else 0)
        assert data("evaluate", tmp_path / expected)["context_nodes"] == report["context_nodes"]


@pytest.mark.parametrize(
    "options", [("--context", "some"), ("--split", "public"), ("--split", "thirds")]
)
def test_a_context_or_split_that_there_is_not_is_refused(
    tmp_path: Path, options: tuple[str, str]
) -> None:
    done = run("fit", "demo", *options, "--out", tmp_path / "run", "--json")
    assert done.returncode != 0
    assert json.loads(done.stdout)["error"]["type"] == "ParameterError"
    assert not (tmp_path / "run").exists()


def test_a_number_of_shards_is_refused_in_the_words_of_the_eraser(tmp_path: Path) -> None:
    done = run("fit", "demo", "--shards", 0, "--out", tmp_path / "run")
    assert done.returncode == 1
    assert "'num_shards' of GraphEraser must be an int in [1, " in done.stderr
    assert not (tmp_path / "run").exists()
