"""F1 after edges were forgotten (table:edge_unlearning_utility_optimal).

The paper does not say what was deleted. Here 100 random edges of the training graph are, after it
was partitioned, and F1 is that of the ensemble afterwards; scratch is trained on what is left.
"""

from __future__ import annotations

import numpy as np

from grapheraser.experiments.framework.cell import Cell, Results
from grapheraser.experiments.framework.experiment import (
    Experiment,
    Summary,
    judged_claim,
    register,
)
from grapheraser.experiments.framework.f1_bars import draw_f1
from grapheraser.experiments.framework.means import Mean, beyond, entry, tidy_rows
from grapheraser.experiments.framework.options import Options
from grapheraser.experiments.framework.resolve import shown
from grapheraser.experiments.framework.shared_cells import (
    SCRATCH,
    every_cell,
    f1_means,
    utility_cells,
)
from grapheraser.experiments.paper import published as paper
from grapheraser.reports.tables import Entry, Table

FORGET = {"what": "edges", "count": 100}

Key = tuple[str, str, str]


def _methods(options: Options) -> tuple[str, ...]:
    return (SCRATCH, *options.main_partitions)


def _groups(options: Options, *, after: bool) -> dict[tuple[str, str, str], list[Cell]]:
    forget = FORGET if after else None
    return {
        (dataset, model, partition): utility_cells(
            options, dataset, model, partition, forget=forget
        )
        for dataset, model in options.pairs
        for partition in _methods(options)
    }


def _means(options: Options, results: Results, *, after: bool) -> dict[Key, Mean]:
    """With LBAggr; scratch has one shard and nothing to aggregate."""
    groups = _groups(options, after=after)
    scratch = {key: group for key, group in groups.items() if key[2] == SCRATCH}
    found = f1_means(results, scratch) | f1_means(results, groups, options.learned)
    return {key: found[key] for key in groups if key in found}


def cells(options: Options) -> list[Cell]:
    """Before (shared with `utility`) and after the edges are gone."""
    return [cell for after in (False, True) for cell in every_cell(_groups(options, after=after))]


def summarise(options: Options, results: Results) -> Summary:
    """F1 after 100 edges, with LBAggr, beside the paper's; and how far it is from before."""
    before = _means(options, results, after=False)
    found = _means(options, results, after=True)
    rows = tidy_rows(found, ("dataset", "model", "partition"), paper.EDGE_UTILITY.get)
    for key, row in zip(found, rows, strict=True):
        row["before_mean"] = before[key].mean if key in before else None
    table_rows: list[tuple[Entry | str, ...]] = [
        (
            shown(dataset),
            shown(model),
            *(
                entry(found.get(key), paper.EDGE_UTILITY.get(*key))
                for key in ((dataset, model, method) for method in _methods(options))
            ),
        )
        for dataset, model in options.pairs
    ]
    header = ("data set", "model", *(shown(method) for method in _methods(options)))
    table = Table(
        "Micro F1 after 100 edges were forgotten (LBAggr)",
        header,
        tuple(table_rows),
        "Below: the paper's figure and the difference; ▲ and ▼ as in utility.",
    )
    known = [(value, before[key]) for key, value in found.items() if key in before]
    claims = judged_claim(
        "Edge unlearning leads to the same conclusions as node unlearning.",
        [not beyond(a, b) for a, b in known],
        lambda count: (
            f"F1 after 100 edges equals that before within noise in {count}; it moves by "
            f"{np.mean([abs(a.mean - b.mean) for a, b in known]):.4f} on average."
        ),
    )
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
