"""Links before and after forgetting, on a tiny graph."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from grapheraser_lab.experiments import links
from grapheraser_lab.experiments.catalogue import EXPERIMENTS, Options, run_study
from grapheraser_lab.framework.cell import Cell, Result, Results
from grapheraser_lab.framework.shared_cells import chosen


@pytest.fixture
def one(options: Options) -> Options:
    return replace(options, runs=1)


def _result(cell: Cell, auc: float, validation: float) -> Result:
    value = {
        "auc": auc,
        "validation_auc": validation,
        "hits": {"50": auc / 2},
        "seconds": 1.0,
        "forgetting_seconds": 0.1,
    }
    return Result(cell, value, 1.0, 1.0, {}, {})


def test_the_rate_of_an_encoder_is_chosen_by_validation_edges(one: Options) -> None:
    results = Results()
    two = replace(one, runs=2)
    for cell in EXPERIMENTS.get("links").cells(two):
        best = cell.config.get("lr") == 0.003
        closed = cell["model"] == "closed-form"
        results.add(_result(cell, 0.95 if closed else 0.6 + 0.3 * best, 0.5 + best))
    summary = links.summarise(two, results)
    scratch = [row for row in summary.rows if row["series"] == "scratch"]
    assert {round(row["auc"], 6) for row in scratch} == {0.9}
    assert [claim.verdict for claim in summary.claims] == ["holds", "holds"]
    assert all(claim.ours for claim in summary.claims)
    assert {row["run"] for row in summary.rows} == {0, 1}


def test_both_kinds_and_all_shares_are_measured_once(one: Options) -> None:
    cells = dict.fromkeys(EXPERIMENTS.get("links").cells(one))
    # Nothing is forgotten in one situation, nodes or edges in three each.
    assert len(cells) == 7 * (1 + 3)
    first = next(iter(cells))
    assert chosen({first: {"validation_auc": 0.7}}) == first


@pytest.mark.long
def test_the_experiment_runs_end_to_end(one: Options, tmp_path: Path) -> None:
    study = run_study(["links"], one, tmp_path, workers=0)
    assert study.failures == {}
    rows = study.summaries["links"].rows
    assert len(rows) == 2 * 2 * 4
    page = study.report.read_text()
    assert EXPERIMENTS.get("links").title in page
    assert "the paper's <code></code>" not in page
