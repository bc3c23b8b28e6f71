"""Requests from one community of label propagation (figure:dependent_unlearning)."""

from __future__ import annotations

from collections.abc import Mapping

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
    little_lost,
    percent,
)
from grapheraser.experiments.framework.means import Mean, mean_of
from grapheraser.experiments.framework.noise import Difference
from grapheraser.experiments.framework.options import Options
from grapheraser.experiments.framework.resolve import named, shown
from grapheraser.experiments.framework.rules import Case, Finding, rule
from grapheraser.experiments.framework.shared_cells import (
    every_cell,
    f1_means,
    standing,
    utility_cells,
)
from grapheraser.reports.tables import Table

SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)
FEW = 0.25


@rule(
    "community/f1",
    "Deleting nodes from a single community does not significantly affect the model utility of "
    "GraphEraser.",
    f"Every data set and GNN: once a whole community is forgotten, F1 is at most {DROP} lower.",
)
def community_f1(found: Line) -> Finding:
    """Against nothing forgotten, run by run."""
    return little_lost(found, SHARES[0], (SHARES[-1],), percent)


@rule(
    "community/few-shards",
    "When the community-dependent requests come, only a few shard models need to be retrained.",
    f"Every data set and partition: a whole community of at least 20 nodes touches at most "
    f"{100 * FEW:.0f} % of the shards.",
)
def few_shards(touched: Mapping[tuple[str, str], Mean]) -> Finding:
    """Share of the shards by data set and partition, over runs."""
    gaps = {key: Difference(mean.mean, mean.error, mean.runs - 1) for key, mean in touched.items()}
    cases = [Case(named(*key), gap.at_most(FEW)) for key, gap in gaps.items()]
    told = ", ".join(f"{named(*key)} {100 * mean.mean:.0f} %" for key, mean in touched.items())
    return Finding(cases, f"Touched: {told}.")


def _groups(options: Options) -> dict[tuple[str, str, str, float], list[Cell]]:
    """One random community a run."""

    def group(dataset: str, model: str, method: str, share: float) -> list[Cell]:
        forget = {"what": "community", "share": share} if share else None
        return utility_cells(options, dataset, model, method, forget=forget)

    return {(*line, share): group(*line, share) for line in options.lines for share in SHARES}


def cells(options: Options) -> list[Cell]:
    """Every share of a community."""
    return every_cell(_groups(options))


def _touched(
    groups: Mapping[tuple[str, str, str, float], list[Cell]], results: Results
) -> dict[tuple[str, str], Mean]:
    """Share of the shards that a whole community touches, by data set and partition."""
    found: dict[tuple[str, str], dict[int, float | None]] = {}
    for (dataset, _, method, share), group in groups.items():
        for cell in group if share == SHARES[-1] else []:
            value = results.value(cell)
            if value is not None:
                runs = found.setdefault((dataset, method), {})
                runs[int(cell["seed"])] = value["shards_touched"] / len(value["sizes"])
    means = {key: mean_of(runs) for key, runs in found.items()}
    return {key: mean for key, mean in means.items() if mean is not None}


def summarise(options: Options, results: Results) -> Summary:
    """F1 by the share of the community that is forgotten, and how many shards that touches."""
    groups = _groups(options)
    found = f1_means(results, groups, options.chosen)
    touched = _touched(groups, results)
    known, out = standing(found)
    title = f"Micro F1 ({options.how.chosen}) by the forgotten share of a community"
    return Summary(
        curve_rows(found, "deleted"),
        [
            curve_table(found, title, tell=percent, note="† collapsed."),
            Table(
                "Shards that a whole community touches",
                ("data set", "partition", "share of the shards"),
                tuple(
                    (*map(shown, key), f"{100 * mean.mean:.0f} %") for key, mean in touched.items()
                ),
            ),
        ],
        [*community_f1(known, left_out=out), *few_shards(touched)],
        lambda: curve_figure(found, "of the community (%)", "micro F1", scale=100),
        runs=curve_runs(found, "deleted"),
    )


register(
    Experiment(
        "community",
        "Requests from one community",
        "figure:dependent_unlearning",
        "Cora and Citeseer half a minute a run",
        cells,
        summarise,
        most_runs=SWEEP_RUNS,
    )
)
