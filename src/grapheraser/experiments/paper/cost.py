"""Cost of partitioning, predicting and learning the scores (table:time_cost)."""

from __future__ import annotations

from collections.abc import Callable
from operator import itemgetter
from typing import Any

import numpy as np

from grapheraser.experiments.framework.cell import Cell, Results
from grapheraser.experiments.framework.experiment import (
    Claim,
    Experiment,
    Summary,
    judged_claim,
    register,
)
from grapheraser.experiments.framework.options import Options
from grapheraser.experiments.framework.resolve import shown
from grapheraser.experiments.framework.shared_cells import (
    SCRATCH,
    measured,
    partition_cell,
    requests_cell,
)
from grapheraser.experiments.paper import published as paper
from grapheraser.reports.figures.bars import Bars, draw_bars
from grapheraser.reports.tables import Entry, Table
from grapheraser.reports.wording import duration

METHODS = ("random", "blpa", "bekm")
COLUMNS = (*METHODS, "predict-scratch", "predict-shards", "learn")
NEGLIGIBLE = 0.25


def _methods(options: Options) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*METHODS, *options.partitions)))


def _partition_cells(options: Options) -> dict[tuple[str, str], Cell]:
    return {
        (dataset, method): partition_cell(options, dataset, method)
        for dataset in options.datasets
        for method in _methods(options)
    }


def _request_cells(options: Options) -> dict[tuple[str, str, str], Cell]:
    return {
        (dataset, model, method): requests_cell(options, dataset, model, method)
        for dataset, model in options.pairs
        for method in (SCRATCH, "bekm")
    }


def cells(options: Options) -> list[Cell]:
    """Partitions, and the request cells of scratch and BEKM."""
    return [*_partition_cells(options).values(), *_request_cells(options).values()]


def summarise(options: Options, results: Results) -> Summary:
    """Seconds, the paper's below; predictions and scores are means over the models."""
    found = {
        key: value["seconds"] + value["embedding_seconds"]
        for key, value in measured(results, _partition_cells(options)).items()
    }
    asked = measured(results, _request_cells(options))

    def mean(dataset: str, method: str, read: Callable[[dict[str, Any]], float]) -> float | None:
        """Over the models."""
        values = [read(v) for (d, _, m), v in asked.items() if (d, m) == (dataset, method)]
        return float(np.mean(values)) if values else None

    retraining: dict[str, float] = {}
    for dataset in options.datasets:
        for column, method, key in (
            ("predict-scratch", SCRATCH, "predict_seconds"),
            ("predict-shards", "bekm", "predict_seconds"),
            ("learn", "bekm", "learn_seconds"),
        ):
            seconds = mean(dataset, method, itemgetter(key))
            if seconds is not None:
                found[dataset, column] = seconds
        training = mean(dataset, "bekm", lambda value: float(value["nodes"]["training"]))
        if training is not None:
            retraining[dataset] = training
    columns = tuple(dict.fromkeys((*_methods(options), *COLUMNS)))
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
            below = "" if told is None else f"paper {duration(told)}"
            line.append(Entry(duration(found.get((dataset, column))), below))
        table_rows.append(tuple(line))
    table = Table(
        "Cost of the pipeline",
        (
            "data set",
            *(f"partition: {shown(method)}" for method in _methods(options)),
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
                _bars(options, found, "partitioning the graph", {m: m for m in _methods(options)}),
                _bars(
                    options,
                    found,
                    "predicting and learning",
                    {
                        "scratch predicts": "predict-scratch",
                        "bekm predicts": "predict-shards",
                        "learned (LBAggr)": "learn",
                    },
                ),
            ],
            "seconds",
            log=True,
        ),
    )


def _bars(
    options: Options,
    found: dict[tuple[str, str], float],
    title: str,
    columns: dict[str, str],
) -> Bars:
    """One panel; ``columns`` says which column each series shows."""
    told = {
        shown(name): [paper.SECONDS.get((d, column)) for d in options.datasets]
        for name, column in columns.items()
    }
    return Bars(
        title,
        [shown(dataset) for dataset in options.datasets],
        {
            shown(name): [found.get((d, column)) for d in options.datasets]
            for name, column in columns.items()
        },
        paper={name: line for name, line in told.items() if any(line)},
    )


def _claims(
    options: Options, found: dict[tuple[str, str], float], retraining: dict[str, float]
) -> list[Claim]:
    known = [d for d in options.datasets if all((d, method) in found for method in METHODS)]
    both = [
        (found[d, "predict-scratch"], found[d, "predict-shards"])
        for d in options.datasets
        if {(d, "predict-scratch"), (d, "predict-shards")} <= found.keys()
    ]
    shares = {
        d: found[d, "learn"] / retraining[d]
        for d in options.datasets
        if (d, "learn") in found and retraining.get(d)
    }
    told = ", ".join(f"{share:.2g} ({shown(d)})" for d, share in shares.items())
    return [
        *judged_claim(
            "BLPA and BEKM take longer to partition than random.",
            [found[d, "random"] < min(found[d, "blpa"], found[d, "bekm"]) for d in known],
            lambda count: (
                f"On {count}; at most {duration(max(found[d, m] for d in known for m in METHODS))} "
                "here."
            ),
            noun="data set",
        ),
        *judged_claim(
            "Predicting with shards takes longer than with one model, but little.",
            [shards > scratch for scratch, shards in both],
            lambda count: (
                f"Longer on {count}; at most {duration(max(shards for _, shards in both))} for "
                "all test nodes."
            ),
            noun="data set",
        ),
        *judged_claim(
            "Relearning LBAggr's scores is negligible beside training a shard.",
            [share <= NEGLIGIBLE for share in shares.values()],
            lambda _: (
                f"From nothing it takes {told} times a shard's training. After a request most "
                "posteriors are kept."
            ),
        ),
    ]


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
