"""F1 for five balanced partition methods (table:baseline_utility)."""

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
from grapheraser.experiments.framework.means import Mean, entry, signed, tidy
from grapheraser.experiments.framework.options import Options
from grapheraser.experiments.framework.resolve import shown
from grapheraser.experiments.framework.shared_cells import f1, utility_cells
from grapheraser.experiments.paper import published as paper
from grapheraser.experiments.paper.partition_cost import methods
from grapheraser.reports.tables import Entry, Table

SIMILAR = 0.02

Found = dict[tuple[str, str, str], Mean]


def cells(options: Options) -> list[Cell]:
    """Each method for all data sets, models and runs."""
    return [
        cell
        for dataset in options.datasets
        for model in options.models
        for method in methods(options)
        for cell in utility_cells(options, dataset, model, method)
    ]


def summarise(options: Options, results: Results) -> Summary:
    """F1 with LBAggr beside the paper's; and with routing, where it is there."""
    learned = options.how.aggregations.get("learned", "mean")
    found = _means(options, results, learned)
    rows: list[dict[str, Any]] = [
        {
            "dataset": shown(key[0]),
            "model": shown(key[1]),
            "partition": key[2],
            "aggregation": "learned",
            **tidy(value, paper.PARTITIONERS.get(*key)),
        }
        for key, value in found.items()
    ]
    tables = [_table(options, found, "Micro F1 with LBAggr", True)]
    if "routed" in options.how.ours:
        routed = _means(options, results, options.how.ours["routed"])
        rows += [
            {
                "dataset": shown(key[0]),
                "model": shown(key[1]),
                "partition": key[2],
                "aggregation": "routed",
                **tidy(value),
            }
            for key, value in routed.items()
        ]
        tables.append(_table(options, routed, "Micro F1 with routing (ours)", False))
    series = {shown(method): (method,) for method in methods(options)}
    return Summary(
        rows,
        tables,
        _claims(options, found),
        lambda: draw_f1(options, series, found, paper.PARTITIONERS.get),
    )


def _means(options: Options, results: Results, text: str) -> Found:
    return {
        (dataset, model, method): value
        for dataset in options.datasets
        for model in options.models
        for method in methods(options)
        if (value := f1(results, utility_cells(options, dataset, model, method), text)) is not None
    }


def _table(options: Options, found: Found, title: str, with_paper: bool) -> Table:
    rows = []
    for dataset in options.datasets:
        for model in options.models:
            keys = [(dataset, model, method) for method in methods(options)]
            top = max((found[key].mean for key in keys if key in found), default=None)
            line: list[Entry | str] = [shown(dataset), shown(model)]
            for key in keys:
                told = paper.PARTITIONERS.get(*key) if with_paper else None
                item = entry(found.get(key), told)
                line.append(item.as_best() if key in found and found[key].mean == top else item)
            rows.append(tuple(line))
    header = ("data set", "model", *(shown(method) for method in methods(options)))
    return Table(title, header, tuple(rows), "▲ and ▼ as in utility. Bold: the best of the row.")


def _claims(options: Options, found: Found) -> list[Claim]:
    pairs = [(d, m) for d in options.datasets for m in options.models]
    full = [
        (d, m)
        for d, m in pairs
        if all((d, m, p) in found for p in ("blpa", "blpa-lp", "bekm", "bekm-hungarian", "metis"))
    ]
    claims = []
    others = [(d, m) for d, m in full if m != "gcn"]
    if others:
        good = sum(
            max(found[d, m, p].mean for p in ("bekm", "bekm-hungarian"))
            >= max(found[d, m, p].mean for p in ("blpa", "blpa-lp", "metis"))
            for d, m in others
        )
        claims.append(
            Claim(
                "For GAT, GIN and SAGE the k-means methods (BEKM, BEKM-Hungarian) are the best.",
                judged(good, len(others)),
                f"True in {counted(good, len(others), 'cases')}.",
            )
        )
    for left, right, words in (
        ("bekm", "bekm-hungarian", "BEKM and BEKM-Hungarian reach similar F1."),
        ("blpa", "blpa-lp", "BLPA and BLPA-LP reach similar F1."),
    ):
        gaps = [found[d, m, left].mean - found[d, m, right].mean for d, m in full]
        if gaps:
            good = sum(abs(gap) <= SIMILAR for gap in gaps)
            claims.append(
                Claim(
                    words,
                    judged(good, len(gaps)),
                    f"Within {SIMILAR} in {counted(good, len(gaps), 'cases')}; {left} is "
                    f"{signed(float(np.mean(gaps)))} on average.",
                )
            )
    gcn = [(d, m) for d, m in full if m == "gcn"]
    if gcn:
        good = sum(
            min(found[d, m, "blpa"].mean, found[d, m, "blpa-lp"].mean) > found[d, m, "metis"].mean
            for d, m in gcn
        )
        lead = float(
            np.mean([found[d, m, "blpa"].mean - found[d, m, "metis"].mean for d, m in gcn])
        )
        claims.append(
            Claim(
                "For GCN the methods of label propagation are better than METIS.",
                judged(good, len(gcn)),
                f"Both better on {counted(good, len(gcn), 'data sets')}; BLPA is {signed(lead)} "
                "against METIS on average.",
            )
        )
    return claims


register(
    Experiment(
        "partitioners",
        "F1 of the partition methods",
        "table:baseline_utility",
        "as utility",
        cells,
        summarise,
    )
)
