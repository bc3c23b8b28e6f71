"""Importance score against the F1 of the shard (figure:f1_score_vs_weitht)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from grapheraser.experiments.framework.cell import Cell, Results
from grapheraser.experiments.framework.experiment import (
    SWEEP_RUNS,
    Experiment,
    Summary,
    register,
)
from grapheraser.experiments.framework.means import Mean, mean_of, pearson
from grapheraser.experiments.framework.noise import Difference
from grapheraser.experiments.framework.options import Options
from grapheraser.experiments.framework.resolve import named, shown
from grapheraser.experiments.framework.rules import Case, Finding, by_reading, rule
from grapheraser.experiments.framework.shared_cells import (
    AS_WRITTEN,
    CONVEX,
    f1_means,
    standing,
    utility_cells,
)
from grapheraser.reports.figures.points import Points, draw_points
from grapheraser.reports.tables import Table

METHODS = ("blpa", "bekm", "bekm-free")
CLEAR = 0.3

# Correlation by data set and partition, over runs.
Correlations = Mapping[tuple[str, str], Mean]


@rule(
    "importance/better-higher",
    "Generally, shard models with more accurate predictions are assigned more significant "
    "importance scores.",
    f"GAT on Cora, every partition: the correlation of a shard's F1 with its score is at least "
    f"{CLEAR}, and above 0 beyond noise over the runs.",
    noun="partition",
)
def better_higher(correlations: Correlations) -> Finding:
    """One solver at a time."""
    gaps = {k: Difference(r.mean, r.error, max(0, r.runs - 1)) for k, r in correlations.items()}
    cases = [Case(named(*key), gap.above(CLEAR)) for key, gap in gaps.items()]
    told = ", ".join(f"{named(*key)} {gap}" for key, gap in gaps.items())
    return Finding(cases, f"Correlation: {told}.")


def model_of(options: Options) -> str:
    """The paper's GAT, or the first model where it was not asked for."""
    return "gat" if "gat" in options.models else options.models[0]


def models(options: Options) -> tuple[str, ...]:
    """That one alone."""
    return (model_of(options),)


def methods(options: Options) -> tuple[str, ...]:
    """BLPA, and BEKM under each reading."""
    return tuple(method for method in METHODS if method in options.main_partitions)


ABOUT = {
    AS_WRITTEN: "as written: the paper's gradient steps with a softmax after each. The softmax of "
    "numbers between 0 and 1 is nearly uniform: the scores hardly leave 1/k, so LBAggr as written "
    "is the mean.",
    CONVEX: "convex: the minimum of the paper's objective.",
    "released code": "released code: the objective and the steps of the paper's code.",
}


def scores(options: Options) -> dict[str, str]:
    """LBAggr's readings, by label; outside the paper's protocol it always reaches the minimum."""
    there = options.aggregation_names
    if options.protocol != "paper":
        return {CONVEX: there["learned"]}
    named_so = {AS_WRITTEN: "learned", CONVEX: "convex", "released code": "released"}
    return {name: there[label] for name, label in named_so.items() if label in there}


def _groups(options: Options) -> dict[tuple[str, str], list[Cell]]:
    return {
        (dataset, method): utility_cells(options, dataset, model_of(options), method)
        for dataset in options.datasets
        for method in methods(options)
    }


def cells(options: Options) -> list[Cell]:
    """Shared with `utility`."""
    return [cell for group in _groups(options).values() for cell in group]


def summarise(options: Options, results: Results) -> Summary:
    """A point for each shard; Pearson's correlation for each partition and solver."""
    groups = _groups(options)
    rows: list[dict[str, Any]] = []
    lines, panels, claims = [], [], {}
    for solver, text in scores(options).items():
        f1 = f1_means(results, groups, text)
        found: dict[tuple[str, str], Mean] = {}
        for key, group in groups.items():
            values = {int(c["seed"]): v for c in group if (v := results.value(c)) is not None}
            values = {run: v for run, v in values.items() if text in v["importance"]}
            r = mean_of(
                {run: pearson(v["shard_f1"], v["importance"][text]) for run, v in values.items()},
                collapsed=key in f1 and f1[key].collapsed,
            )
            for run, value in values.items():
                rows += _rows(key, solver, run, value["shard_f1"], value["importance"][text])
            if r is not None:
                found[key] = r
            if values:
                lines.append(_line(key, solver, r, list(values.values()), text))
                panels.append(_panel(key, solver, r, next(iter(values.values())), text))
        known, out = standing(found)
        claims[solver] = better_higher(known, left_out=out)
    table = Table(
        f"Importance score and F1 of the shards ({shown(model_of(options)).upper()})",
        ("data set", "method", "solver", "correlation", "scores from to", "shards with weight"),
        tuple(lines),
        " ".join(ABOUT[name] for name in scores(options)) + " † collapsed, left out of verdicts.",
    )
    top = max((y for panel in panels for y in panel.y), default=1.0)
    return Summary(
        rows,
        [table],
        by_reading(claims),
        lambda: draw_points(
            panels,
            "F1 of the shard model",
            "importance score",
            columns=3,
            limits=(-0.05 * top, 1.08 * top),
        ),
    )


def _rows(
    key: tuple[str, str], solver: str, run: int, quality: list[float], weights: list[float]
) -> list[dict[str, Any]]:
    return [
        {
            "dataset": shown(key[0]),
            "method": key[1],
            "solver": solver,
            "run": run,
            "shard": shard,
            "f1": quality[shard],
            "importance": weight,
        }
        for shard, weight in enumerate(weights)
    ]


def _line(
    key: tuple[str, str], solver: str, r: Mean | None, values: list[dict[str, Any]], text: str
) -> tuple[str, ...]:
    every = [weight for value in values for weight in value["importance"][text]]
    return (
        shown(key[0]),
        key[1],
        solver,
        "-" if r is None else str(r),
        f"{min(every):.4f} to {max(every):.4f}",
        f"{sum(weight > 0 for weight in every)} of {len(every)}",
    )


def _panel(
    key: tuple[str, str], solver: str, r: Mean | None, value: dict[str, Any], text: str
) -> Points:
    told = "" if r is None else f" (r = {r.mean:.2f})"
    title = f"{named(*key)}, {solver}{told}"
    return Points(title, value["shard_f1"], value["importance"][text], colour=key[1])


register(
    Experiment(
        "importance",
        "Importance scores and shard F1",
        "figure:f1_score_vs_weitht",
        "nothing beside utility",
        cells,
        summarise,
        datasets=("cora",),
        models=models,
        most_runs=SWEEP_RUNS,
    )
)
