"""The command line of recommenders."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

import grapheraser as ge
from tests.cli.commands import data, run
from tests.recommendation.worlds import random_matrix

MATRIX = random_matrix(30, 24)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("recommendation")
    sp.save_npz(made / "matrix.npz", MATRIX)
    fitted = data("fit", made / "matrix.npz", "--task", "recommendation", "--out", made / "run")
    assert (fitted["users"], fitted["items"]) == (30, 24)
    assert fitted["interactions"] == MATRIX.nnz
    assert fitted["statement"] == "exact"
    return made


@pytest.fixture
def path(folder: Path, tmp_path: Path) -> Path:
    ge.Recommender.load(folder / "run").save(tmp_path / "run")
    return tmp_path / "run"


def test_recommendations_are_those_of_the_library(folder: Path) -> None:
    found = data("predict", folder / "run", "--users", "7,3", "--top", 4)["recommendations"]
    expected = ge.Recommender.load(folder / "run").recommend([7, 3], top=4)
    assert [entry["user"] for entry in found] == [7, 3]
    assert [entry["items"] for entry in found] == expected.tolist()
    assert "score" in run("predict", folder / "run", "--users", 7).stdout
    assert "items for users" in run("info", folder / "run").stdout


def test_users_items_and_interactions_are_forgotten(path: Path) -> None:
    item = int(MATRIX[[8]].indices[0])
    options = ("--users", 7, "--items", 23, "--interactions", f"8-{item}")
    assert data("unlearn", path, *options, "--dry-run")["plan"]["nodes"] == 2
    done = run("unlearn", path, *options)
    assert "1 user, 1 item and 1 interaction" in done.stdout
    assert data("verify", path, "--deep")["identical"]
    assert "user 7 is not in the graph" in run("predict", path, "--users", 7).stderr
    added = path.parent / "changes.jsonl"
    added.write_text('{"add_interactions": {"pairs": [[99, 3]]}}\n{"users": [1]}\n')
    assert data("update", path, "--file", added)["receipt"]["counts"]["added_users"] == 1
    assert len(data("predict", path, "--users", 99, "--top", 2)["recommendations"]) == 1


def test_interactions_in_a_table_are_fitted_and_scored(tmp_path: Path) -> None:
    users, items = MATRIX.nonzero()
    lines = [f"{user},{item}" for user, item in zip(users, items, strict=True)]
    (tmp_path / "all.csv").write_text("\n".join(["user,item", *lines]))
    fitted = data("fit", tmp_path / "all.csv", "--task", "recommendation", "--out", tmp_path / "r")
    assert fitted["statement"] == "exact given schema"
    (tmp_path / "test.csv").write_text("user,item\n0,1\n1,2\n")
    found = data("evaluate", tmp_path / "r", "--interactions", tmp_path / "test.csv")
    score = ge.Recommender.load(tmp_path / "r").score(np.array([[0, 1], [1, 2]]))
    assert found["recall"] == pytest.approx(score.recall)
    assert (
        "recall@20"
        in run("evaluate", tmp_path / "r", "--interactions", tmp_path / "test.csv").stdout
    )


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("predict", "--nodes", 3), "a run that predicts items for users"),
        (("predict", "--users", 300), "user 300 is not in the graph"),
        (("predict", "--users", 3, "--explain"), "--users goes with --top and --json"),
        (("evaluate",), "no test interactions of its own"),
        (("unlearn", "--nodes", 3), "takes Users, Items"),
    ],
)
def test_what_a_recommender_can_not_do_is_said(
    folder: Path, words: tuple[str, ...], says: str
) -> None:
    verb, *options = words
    done = run(verb, folder / "run", *options)
    assert done.returncode != 0
    assert says in done.stderr


def test_options_of_other_tasks_are_refused(folder: Path, tmp_path: Path) -> None:
    world = folder / "matrix.npz"
    options = ("--task", "recommendation", "--shards", 3, "--out", tmp_path / "run")
    assert "--shards has no part" in run("fit", world, *options).stderr
    missing = run("fit", "nowhere", "--task", "recommendation", "--out", tmp_path / "run")
    assert "no such file" in missing.stderr
