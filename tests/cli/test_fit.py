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
