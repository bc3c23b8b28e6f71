"""A growing share of nodes forgotten, uniformly or not (figure:unlearning_adaptive)."""

from __future__ import annotations

from grapheraser.experiments.framework.cell import Cell, Results
from grapheraser.experiments.framework.experiment import (
    SWEEP_RUNS,
    Experiment,
    Summary,
    register,
)
from grapheraser.experiments.framework.f1_curves import (
    DROP,
    Line,
    curve_figure,
    curve_rows,
    curve_runs,
    curve_table,
    drops,
    little_lost,
    percent,
)
from grapheraser.experiments.framework.noise import any_of, paired
from grapheraser.experiments.framework.options import Options
from grapheraser.experiments.framework.resolve import named
from grapheraser.experiments.framework.rules import MOST, Case, Finding, rule
from grapheraser.experiments.framework.shared_cells import (
    every_cell,
    f1_means,
    standing,
    utility_cells,
)
from grapheraser.experiments.paper import published as paper

SHARES = (0.0, 0.05, 0.1, 0.2, 0.3, 0.5)
NAMES = {"uniform": "uniform", "large": "non-uniform"}


@rule(
    "robustness/ten-percent",
    "The F1 scores of GraphEraser do not drop significantly in most of the settings when the ratio "
    "of unlearned nodes is less than 10%.",
    f"Every data set, GNN and kind of request: after 5 and 10 % F1 is at most {DROP} lower.",
    limits=MOST,
)
def ten_percent(found: Line) -> Finding:
    """Against nothing forgotten, run by run."""
    return little_lost(found, 0.0, (0.05, 0.1), percent)


@rule(
    "robustness/half",
    "When a larger ratio of nodes are deleted, we do observe utility degradation in certain cases "
    "(GCN trained on Pubmed, from 0.72 to 0.56 at 50%).",
    f"In at least one case F1 is lower by at least {DROP} after 50 %, beyond noise.",
)
def half_costs(found: Line) -> Finding:
    """One case is enough."""
    lost = drops(found, 0.0, (0.5,))
    if not lost:
        return Finding([], "")
    where, worst = max(lost.items(), key=lambda item: item[1].mean)
    told = f"The largest drop: {worst}, {named(*where[:3])}."
    there = [v for k, v in lost.items() if k[:2] == ("pubmed", "gcn") and "non" not in k[2]]
    if there:
        was, became = paper.ROBUSTNESS_PUBMED_GCN
        told += f" GCN on Pubmed, uniform: {there[0]}; the paper {was - became:+.2f}."
    return Finding([Case("some case", any_of(gap.above(DROP) for gap in lost.values()))], told)


@rule(
    "robustness/distribution",
    "The distributions of the deletion do not significantly affect the robustness.",
    f"Every data set, GNN and share: uniform and non-uniform requests differ by at most {DROP}.",
)
def distribution(found: Line) -> Finding:
    """The same method under both."""
    gaps = {}
    for (d, m, series, share), mean in found.items():
        other = found.get((d, m, series.replace("non-uniform", "uniform"), share))
        if series.endswith("non-uniform") and share and other is not None:
            gaps[d, m, series.split(",")[0], share] = paired(other, mean)
    cases = [Case(named(*k[:3], percent(k[3])), gap.within(DROP)) for k, gap in gaps.items()]
    worst = max(gaps.values(), key=lambda gap: abs(gap.mean), default=None)
    return Finding(cases, f"The largest difference: {worst}.")


def _groups(options: Options) -> dict[tuple[str, str, str, float], list[Cell]]:
    def group(dataset: str, model: str, method: str, where: str, share: float) -> list[Cell]:
        forget = {"what": "nodes", "share": share, "where": where} if share else None
        return utility_cells(options, dataset, model, method, forget=forget)

    return {
        (dataset, model, f"{method}, {name}", share): group(dataset, model, method, where, share)
        for dataset, model, method in options.lines
        for where, name in NAMES.items()
        for share in SHARES
    }


def cells(options: Options) -> list[Cell]:
    """Every share, uniform and not."""
    return every_cell(_groups(options))


def summarise(options: Options, results: Results) -> Summary:
    """F1 by share; uniform is from all shards, non-uniform from the larger half of them."""
    found = f1_means(results, _groups(options), options.chosen)
    known, out = standing(found)
    return Summary(
        curve_rows(found, "deleted"),
        [
            curve_table(
                found,
                "Micro F1 after a share of the training nodes was forgotten "
                f"({options.how.chosen})",
                tell=percent,
                note="Non-uniform: all from the larger half of the shards. † collapsed.",
            )
        ],
        [
            *ten_percent(known, left_out=out),
            *half_costs(known, left_out=out),
            *distribution(known, left_out=out),
        ],
        lambda: curve_figure(found, "forgotten nodes (%)", "micro F1", scale=100),
        runs=curve_runs(found, "deleted"),
    )


register(
    Experiment(
        "robustness",
        "Forgetting a growing share of the nodes",
        "figure:unlearning_adaptive",
        "Cora and Citeseer 1 min a run, with Pubmed 4 min",
        cells,
        summarise,
        datasets=("citeseer", "cora", "pubmed"),
        most_runs=SWEEP_RUNS,
    )
)
