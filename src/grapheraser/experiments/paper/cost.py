"""Cost of cutting, predicting and learning the scores (table:time_cost)."""

from __future__ import annotations

from typing import Any

import numpy as np

from grapheraser.experiments.framework.cell import Cell, Results
from grapheraser.experiments.framework.experiment import (
    Claim,
    Experiment,
    Summary,
    counted,
    judged,
    register,
)
from grapheraser.experiments.framework.options import Options
from grapheraser.experiments.framework.resolve import shown
from grapheraser.experiments.framework.shared_cells import SCRATCH, partition_cell, requests_cell
from grapheraser.experiments.paper import published as paper
from grapheraser.reports.figures.bars import Bars, draw_bars
from grapheraser.reports.tables import Entry, Table
from grapheraser.reports.wording import duration

CUTS = ("random", "blpa", "bekm")
COLUMNS = (*CUTS, "predict-scratch", "predict-shards", "learn")
NEGLIGIBLE = 0.25


def _cuts(options: Options) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*CUTS, *options.partitions)))


def cells(options: Options) -> list[Cell]:
    """Partitions, and the request cells of scratch and BEKM."""
    found = [
        partition_cell(options, dataset, method)
        for dataset in options.datasets
        for method in _cuts(options)
    ]
    return found + [
        requests_cell(options, dataset, model, method)
        for dataset in options.datasets
        for model in options.models
        for method in (SCRATCH, "bekm")
    ]


def summarise(options: Options, results: Results) -> Summary:
    """Seconds, the paper's below; predictions and scores are means over the models."""
    found: dict[tuple[str, str], float] = {}
    retraining: dict[str, float] = {}
    for dataset in options.datasets:
        for method in _cuts(options):
            value = results.value(partition_cell(options, dataset, method))
            if value is not None:
                found[dataset, method] = value["seconds"] + value["embedding_seconds"]
        for column, method, key in (
            ("predict-scratch", SCRATCH, "predict_seconds"),
            ("predict-shards", "bekm", "predict_seconds"),
            ("learn", "bekm", "learn_seconds"),
        ):
            values = [
                value[key]
                for model in options.models
                if (value := results.value(requests_cell(options, dataset, model, method)))
            ]
            if values:
                found[dataset, column] = float(np.mean(values))
        training = [
            value["nodes"]["training"]
            for model in options.models
            if (value := results.value(requests_cell(options, dataset, model, "bekm")))
        ]
        if training:
            retraining[dataset] = float(np.mean(training))
    columns = tuple(dict.fromkeys((*_cuts(options), *COLUMNS)))
    rows: list[dict[str, Any]] = [
        {
            "dataset": shown(dataset),
            "what": column,
            "seconds": value,
            "paper_seconds": paper.SECONDS.get((dataset, column)),
        }
        for (dataset, column), value in found.items()
    ]
    table_rows = []
    for dataset in options.datasets:
        line: list[Entry | str] = [shown(dataset)]
        for column in columns:
            told = paper.SECONDS.get((dataset, column))
            below = "" if told is None else f"paper {told:g} s"
            line.append(Entry(duration(found.get((dataset, column))), below))
        table_rows.append(tuple(line))
    table = Table(
        "Cost of the pipeline",
        (
            "data set",
            *(f"cut: {shown(method)}" for method in _cuts(options)),
            "predict: scratch",
            "predict: shards",
            "learn LBAggr",
        ),
        tuple(table_rows),
        "Predictions are of all test nodes at once, mean over the models, one thread; the paper's "
        "were made on a GPU server.",
    )
    return Summary(
        rows,
        [table],
        _claims(options, found, retraining),
        lambda: draw_bars(
            [
                Bars(
                    "cutting the graph",
                    [shown(dataset) for dataset in options.datasets],
                    {
                        shown(method): [found.get((d, method)) for d in options.datasets]
                        for method in _cuts(options)
                    },
                    paper={
                        method: [paper.SECONDS.get((d, method)) for d in options.datasets]
                        for method in CUTS
                    },
                ),
                Bars(
                    "predicting and learning",
                    [shown(dataset) for dataset in options.datasets],
                    {
                        name: [found.get((d, column)) for d in options.datasets]
                        for name, column in (
                            ("scratch predicts", "predict-scratch"),
                            ("bekm predicts", "predict-shards"),
                            ("learned (LBAggr)", "learn"),
                        )
                    },
                    paper={
                        name: [paper.SECONDS.get((d, column)) for d in options.datasets]
                        for name, column in (
                            ("scratch predicts", "predict-scratch"),
                            ("bekm predicts", "predict-shards"),
                            ("learned (LBAggr)", "learn"),
                        )
                    },
                ),
            ],
            "seconds",
            log=True,
        ),
    )


def _claims(
    options: Options, found: dict[tuple[str, str], float], retraining: dict[str, float]
) -> list[Claim]:
    claims = []
    known = [d for d in options.datasets if all((d, method) in found for method in CUTS)]
    good = sum(found[d, "random"] < min(found[d, "blpa"], found[d, "bekm"]) for d in known)
    if known:
        claims.append(
            Claim(
                "BLPA and BEKM take longer to cut than random.",
                judged(good, len(known)),
                f"On {counted(good, len(known), 'data sets')}; at most "
                f"{duration(max(found[d, m] for d in known for m in CUTS))} here.",
            )
        )
    predicted = ("predict-scratch", "predict-shards")
    both = [d for d in options.datasets if all((d, column) in found for column in predicted)]
    slower = sum(found[d, "predict-shards"] > found[d, "predict-scratch"] for d in both)
    if both:
        worst = max(found[d, "predict-shards"] for d in both)
        claims.append(
            Claim(
                "Predicting with shards takes longer than with one model, but little.",
                judged(slower, len(both)),
                f"Longer on {counted(slower, len(both), 'data sets')}; at most {duration(worst)} "
                "for all test nodes.",
            )
        )
    shares = {
        d: found[d, "learn"] / retraining[d]
        for d in options.datasets
        if (d, "learn") in found and retraining.get(d)
    }
    if shares:
        small = sum(share <= NEGLIGIBLE for share in shares.values())
        claims.append(
            Claim(
                "Learning LBAggr's scores again is negligible beside training a shard.",
                judged(small, len(shares)),
                "From nothing it takes "
                + ", ".join(f"{share:.2g} (" + shown(d) + ")" for d, share in shares.items())
                + " times a shard's training. After a request most posteriors are kept.",
            )
        )
    return claims


register(
    Experiment(
        "cost",
        "Cost of partition, prediction and LBAggr",
        "table:time_cost",
        "nothing beside node-efficiency and partition-cost",
        cells,
        summarise,
    )
)
