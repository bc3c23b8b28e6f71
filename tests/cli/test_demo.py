"""grapheraser demo."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import grapheraser as ge
from tests.cli.commands import run


@pytest.mark.long
def test_the_demo_ends_in_its_verdict(tmp_path: Path, small: ge.Graph) -> None:
    earlier = ge.GraphEraser(num_shards=2, epochs=1).fit(small)
    earlier.unlearn(ge.Nodes(small.train_nodes[:1]))
    earlier.save(tmp_path / "report" / "run")
    done = run("demo", "--dataset", "demo", "--out", tmp_path / "report", "--requests", 3)
    assert done.returncode == 0, done.stderr
    assert "verified: bit-identical" in done.stdout.splitlines()[-1]
    assert len(re.findall(r"F1 0\.\d{4}", done.stdout)) == 4
    page = (tmp_path / "report" / "index.html").read_text()
    assert "verified: bit-identical" in page
    assert page.count("<svg") == 7
    assert "http" not in page.replace("http-equiv", "")


@pytest.mark.long
def test_the_receipt_of_the_demo_is_checked_with_the_printed_command(tmp_path: Path) -> None:
    options = ("--dataset", "demo", "--requests", 1, "--shards", 4, "--out", tmp_path / "report")
    done = run("demo", *options)
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("check a receipt")]
    command = line.removeprefix("check a receipt").split()
    assert command[0] == "grapheraser"
    checked = run(*command[1:])
    assert checked.returncode == 0, checked.stderr
    assert "receipt: valid" in checked.stdout


@pytest.mark.long
def test_the_embedded_graph_of_the_demo_shows_that_shards_pay(tmp_path: Path) -> None:
    """Which shards are retrained, and what is compared; times are for the eye."""
    done = run("demo", "--out", tmp_path / "report", "--requests", 2, "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert "demo-large" in found["graph"]
    assert len(found["retrained"]) == 1
    assert found["identical"]
    assert found["digests"] == 81
    assert found["slot"][1] == "empty"
    assert abs(found["f1"]["after"] - found["f1"]["retrained"]) < 0.02
    assert abs(found["f1"]["after"] - found["f1"]["before"]) < 0.005
