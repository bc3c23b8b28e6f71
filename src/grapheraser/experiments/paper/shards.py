"""The number of shards: time and F1 for k from 2 to 100 (figure:num_of_shards)."""

from __future__ import annotations

from itertools import pairwise
from math import inf
from typing import Any

from grapheraser.experiments.framework.cell import Cell, Results
from grapheraser.experiments.framework.experiment import (
    Claim,
    Experiment,
    Summary,
    judged_claim,
    register,
)
from grapheraser.experiments.framework.f1_curves import along, curve_rows, curve_table, lines_of
from grapheraser.experiments.framework.means import Mean, heights, signed, spreads
from grapheraser.experiments.framework.options import Options
from grapheraser.experiments.framework.resolve import shown
from grapheraser.experiments.framework.shared_cells import (
    every_cell,
    f1_means,
    measured,
    requests_cell,
    utility_cells,
)
from grapheraser.reports.figures.curves import Curves, draw_curves
from grapheraser.reports.tables import Table
from grapheraser.reports.wording import duration

NUMBERS = (2, 5, 10, 20, 50, 100)
REQUESTS = 20
SLIGHT = 0.03


Curve = dict[tuple[str, str, str, float], Mean]


def _f1_cells(options: Options) -> dict[tuple[str, str, str, float], list[Cell]]:
    """The paper's recommended partition for each model."""
    return {
        (dataset, model, method, k): utility_cells(options, dataset, model, method, num_shards=k)
        for dataset, model in options.pairs
        for method in (options.recommended(model),)
        for k in NUMBERS
    }


def _time_cells(options: Options) -> dict[tuple[str, str, str, float], Cell]:
    return {
        (dataset, model, method, k): requests_cell(
            options, dataset, model, method, num_shards=k, requests=REQUESTS, nodes_only=True
        )
        for dataset, model in options.pairs
        for method in (options.recommended(model),)
        for k in NUMBERS
    }


def cells(options: Options) -> list[Cell]:
    """F1 and the time of a request at every k."""
    return [*_time_cells(options).values(), *every_cell(_f1_cells(options))]


def summarise(options: Options, results: Results) -> Summary:
    """Time of a node request and F1, by k."""
    scores = f1_means(results, _f1_cells(options), options.learned)
    times = {
        key: Mean(value["nodes"]["mean"], value["nodes"]["std"], value["nodes"]["requests"])
        for key, value in measured(results, _time_cells(options)).items()
    }
    rows: list[dict[str, Any]] = [
        {"what": what, **row}
        for what, found in (("f1", scores), ("seconds", times))
        for row in curve_rows(found, "shards")
    ]
    time_table = Table(
        "Time to forget a node, by the number of shards",
        ("data set", "model", "method", *(f"{k}" for k in NUMBERS)),
        tuple(
            (
                *map(shown, line),
                *(
                    duration(times[(*line, k)].mean if (*line, k) in times else None)
                    for k in NUMBERS
                ),
            )
            for line in lines_of(times)
        ),
    )
    tables = [time_table, curve_table(scores, "Micro F1 (LBAggr), by the number of shards")]
    return Summary(
        rows, tables, _claims(options, scores, times), lambda: _figure(options, scores, times)
    )


def _claims(options: Options, scores: Curve, times: Curve) -> list[Claim]:
    faster = [
        after < before
        for line in lines_of(times)
        for before, after in pairwise(value.mean for _, value in along(times, *line))
    ]
    drops: dict[tuple[str, str], float] = {}
    for dataset, model, method in lines_of(scores):
        curve = along(scores, dataset, model, method)
        if len(curve) > 1:
            drops[dataset, model] = curve[0][1].mean - curve[-1][1].mean
    claims = [
        *judged_claim(
            "Forgetting gets faster with more shards.",
            faster,
            lambda count: f"From one k to the next in {count}.",
            noun="step",
        ),
        *judged_claim(
            "F1 gets slightly worse with more shards.",
            [drop <= SLIGHT for drop in drops.values()],
            lambda count: (
                f"From {NUMBERS[0]} to {NUMBERS[-1]} shards it drops by at most {SLIGHT} in "
                f"{count}: "
                + ", ".join(
                    f"{shown(d)} {shown(m).upper()} {signed(-drop)}"
                    for (d, m), drop in drops.items()
                )
                + "."
            ),
        ),
    ]
    if "gcn" in options.models and len(options.models) > 1:
        claims += judged_claim(
            "GCN loses the most.",
            [
                drops.get((d, "gcn"), -inf) == max(drop for (e, _), drop in drops.items() if e == d)
                for d in dict.fromkeys(d for d, _ in drops)
            ],
            lambda count: f"On {count}.",
            noun="data set",
        )
    return claims


def _figure(options: Options, scores: Curve, times: Curve) -> Any:
    panels = []
    for dataset in options.datasets:
        for what, found in (("seconds to forget a node", times), ("micro F1", scores)):
            series: dict[str, Any] = {}
            for model in options.models:
                curve = along(found, dataset, model, options.recommended(model))
                values = [value for _, value in curve]
                bands = spreads(values) if found is scores else [None] * len(values)
                series[shown(model)] = ([x for x, _ in curve], heights(values), bands)
            panels.append(Curves(f"{shown(dataset)}: {what}", series, log_y=found is times))
    return draw_curves(panels, "number of shards", "", columns=2, log_x=True)


register(
    Experiment(
        "shards",
        "The number of shards",
        "figure:num_of_shards",
        "Cora and Citeseer 3 min; Physics about an hour",
        cells,
        summarise,
        datasets=("physics",),
        one_run_in=3,
    )
)
