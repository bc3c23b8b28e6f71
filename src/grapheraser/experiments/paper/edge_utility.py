"""F1 after edges were forgotten (table:edge_unlearning_utility_optimal).

The paper does not say what was deleted. Here 100 random edges of the training graph are, after the
graph was cut, and F1 is that of the ensemble afterwards; scratch is trained on what is left.
"""

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
from grapheraser.experiments.framework.f1_bars import draw_f1
from grapheraser.experiments.framework.means import Mean, beyond, entry, tidy
from grapheraser.experiments.framework.options import Options
from grapheraser.experiments.framework.resolve import shown
from grapheraser.experiments.framework.shared_cells import SCRATCH, f1, utility_cells
from grapheraser.experiments.paper import published as paper
from grapheraser.reports.tables import Entry, Table

FORGET = {"what": "edges", "count": 100}


def _cells(options: Options, dataset: str, model: str, partition: str, after: bool) -> list[Cell]:
    return utility_cells(options, dataset, model, partition, forget=FORGET if after else None)


def _methods(options: Options) -> tuple[str, ...]:
    return (SCRATCH, *options.main_partitions)


def cells(options: Options) -> list[Cell]:
    """Before (shared with `utility`) and after the edges are gone."""
    return [
        cell
        for dataset in options.datasets
        for model in options.models
        for partition in _methods(options)
        for after in (False, True)
        for cell in _cells(options, dataset, model, partition, after)
    ]


def summarise(options: Options, results: Results) -> Summary:
    """F1 after 100 edges, with LBAggr, beside the paper's; and how far it is from before."""
    learned = options.how.aggregations.get("learned", "mean")
    before: dict[tuple[str, str, str], Mean | None] = {}
    found: dict[tuple[str, str, str], Mean | None] = {}
    for dataset in options.datasets:
        for model in options.models:
            for partition in _methods(options):
                text = "mean" if partition == SCRATCH else learned
                key = dataset, model, partition
                for store, after in ((before, False), (found, True)):
                    group = _cells(options, dataset, model, partition, after)
                    store[key] = f1(results, group, text)
    rows: list[dict[str, Any]] = [
        {
            "dataset": shown(key[0]),
            "model": shown(key[1]),
            "partition": key[2],
            **tidy(value, paper.EDGE_UTILITY.get(*key)),
            "before_mean": None if (was := before[key]) is None else was.mean,
        }
        for key, value in found.items()
    ]
    table_rows = []
    for dataset in options.datasets:
        for model in options.models:
            line: list[Entry | str] = [shown(dataset), shown(model)]
            for partition in _methods(options):
                key = dataset, model, partition
                line.append(entry(found[key], paper.EDGE_UTILITY.get(*key)))
            table_rows.append(tuple(line))
    header = ("data set", "model", *(shown(method) for method in _methods(options)))
    table = Table(
        "Micro F1 after 100 edges were forgotten (LBAggr)",
        header,
        tuple(table_rows),
        "Below: the paper's figure and the difference; ▲ and ▼ as in utility.",
    )
    both = [(found[k], before[k]) for k in found]
    known = [(a, b) for a, b in both if a is not None and b is not None]
    same = sum(not beyond(a, b) for a, b in known)
    apart = float(np.mean([abs(a.mean - b.mean) for a, b in known])) if known else 0.0
    claims = [
        Claim(
            "Edge unlearning leads to the same conclusions as node unlearning.",
            judged(same, len(known)),
            f"F1 after 100 edges equals that before within noise in "
            f"{counted(same, len(known), 'cases')}; it moves by {apart:.4f} on average.",
        )
    ]
    series = {shown(method): (method,) for method in _methods(options)}
    return Summary(
        rows, [table], claims, lambda: draw_f1(options, series, found, paper.EDGE_UTILITY.get)
    )


register(
    Experiment(
        "edge-utility",
        "F1 after edges were forgotten",
        "table:edge_unlearning_utility_optimal",
        "as utility",
        cells,
        summarise,
    )
)
