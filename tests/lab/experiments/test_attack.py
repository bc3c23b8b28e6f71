"""The experiment: cells that can be measured, and a summary with verdicts."""

from __future__ import annotations

from typing import Any

import pytest

import grapheraser as ge
from grapheraser.aggregation import PooledAggregator
from grapheraser.errors import GraphEraserError
from grapheraser_lab.experiments.attack import COLUMNS, summarise
from grapheraser_lab.experiments.catalogue import EXPERIMENTS, Options, Results
from grapheraser_lab.framework.cell import Cell, Result
from grapheraser_lab.framework.resolve import aggregator_of
from grapheraser_lab.measure.attack import check_same, measure


def result(cell: Cell, value: dict[str, Any]) -> Result:
    return Result(cell, value, 1.0, 1.0, {}, {})


def made_up(auc: float) -> dict[str, Any]:
    interval = {"value": auc, "low": auc - 0.04, "high": auc + 0.04}
    rates = {"auc": interval, "tpr": {"0.001": interval, "0.01": interval}, "members": 9}
    return {
        "rates": rates,
        "classical_auc": 0.5,
        "degradation_count": 0.5,
        "degradation_rate": 0.0,
        "features": "direct difference",
        "model": "mlp",
    }


def test_the_grid_has_every_scenario() -> None:
    options = Options(datasets=("cora", "citeseer"))
    assert EXPERIMENTS.get("attack").label == "table:attack_unlearning"
    found = EXPERIMENTS.get("attack").cells(options)
    assert len(set(found)) == 2 * 4 * options.runs
    assert all(set(cell["looks"]) == set(COLUMNS) for cell in found)


def test_the_summary_judges_the_papers_claims() -> None:
    options = Options(datasets=("cora",), models=("gcn", "gat"))
    aucs = {"kept": 0.9, "recut": 0.52, "recut, reseeded": 0.51}
    results = Results()
    for cell in EXPERIMENTS.get("attack").cells(options):
        looks = cell["looks"].items()
        value = {column: made_up(aucs[look["scenario"]]) for column, look in looks}
        results.add(result(cell, value))
    summary = summarise(options, results)
    verdicts = [claim.verdict for claim in summary.claims]
    assert verdicts == ["does not hold", "does not hold", "holds", "holds"]
    assert {row["request_nodes"] for row in summary.rows} == {1, 10}
    assert len(summary.rows) == 8 * options.runs
    assert {row["run"] for row in summary.rows} == set(range(options.runs))
    assert summary.tables[0].rows[0][:2] == ("cora", "gcn")
    assert summary.draw is not None
    summary.draw()


def test_the_default_configuration_is_attacked_under_protocol_best() -> None:
    default = ge.GraphEraser()
    for cell in EXPERIMENTS.get("attack").cells(
        Options(datasets=("cora",), runs=1, protocol="best")
    ):
        assert cell["partition"] == default.partition
        assert isinstance(aggregator_of(cell["aggregation"]), PooledAggregator)
    options = Options(datasets=("cora",), runs=1, protocol="literal")
    written = EXPERIMENTS.get("attack").cells(options)
    assert {(cell["model"], cell["partition"]) for cell in written} == {
        ("gat:paper", "bekm"),
        ("gcn:paper", "blpa"),
        ("gin:paper", "bekm"),
        ("sage:paper", "bekm"),
    }


def test_a_summary_of_nothing_is_empty() -> None:
    summary = summarise(Options(datasets=("cora",)), Results())
    assert (list(summary.rows), list(summary.claims)) == ([], [])


@pytest.mark.long
def test_a_cell_can_be_measured() -> None:
    value = measure(
        {
            "dataset": "demo",
            "split_seed": 0,
            "seed": 0,
            "model": "gcn",
            "partition": "hash",
            "aggregation": "mean",
            "num_shards": 8,
            "epochs": 10,
            "looks": {
                "one": {"scenario": "kept", "nodes_per_request": 1, "requests": 8},
                "two": {"scenario": "kept", "nodes_per_request": 2, "requests": 8},
            },
        }
    )
    assert [value[look]["rates"]["members"] for look in ("one", "two")] == [8, 16]
    for found in value.values():
        assert 0 <= found["rates"]["auc"]["value"] <= 1
        assert found["moved_members"] > found["moved_others"] > 0


def test_equal_requests_on_both_sides_everywhere() -> None:
    """What is compared has requests of equal size, on every data set."""
    for cell in EXPERIMENTS.get("attack").cells(Options(runs=1, protocol="best")):
        looks = cell["looks"]
        one, other = ({**looks[name], "scenario": ""} for name in ("A_I", "A_II"))
        assert one == other, cell


def test_bit_identical_models_with_different_aucs_fail_the_run() -> None:
    look = {"nodes_per_request": 10, "requests": 12}
    looks = {"A_I": {**look, "scenario": "kept"}, "A_II": {**look, "scenario": "recut"}}
    check_same(looks, {"A_I": made_up(0.7), "A_II": made_up(0.7)})
    with pytest.raises(GraphEraserError, match="bit-identical"):
        check_same(looks, {"A_I": made_up(0.7), "A_II": made_up(0.6)})
    looks["A_II"]["nodes_per_request"] = 60  # other requests, other figures
    check_same(looks, {"A_I": made_up(0.7), "A_II": made_up(0.6)})
