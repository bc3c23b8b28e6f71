"""Cost of partitioning, predicting and learning the scores (table:time_cost)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from grapheraser.reports.tables import Entry, Table
from grapheraser.reports.wording import duration, three_figures
from grapheraser_lab.experiments.partition_cost import partition_groups, seconds_of
from grapheraser_lab.figures.bars import Bars, draw_bars
from grapheraser_lab.framework import published as paper
from grapheraser_lab.framework.cell import Cell, Results
from grapheraser_lab.framework.experiment import SWEEP_RUNS, Summary, experiment
from grapheraser_lab.framework.f1_curves import bars_of
from grapheraser_lab.framework.means import Mean
from grapheraser_lab.framework.noise import all_of, paired
from grapheraser_lab.framework.options import Options
from grapheraser_lab.framework.resolve import named, shown
from grapheraser_lab.framework.rules import MOST, Case, Finding, rule
from grapheraser_lab.framework.shared_cells import SCRATCH, measured, requests_cell

METHODS = ("random", "blpa", "bekm")
COLUMNS = ("predict-scratch", "predict-shards", "learn")
# Longer, but slightly: at most so many times. Negligible: so many seconds, such a share.
SLIGHTLY, AT_ONCE, NEGLIGIBLE = 5.0, 0.01, 0.1

# Seconds by data set and model.
Pair = tuple[str, str]


@rule(
    "cost/partition",
    "We observe that the graph partition costs of BLPA and BEKM are higher than Random.",
    "Every data set: both take longer than random, embedding included, beyond noise.",
    noun="data set",
)
def partition_costs_more(found: Mapping[Pair, Mean]) -> Finding:
    """Seconds by data set and method, run by run."""
    cases = []
    for d in dict.fromkeys(key[0] for key in found):
        if all((d, m) in found for m in METHODS):
            gaps = [paired(found[d, m], found[d, "random"]) for m in ("blpa", "bekm")]
            cases.append(Case(shown(d), all_of(gap.positive for gap in gaps)))
    most = max((mean.mean for mean in found.values()), default=0.0)
    return Finding(cases, f"At most {duration(most)} here.")


@rule(
    "cost/prediction",
    "For the prediction cost, the shard-based methods are slightly more time-consuming compared to "
    "the Scratch method.",
    f"Every data set and GNN: predicting all test nodes with shards takes longer than with one "
    f"model, and at most {SLIGHTLY:g} times as long (the paper's own figures: 1.3 to 4.2 times).",
    untested="the paper predicted on a GPU server, in another engine.",
)
def prediction_slightly_longer(
    scratch: Mapping[Pair, float], shards: Mapping[Pair, float]
) -> Finding:
    """Longer, and little."""
    ratios = {key: shards[key] / scratch[key] for key in shards if scratch.get(key)}
    cases = [Case(named(*key), 1 < ratio <= SLIGHTLY) for key, ratio in ratios.items()]
    if not ratios:
        return Finding([], "")
    low, high = (three_figures(bound(ratios.values())) for bound in (min, max))
    return Finding(cases, f"{low} to {high} times as long.")


@rule(
    "cost/prediction-negligible",
    "The prediction cost is negligible since most of their values are smaller than 0.01 second.",
    f"Every data set and GNN: predicting all test nodes with shards takes less than {AT_ONCE} s on "
    "one thread (the paper's were predicted on a GPU server).",
    limits=MOST,
    untested="the paper's figures are of a GPU server.",
)
def prediction_negligible(shards: Mapping[Pair, float]) -> Finding:
    """By the paper's own limit."""
    cases = [Case(named(*key), seconds < AT_ONCE) for key, seconds in shards.items()]
    if not cases:
        return Finding([], "")
    low, high = min(shards.values()), max(shards.values())
    return Finding(cases, f"{duration(low)} to {duration(high)} for all test nodes.")


@rule(
    "cost/relearning",
    "The relearning time is negligible compared to retraining the shard models.",
    f"Every data set and GNN: learning the aggregation from nothing takes at most "
    f"{100 * NEGLIGIBLE:.0f} % of retraining one shard.",
    untested="it depends on the engine; this one retrains a shard in milliseconds.",
)
def relearning_negligible(learn: Mapping[Pair, float], training: Mapping[Pair, float]) -> Finding:
    """Beside one shard's training."""
    shares = {key: learn[key] / training[key] for key in learn if training.get(key)}
    cases = [Case(named(*key), share <= NEGLIGIBLE) for key, share in shares.items()]
    if not shares:
        return Finding([], "")
    low, high = (three_figures(bound(shares.values())) for bound in (min, max))
    told = f"{low} to {high} times a shard's training; after a request most is kept."
    return Finding(cases, told)


def _methods(options: Options) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*METHODS, *options.partitions)))


def _partition_cells(options: Options) -> dict[Pair, list[Cell]]:
    return partition_groups(options, _methods(options))


def _shards(options: Options) -> str:
    """The partition whose requests are looked at: BEKM as in the paper, or the default."""
    return "bekm" if options.how.of_paper else options.how.readings["*"][0]


def _request_cells(options: Options) -> dict[tuple[str, str, str], Cell]:
    return {
        (dataset, model, method): requests_cell(options, dataset, model, method)
        for dataset, model in options.pairs
        for method in (SCRATCH, _shards(options))
    }


@experiment(
    "cost",
    "Cost of partition, prediction and LBAggr",
    "table:time_cost",
    "nothing beside node-efficiency and partition-cost",
    _partition_cells,
    _request_cells,
    most_runs=SWEEP_RUNS,
)
def summarise(options: Options, results: Results) -> Summary:
    """Seconds, the paper's below; predictions and scores are means over the models."""
    partitions = seconds_of(results, _partition_cells(options), embedding=True)
    asked = measured(results, _request_cells(options))

    def figures(method: str, key: str) -> dict[Pair, float]:
        return {(d, m): float(v[key]) for (d, m, p), v in asked.items() if p == method}

    shards = _shards(options)
    by_column = {
        "predict-scratch": figures(SCRATCH, "predict_seconds"),
        "predict-shards": figures(shards, "predict_seconds"),
        "learn": figures(shards, "learn_seconds"),
    }
    training = {
        (d, m): float(np.mean(v["nodes"]["training"]))
        for (d, m, p), v in asked.items()
        if p == shards
    }
    found = {key: mean.mean for key, mean in partitions.items()}
    for column, values in by_column.items():
        for d in options.datasets:
            some = [seconds for (other, _), seconds in values.items() if other == d]
            if some:
                found[d, column] = float(np.mean(some))
    rows = _rows(partitions, by_column)
    return Summary(
        rows,
        [_table(options, found)],
        [
            *partition_costs_more(partitions),
            *prediction_slightly_longer(by_column["predict-scratch"], by_column["predict-shards"]),
            *prediction_negligible(by_column["predict-shards"]),
            *relearning_negligible(by_column["learn"], training),
        ],
        lambda: _figure(options, partitions, found),
    )


def _rows(
    partitions: Mapping[Pair, Mean], by_column: Mapping[str, Mapping[Pair, float]]
) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = [
        {
            "dataset": shown(dataset),
            "model": "",
            "what": method,
            "run": run,
            "seconds": seconds,
            "paper_seconds": paper.SECONDS.get((dataset, method)),
        }
        for (dataset, method), mean in partitions.items()
        for run, seconds in mean.by_run
    ]
    rows += [
        {
            "dataset": shown(dataset),
            "model": shown(model),
            "what": column,
            "run": 0,
            "seconds": seconds,
            "paper_seconds": paper.SECONDS.get((dataset, column)),
        }
        for column, values in by_column.items()
        for (dataset, model), seconds in values.items()
    ]
    return rows


def _table(options: Options, found: Mapping[Pair, float]) -> Table:
    rows = []
    for dataset in options.datasets:
        line: list[Entry | str] = [shown(dataset)]
        for column in (*_methods(options), *COLUMNS):
            told = paper.SECONDS.get((dataset, column))
            below = "" if told is None else f"paper {duration(told)}"
            line.append(Entry(duration(found.get((dataset, column))), below))
        rows.append(tuple(line))
    return Table(
        "Cost of the pipeline",
        (
            "data set",
            *(f"partition: {shown(method)}" for method in _methods(options)),
            "predict: scratch",
            f"predict: {_shards(options)}",
            f"learn: {options.how.chosen}",
        ),
        tuple(rows),
        "Partitions: means over the runs, with the embedding. Predictions are of all test nodes at "
        "once, mean over the models, one thread; the paper's were made on a GPU server.",
    )


def _figure(options: Options, partitions: Mapping[Pair, Mean], found: Mapping[Pair, float]) -> Any:
    def told(columns: Mapping[str, str]) -> dict[str, list[float | None]]:
        return {
            name: [paper.SECONDS.get((d, column)) for d in options.datasets]
            for name, column in columns.items()
        }

    first = {shown(m): m for m in _methods(options)}
    second = {
        "scratch predicts": "predict-scratch",
        f"{_shards(options)} predicts": "predict-shards",
        f"{options.how.chosen} learns": "learn",
    }
    return draw_bars(
        [
            bars_of(
                "partitioning the graph",
                options.datasets,
                {n: [partitions.get((d, m)) for d in options.datasets] for n, m in first.items()},
                told(first),
            ),
            Bars(
                "predicting and learning",
                [shown(dataset) for dataset in options.datasets],
                {n: [found.get((d, c)) for d in options.datasets] for n, c in second.items()},
                paper=told(second),
            ),
        ],
        "seconds",
        log=True,
    )
