"""The audit of a run, its words and its page."""

from __future__ import annotations

import io
import itertools
import json
import re
import sys
from contextlib import redirect_stderr, redirect_stdout
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

import grapheraser as ge
from grapheraser.audit.attacks.answers import FEATURES, INFORMED
from grapheraser.audit.attacks.partition_leak import partition_leak
from grapheraser.audit.budget import Budget
from grapheraser.audit.findings import findings
from grapheraser.audit.report import _Work, audit_run
from grapheraser.cli import main
from grapheraser.reports.pages.audit import audit_page


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that has forgotten something, small enough to be attacked in seconds."""
    demo = ge.load_dataset("demo")
    graph = demo.subgraph(demo.ids[:700])
    eraser = ge.GraphEraser(partition="metis", num_shards=3, epochs=8).fit(graph)
    eraser.unlearn(ge.Nodes(graph.train_nodes[:2].tolist()))
    folder = tmp_path_factory.mktemp("audit") / "run"
    eraser.save(folder)
    return folder


@pytest.fixture(scope="module")
def report(path: Path) -> dict[str, Any]:
    """By a clock that ticks when it is looked at, so that the work is the same everywhere."""
    ticks = itertools.count()
    content = audit_run(path, minutes=1.5, clock=lambda: 1.0 * next(ticks)).to_dict()
    return content


def test_every_question_is_answered(report: dict[str, Any]) -> None:
    assert len(report["findings"]) == 10
    assert not [f for f in report["findings"] if f["level"] == "skipped"]
    assert report["passed"]
    assert report["run"]["statement"] == "exact given partition"
    assert report["run"]["forgotten"] == {"nodes": 2, "edges": 0, "features": 0, "labels": 0}
    assert report["run"]["context_nodes"] == 0


def test_the_run_is_attacked_by_whoever_knows_most(report: dict[str, Any]) -> None:
    """The default configuration, forgetting one node at a time."""
    kept = report["sections"]["membership"]["scenarios"]["kept"]
    assert set(INFORMED) | set(FEATURES) == set(kept["table"])
    assert kept["features"] in INFORMED
    assert kept["rates"]["auc"]["low"] > 0.95


def test_the_report_is_json_and_changes_nothing(path: Path, report: dict[str, Any]) -> None:
    assert json.loads(json.dumps(report)) == report
    assert ge.GraphEraser.load(path).verify().identical
    assert len(ge.GraphEraser.load(path).receipts_) == 1


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.links += [value or "" for name, value in attrs if name in ("src", "href")]


def test_the_page_holds_all_findings_and_needs_nothing_from_anywhere(
    report: dict[str, Any],
) -> None:
    page = audit_page(report)
    tags = _Tags()
    tags.feed(page)
    assert all(link.startswith("data:image/png;base64,") for link in tags.links)
    assert page.count('class="finding') == 10
    for heading in ("What was asked", "What was done", "What was measured", "does not show"):
        assert heading in page
    assert not re.search(r"\$\w", page)


def test_a_failed_proof_is_said_at_the_top(report: dict[str, Any]) -> None:
    sections = {**report["sections"]}
    sections["verification"] = {
        **sections["verification"], "identical": False, "differences": ["shard 0/w: 3 values"],
    }  # fmt: skip
    found = findings(sections)
    assert found[0].level == "failed"
    page = audit_page(
        {**report, "passed": False, "findings": [finding.__dict__ for finding in found]}
    )
    assert "A proof failed" in page


def test_bits_that_agree_under_wrong_signatures_are_no_proof(report: dict[str, Any]) -> None:
    section = report["sections"]["verification"]
    wrong = {**section["signatures"], "wrong": ["receipt 1 is unsigned"]}
    sections = {**report["sections"], "verification": {**section, "signatures": wrong}}
    found = findings(sections)[0]
    assert found.level == "failed"
    assert found.meaning == "Every bit agrees, but not every signature: receipt 1 is unsigned."


def test_a_proof_that_nobody_can_give_here_is_not_a_failed_one(report: dict[str, Any]) -> None:
    moved = {"identical": False, "differences": [], "elsewhere": "torch 1 there, torch 2 here"}
    section = {**report["sections"]["verification"], **moved}
    (found,) = findings({"verification": section})
    assert found.level == "skipped"
    assert "torch 1 there" in found.measured


@pytest.mark.parametrize("room", [{"delta": 60}, {"gamma": 0.3}])
def test_the_partition_is_attacked_with_the_runs_own_capacity(
    demo: ge.Graph, room: dict[str, Any]
) -> None:
    graph = demo.subgraph(demo.ids[:200])
    eraser = ge.GraphEraser(partition="blpa", num_shards=4, epochs=1, **room).fit(graph)
    found = _Work(eraser, 0, Budget(0)).partition()["methods"]["blpa"]
    own, other = (
        partition_leak(graph, "blpa", num_shards=4, budget=Budget(0), **options).to_dict()
        for options in (room, {})
    )
    assert found == own
    assert found != other


def test_a_residue_fails_the_audit(path: Path, tmp_path: Path) -> None:
    import shutil

    copy = Path(shutil.copytree(path, tmp_path / "run"))
    (copy / "left.tmp").write_text("x")
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err), pytest.raises(SystemExit) as stop:
        main(["audit", str(copy), "--minutes", "0.0001", "--json"])
    assert stop.value.code == 1
    data = json.loads(out.getvalue())
    assert data["passed"] is False
    assert (tmp_path / "run-audit" / "index.html").exists()
    skipped = [f for f in data["findings"] if f["level"] == "skipped"]
    assert skipped
    assert "--minutes" in skipped[0]["measured"]


@pytest.mark.parametrize(
    "words", [["--minutes", "0"], ["--minutes", "nan"], ["--minutes", "inf"], ["--out", "{run}/r"]]
)
def test_bad_options_are_refused(path: Path, words: list[str]) -> None:
    err = io.StringIO()
    with redirect_stderr(err), pytest.raises(SystemExit) as stop:
        main(["audit", str(path), *(word.format(run=path) for word in words)])
    assert stop.value.code == 1
    assert "error[GE-" in err.getvalue()


def test_a_graph_without_test_nodes_is_audited_as_far_as_it_goes(
    small: ge.Graph, tmp_path: Path
) -> None:

    import numpy as np

    graph = small.with_fields(role=np.where(small.role == 2, 0, small.role).astype(np.int8))
    ge.GraphEraser(num_shards=2, epochs=2).fit(graph).save(tmp_path / "run")
    said: list[str] = []
    report = audit_run(tmp_path / "run", minutes=0.05, say=said.append)
    first = next(text for text in said if text.startswith("attacking"))
    assert "0.05 minutes at most (--minutes); all takes" in first
    assert said.index(first) == 2  # before the first attack
    assert report.passed
    assert "skipped" in report.sections["membership"]
    page = audit_page(report.to_dict())
    assert "skipped" in page
    assert "Not everything was run. Not known: " in page


def test_what_was_not_run_is_said_first_and_by_the_exit_status(
    path: Path, report: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without scikit-learn the attack that matters most can't be made."""
    whole = audit_page(report)
    assert "Not everything was run" not in whole
    assert "every proof passed" in whole
    monkeypatch.setitem(sys.modules, "sklearn.ensemble", None)
    ticks = itertools.count()
    without = audit_run(path, minutes=1.5, clock=lambda: 1.0 * next(ticks))
    assert without.passed
    said, recovery = without.not_run
    assert "Can forgotten edges be recovered" in recovery
    assert "who was deleted? the membership attack needs" in said
    assert "pip install" in said
    page = audit_page(without.to_dict())
    assert page.index("Not everything was run") < page.index("every proof that was run passed")
    monkeypatch.setattr("grapheraser.audit.report.audit_run", lambda *_, **__: without)
    out = io.StringIO()
    with redirect_stdout(out), redirect_stderr(io.StringIO()), pytest.raises(SystemExit) as stop:
        main(["audit", str(path), "--out", str(path.with_name("page"))])
    assert stop.value.code == 3
    last = out.getvalue().splitlines()[-1]
    assert last.startswith("audited: 2 questions NOT RUN; every proof holds")
