"""An experiment says which models it looks at, and under which protocol."""

from __future__ import annotations

import pytest

from grapheraser.aggregation.learned import LearnedAggregator
from grapheraser.errors import ParameterError
from grapheraser_lab.experiments import importance
from grapheraser_lab.experiments.catalogue import EXPERIMENTS, Options, in_order
from grapheraser_lab.framework.experiment import ORDER
from grapheraser_lab.framework.study import ALL, chosen, options_for


def test_a_section_names_the_models_that_it_looks_at() -> None:
    options = Options(models=("gcn", "gat"))
    found = {name: EXPERIMENTS.get(name).models_of(options) for name in EXPERIMENTS}
    assert found["utility"] == ("gcn", "gat")
    assert found["mlp"] == ("mlp", "gcn", "gat")
    assert found["importance"] == ("gat",)
    assert found["delta"] == ("gcn",)
    assert found["partition-cost"] == ()


def test_f1_has_all_runs_and_sweeps_and_attacks_five() -> None:
    runs = {
        name: options_for(EXPERIMENTS.get(name), Options(runs=10), given=False).runs
        for name in EXPERIMENTS
    }
    assert {runs[name] for name in ("utility", "edge-utility", "partitioners", "mlp")} == {10}
    sweeps = ("structure", "robustness", "shards", "delta", "community", "attack", "partition-cost")
    assert {runs[name] for name in sweeps} == {5}


def test_the_report_begins_with_what_dominates_and_has_an_order_for_all() -> None:
    names = [experiment.name for experiment in in_order()]
    assert sorted(names) == sorted(EXPERIMENTS) == sorted(ORDER)
    assert names[:2] == ["readings", "collapse"]


def test_links_are_in_one_report_and_can_be_named_in_both() -> None:
    assert "links" in [e.name for e in chosen([ALL], "best")]
    assert "links" not in [e.name for e in chosen([ALL], "paper")]
    assert [e.name for e in chosen(["links"], "paper")] == ["links"]


def test_an_experiment_of_the_other_protocol_is_refused() -> None:
    assert "sensitivity" in [e.name for e in chosen([ALL], "literal")]
    assert "sensitivity" not in [e.name for e in chosen([ALL], "best")]
    with pytest.raises(ParameterError, match="about protocol literal"):
        chosen(["sensitivity"], "best")


@pytest.mark.parametrize(
    ("protocol", "readings"),
    [("literal", ["as written", "convex", "released code"]), ("best", ["convex"])],
)
def test_importance_scores_are_called_by_what_computed_them(
    protocol: str, readings: list[str]
) -> None:
    found = importance.scores(Options(protocol=protocol))
    assert list(found) == readings
    assert found["convex"] == "learned"  # whose default solver reaches the minimum
    assert LearnedAggregator().solver == "convex"
