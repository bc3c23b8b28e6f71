"""The number of shards: time and F1 for k from 2 to 100 (figure:num_of_shards)."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from grapheraser.experiments.framework.cell import Cell, Results
from grapheraser.experiments.framework.experiment import (
    Claim,
    Experiment,
    Summary,
    counted,
    judged,
    register,
)
from grapheraser.experiments.framework.f1_curves import along, curve_rows, curve_table
from grapheraser.experiments.framework.means import Mean, heights, signed, spreads
from grapheraser.experiments.framework.options import Options
from grapheraser.experiments.framework.resolve import shown
from grapheraser.experiments.framework.shared_cells import f1, requests_cell, utility_cells
from grapheraser.reports.figures.curves import Curves, draw_curves
from grapheraser.reports.tables import Table
from grapheraser.reports.wording import duration

NUMBERS = (2, 5, 10, 20, 50, 100)
REQUESTS = 20
SLIGHT = 0.03


def _time_cell(options: Options, dataset: str, model: str, k: int) -> Cell:
    partition = options.recommended(model)
    return requests_cell(
        options, dataset, model, partition, num_shards=k, requests=REQUESTS, nodes_only=True
    )


def _f1_cells(options: Options, dataset: str, model: str, k: int) -> list[Cell]:
    return utility_cells(options, dataset, model, options.recommended(model), num_shards=k)


def cells(options: Options) -> list[Cell]:
    """The paper's recommended partition for each model."""
    found = []
    for dataset in options.datasets:
        for model in options.models:
            for k in NUMBERS:
                found.append(_time_cell(options, dataset, model, k))
                found += _f1_cells(options, dataset, model, k)
    return found


def summarise(options: Options, results: Results) -> Summary:
    """Time of a node request and F1, by k."""
    text = options.how.aggregations.get("learned", "mean")
    scores: dict[tuple[str, str, str, float], Mean] = {}
    times: dict[tuple[str, str, str, float], Mean] = {}
    for dataset in options.datasets:
        for model in options.models:
            line = dataset, model, options.recommended(model)
            for k in NUMBERS:
                score = f1(results, _f1_cells(options, dataset, model, k), text)
                if score is not None:
                    scores[(*line, k)] = score
                value = results.value(_time_cell(options, dataset, model, k))
                if value is not None:
                    mean, std = value["nodes"]["mean"], value["nodes"]["std"]
                    times[(*line, k)] = Mean(mean, std, value["nodes"]["requests"])
    rows: list[dict[str, Any]] = [
        {"what": what, **row}
        for what, found in (("f1", scores), ("seconds", times))
        for row in curve_rows(found, "shards")
    ]
    lines = list(dict.fromkeys(key[:3] for key in times))
    time_table = Table(
        "Seconds to forget a node, by the number of shards",
        ("data set", "model", "method", *(f"{k}" for k in NUMBERS)),
        tuple(
            (
                *map(shown, line),
                *(
                    duration(times[(*line, k)].mean if (*line, k) in times else None)
                    for k in NUMBERS
                ),
            )
            for line in lines
        ),
    )
    tables = [time_table, curve_table(scores, "Micro F1 (LBAggr), by the number of shards")]
    return Summary(
        rows, tables, _claims(options, scores, times), lambda: _figure(options, scores, times)
    )


def _claims(
    options: Options,
    scores: dict[tuple[str, str, str, float], Mean],
    times: dict[tuple[str, str, str, float], Mean],
) -> list[Claim]:
    faster = slower = 0
    drops: dict[tuple[str, str], float] = {}
    for dataset in options.datasets:
        for model in options.models:
            partition = options.recommended(model)
            curve = [value.mean for _, value in along(times, dataset, model, partition)]
            steps = list(pairwise(curve))
            faster += sum(b < a for a, b in steps)
            slower += sum(b >= a for a, b in steps)
            line = along(scores, dataset, model, partition)
            if len(line) > 1:
                drops[dataset, model] = line[0][1].mean - line[-1][1].mean
    claims = []
    if faster + slower:
        claims.append(
            Claim(
                "Forgetting gets faster with more shards.",
                judged(faster, faster + slower),
                f"From one k to the next in {counted(faster, faster + slower, 'steps')}.",
            )
        )
    if drops:
        slight = sum(drop <= SLIGHT for drop in drops.values())
        claims.append(
            Claim(
                "F1 gets slightly worse with more shards.",
                judged(slight, len(drops)),
                f"From {NUMBERS[0]} to {NUMBERS[-1]} shards it drops by at most {SLIGHT} in "
                f"{counted(slight, len(drops), 'cases')}: "
                + ", ".join(
                    f"{shown(d)} {shown(m).upper()} {signed(-drop)}"
                    for (d, m), drop in drops.items()
                )
                + ".",
            )
        )
        most = [
            max((m for m in options.models if (d, m) in drops), key=lambda m, d=d: drops[d, m])  # type: ignore[misc]
            for d in options.datasets
            if any((d, m) in drops for m in options.models)
        ]
        if "gcn" in options.models and len(options.models) > 1:
            good = sum(model == "gcn" for model in most)
            claims.append(
                Claim(
                    "GCN loses the most.",
                    judged(good, len(most)),
                    f"On {counted(good, len(most), 'data sets')}.",
                )
            )
    return claims


def _figure(
    options: Options,
    scores: dict[tuple[str, str, str, float], Mean],
    times: dict[tuple[str, str, str, float], Mean],
) -> Any:
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
